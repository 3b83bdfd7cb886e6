/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/reply_guard.h"

#include "core/assert.h"

enum {
    MESSAGE_ELEMENTS = 3,      /* kind, channel, payload */
    MESSAGE_STRINGS = 2,       /* hiredis asserts these of them */
    MAX_ELEMENTS = 1024 * 1024 /* of an array; ours have a few thousand */
};

static struct weir__reply_guard *guard_of(const redisReadTask *task)
{
    struct weir__reply_guard *guard = task->privdata;

    WEIR_ASSERT(guard != NULL && guard->base != NULL);
    return guard;
}

static bool refuse(struct weir__reply_guard *guard)
{
    guard->has_refused = true;
    return false;
}

/* Whether a value that is no array may appear here. An error that nobody asked
 * for is fine: hiredis takes it as the reason why the server hangs up. */
static bool admits_value(struct weir__reply_guard *guard,
                         const redisReadTask *task)
{
    if (guard->outstanding > 0)
        return true;
    if (task->parent == NULL)
        return task->type == REDIS_REPLY_ERROR || refuse(guard);
    return task->type == REDIS_REPLY_STRING || task->idx >= MESSAGE_STRINGS ||
           refuse(guard);
}

static bool admits_array(struct weir__reply_guard *guard,
                         const redisReadTask *task, weir__array_len elements)
{
    if (elements > MAX_ELEMENTS || task->type != REDIS_REPLY_ARRAY)
        return refuse(guard);
    if (guard->outstanding > 0)
        return true;
    return (guard->is_subscribed && task->parent == NULL &&
            elements == MESSAGE_ELEMENTS) ||
           refuse(guard);
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct weir__reply_guard *guard = guard_of(task);

    return admits_value(guard, task)
               ? guard->base->createString(task, text, len)
               : NULL;
}

static void *create_array(const redisReadTask *task, weir__array_len elements)
{
    struct weir__reply_guard *guard = guard_of(task);

    return admits_array(guard, task, elements)
               ? guard->base->createArray(task, elements)
               : NULL;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct weir__reply_guard *guard = guard_of(task);

    return admits_value(guard, task) ? guard->base->createInteger(task, value)
                                     : NULL;
}

static void *create_nil(const redisReadTask *task)
{
    struct weir__reply_guard *guard = guard_of(task);

    return admits_value(guard, task) ? guard->base->createNil(task) : NULL;
}

#if WEIR__HIREDIS_RESP3
/* We never switch to RESP3, so its types are not for us. */
static void *create_double(const redisReadTask *task, double value, char *text,
                           size_t len)
{
    (void)value; /* refused whatever it is */
    (void)text;
    (void)len;
    (void)refuse(guard_of(task));
    return NULL;
}

static void *create_bool(const redisReadTask *task, int value)
{
    (void)value; /* refused whatever it is */
    (void)refuse(guard_of(task));
    return NULL;
}
#endif

void weir__reply_guard_install(struct weir__reply_guard *guard,
                               struct redisAsyncContext *context)
{
    redisReader *reader = context->c.reader;

    *guard = (struct weir__reply_guard){.base = reader->fn};
    WEIR_ASSERT(guard->base != NULL && reader->privdata == NULL);
    guard->fn = *guard->base;
    guard->fn.createString = create_string;
    guard->fn.createArray = create_array;
    guard->fn.createInteger = create_integer;
    guard->fn.createNil = create_nil;
#if WEIR__HIREDIS_RESP3
    guard->fn.createDouble = create_double;
    guard->fn.createBool = create_bool;
#endif
#if WEIR__HIREDIS_MAX_ELEMENTS
    reader->maxelements = MAX_ELEMENTS;
#endif
    reader->fn = &guard->fn;
    reader->privdata = guard;
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/reply_guard.h"

#include <stdio.h>
#include <string.h>

#include "core/assert.h"

enum {
    MESSAGE_ELEMENTS = 3, /* kind, channel, payload */
    MAX_DEPTH = 6,        /* of arrays in arrays; hiredis 1.x has no bound, and
                             frees them by recursion */
    MAX_LINE = 64 * 1024, /* hiredis looks for its end from its start */
    MAX_LENGTH = 32       /* digits and CR LF in front of a string */
};

static struct weir__reply_guard *guard_of(const redisReadTask *task)
{
    struct weir__reply_guard *guard = task->privdata;

    WEIR_ASSERT(guard != NULL && guard->base != NULL);
    return guard;
}

static bool refuse(struct weir__reply_guard *guard, enum weir__refusal why)
{
    guard->refusal = why;
    return false;
}

/* --- size ---------------------------------------------------------------- */

/* What nobody asked for is small: the reason why the server hangs up. */
static bool fits(struct weir__reply_guard *guard, size_t bytes)
{
    if (guard->outstanding == 0)
        return bytes <= WEIR__PUSH_BYTES ||
               refuse(guard, WEIR__REFUSAL_UNASKED);
    return bytes <= guard->most || refuse(guard, WEIR__REFUSAL_TOO_LARGE);
}

/* Every part of a reply passes here, the one that it begins with first. */
static bool count(struct weir__reply_guard *guard, const redisReadTask *task,
                  size_t bytes)
{
    if (task->parent == NULL) {
        guard->replies++;
        guard->bytes = 0;
    }
    guard->bytes += bytes;
    return fits(guard, guard->bytes);
}

/* --- shape --------------------------------------------------------------- */

static bool equals(const char *text, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(text, wanted, len) == 0;
}

/* A text for a subscriber: an answer of the handshake, else a part of
 * "subscribe", channel, number, which comes once, or of "message", channel,
 * payload. hiredis looks only at some of it, and asserts what it looks at. */
static bool admits_pushed(const struct weir__reply_guard *guard,
                          const redisReadTask *task, const char *text,
                          size_t len)
{
    if (task->parent == NULL)
        return guard->outstanding > 0 && task->type == REDIS_REPLY_STATUS;
    if (task->type != REDIS_REPLY_STRING)
        return false;
    if (task->idx == 0)
        return equals(text, len, guard->is_confirmed ? "message" : "subscribe");
    return task->idx == 1 ? equals(text, len, guard->channel)
                          : guard->is_confirmed;
}

/* An error that nobody asked for is fine: hiredis takes it as the reason why
 * the server hangs up. */
static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct weir__reply_guard *guard = guard_of(task);
    bool is_reason = task->parent == NULL && task->type == REDIS_REPLY_ERROR;

    if (!is_reason &&
        (guard->channel != NULL ? !admits_pushed(guard, task, text, len)
                                : guard->outstanding == 0))
        (void)refuse(guard, WEIR__REFUSAL_UNASKED);
    else if (count(guard, task, len))
        return guard->base->createString(task, text, len);
    return NULL;
}

static bool admits_array(const struct weir__reply_guard *guard,
                         const redisReadTask *task, weir__array_len elements)
{
    if (task->type != REDIS_REPLY_ARRAY)
        return false;
    if (guard->channel == NULL)
        return guard->outstanding > 0;
    return guard->outstanding == 0 && task->parent == NULL &&
           elements == MESSAGE_ELEMENTS;
}

static bool is_too_deep(const redisReadTask *task)
{
    int depth = 0;

    while (depth <= MAX_DEPTH && (task = task->parent) != NULL)
        depth++;
    return depth > MAX_DEPTH;
}

/* What is announced counts at once. */
static void *create_array(const redisReadTask *task, weir__array_len elements)
{
    struct weir__reply_guard *guard = guard_of(task);
    size_t each = sizeof(redisReply) + sizeof(redisReply *);

    if (!admits_array(guard, task, elements))
        (void)refuse(guard, WEIR__REFUSAL_UNASKED);
    else if ((size_t)elements > guard->most / each)
        (void)refuse(guard, WEIR__REFUSAL_TOO_LARGE);
    else if (is_too_deep(task))
        (void)refuse(guard, WEIR__REFUSAL_TOO_DEEP);
    else if (count(guard, task, (size_t)elements * each))
        return guard->base->createArray(task, elements);
    return NULL;
}

static bool admits_integer(struct weir__reply_guard *guard,
                           const redisReadTask *task)
{
    if (guard->channel == NULL)
        return guard->outstanding > 0;
    if (task->parent == NULL || task->idx != MESSAGE_ELEMENTS - 1 ||
        guard->is_confirmed)
        return false;
    guard->is_confirmed = true;
    return true;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct weir__reply_guard *guard = guard_of(task);

    if (!admits_integer(guard, task))
        (void)refuse(guard, WEIR__REFUSAL_UNASKED);
    else if (count(guard, task, 0))
        return guard->base->createInteger(task, value);
    return NULL;
}

static void *create_nil(const redisReadTask *task)
{
    struct weir__reply_guard *guard = guard_of(task);

    if (guard->channel != NULL || guard->outstanding == 0)
        (void)refuse(guard, WEIR__REFUSAL_UNASKED);
    else if (count(guard, task, 0))
        return guard->base->createNil(task);
    return NULL;
}

#if WEIR__HIREDIS_RESP3
/* We never switch to RESP3, so its types are not for us. */
static void *create_double(const redisReadTask *task, double value, char *text,
                           size_t len)
{
    (void)value; /* refused whatever it is */
    (void)text;
    (void)len;
    (void)refuse(guard_of(task), WEIR__REFUSAL_UNASKED);
    return NULL;
}

static void *create_bool(const redisReadTask *task, int value)
{
    (void)value; /* refused whatever it is */
    (void)refuse(guard_of(task), WEIR__REFUSAL_UNASKED);
    return NULL;
}
#endif

/* --- what the owner calls ------------------------------------------------ */

void weir__reply_guard_install(struct weir__reply_guard *guard,
                               redisReader *reader)
{
    *guard = (struct weir__reply_guard){.base = reader->fn,
                                        .most = WEIR__REPLY_BYTES};
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
    reader->fn = &guard->fn;
    reader->privdata = guard;
}

void weir__reply_guard_explain(const struct weir__reply_guard *guard,
                               char *text, size_t cap)
{
    if (guard->refusal == WEIR__REFUSAL_TOO_LARGE)
        (void)snprintf(text, cap, "an answer of more than %zu MiB",
                       guard->most >> 20); /* fits */
    else if (guard->refusal == WEIR__REFUSAL_TOO_DEEP)
        (void)snprintf(text, cap, "an answer nested too deep");
    else
        (void)snprintf(text, cap, "the server sent what nobody asked for");
}

/* How long a string says that it is; of a line 0. */
static size_t promised(const char *rest)
{
    size_t len = 0;

    if (*rest++ != '$')
        return 0;
    for (; *rest >= '0' && *rest <= '9' && len <= WEIR__REPLY_BYTES; rest++)
        len = len * 10 + (size_t)(*rest - '0');
    return len;
}

/* The rest is one string or line: whatever is complete was parsed. What is too
 * long is refused by its length, not after it was received. */
bool weir__reply_guard_admits_rest(struct weir__reply_guard *guard,
                                   const redisReader *reader)
{
    const char *rest = reader->buf + reader->pos;
    size_t len = reader->len - reader->pos, at = 0;

    if (len <= MAX_LINE)
        return true;
    while (at < MAX_LENGTH && memcmp(rest + at, "\r\n", 2) != 0)
        at++;
    if (at == MAX_LENGTH)
        return refuse(guard, guard->outstanding > 0 ? WEIR__REFUSAL_TOO_LARGE
                                                    : WEIR__REFUSAL_UNASKED);
    if (promised(rest) > len)
        len = promised(rest);
    return fits(guard, len + (reader->ridx > 0 ? guard->bytes : 0));
}

uint64_t weir__reply_guard_under_way(const struct weir__reply_guard *guard,
                                     const redisReader *reader)
{
    if (reader->ridx < 0 || WEIR__HIREDIS_ROOT(reader)->type < 0)
        return 0;
    return guard->replies + (reader->ridx == 0); /* or it is an array's part */
}

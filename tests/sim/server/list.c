/* SPDX-License-Identifier: MIT */

/* Lists. */

#include <stdlib.h>

#include "tests/sim/server/private.h"

static size_t count_of(const struct object *object)
{
    return object == NULL ? 0 : object->count;
}

static void run_llen(struct call *call)
{
    struct object *object;

    if (find_object(call, 1, LIST, &object))
        answer_int(call, (int64_t)count_of(object));
}

static void run_lindex(struct call *call)
{
    struct object *object;
    int64_t at;

    if (!find_object(call, 1, LIST, &object))
        return;
    if (object == NULL) {
        answer_nil(call);
        return;
    }
    if (!read_int(call, 2, &at))
        return;
    if (at < 0)
        at += (int64_t)count_of(object);
    if (at < 0 || at >= (int64_t)count_of(object))
        answer_nil(call);
    else
        answer_bulk(call, list_at(object, (size_t)at));
}

static void run_lrange(struct call *call)
{
    struct object *object;
    int64_t from, to;
    size_t first, count;

    if (!read_int(call, 2, &from) || !read_int(call, 3, &to) ||
        !find_object(call, 1, LIST, &object))
        return;
    count = range_of(from, to, count_of(object), &first);
    answer_array(call, count);
    for (size_t i = 0; i < count; i++)
        answer_bulk(call, list_at(object, first + i));
}

static void push(struct call *call, bool at_end)
{
    struct object *object;

    if (!make_object(call, 1, LIST, &object))
        return;
    for (size_t i = 2; i < call->argc; i++)
        list_push(object, call->argv[i], at_end);
    answer_int(call, (int64_t)object->count);
}

static void run_lpush(struct call *call)
{
    push(call, false);
}

static void run_rpush(struct call *call)
{
    push(call, true);
}

static void run_lpop(struct call *call)
{
    struct object *object;

    if (call->argc > 2)
        unknown_option(call, 2);
    if (!find_object(call, 1, LIST, &object))
        return;
    if (object == NULL) {
        answer_nil(call);
        return;
    }
    answer_bulk(call, list_at(object, 0));
    list_drop(object, 1, false);
    drop_if_empty(call, 1);
}

static void run_lset(struct call *call)
{
    struct object *object;
    int64_t at;

    if (!find_object(call, 1, LIST, &object))
        return;
    if (object == NULL) {
        answer_error(call, "ERR no such key");
        return;
    }
    if (!read_int(call, 2, &at))
        return;
    if (at < 0)
        at += (int64_t)object->count;
    if (at < 0 || at >= (int64_t)object->count) {
        answer_error(call, "ERR index out of range");
        return;
    }
    list_set(object, (size_t)at, call->argv[3]);
    answer_status(call, "OK");
}

static void run_ltrim(struct call *call)
{
    struct object *object;
    int64_t from, to;
    size_t first, count;

    if (!read_int(call, 2, &from) || !read_int(call, 3, &to) ||
        !find_object(call, 1, LIST, &object))
        return;
    if (object != NULL) {
        count = range_of(from, to, object->count, &first);
        if (count == 0) {
            list_drop(object, object->count, false);
        } else {
            list_drop(object, object->count - first - count, true);
            list_drop(object, first, false);
        }
        drop_if_empty(call, 1);
    }
    answer_status(call, "OK");
}

/* Both ends left, as weir asks. */
static void run_blmove(struct call *call)
{
    struct object *from, *to;
    double seconds;
    struct text text;

    if (call->client == NULL) {
        answer_error(call, "ERR This Redis command is not allowed from script");
        return;
    }
    if (!is_word(call->argv[3], "LEFT") || !is_word(call->argv[4], "LEFT"))
        unknown_option(call, 3);
    if (!read_score(call, 5, &seconds) || !find_object(call, 1, LIST, &from))
        return;
    if (from == NULL) {
        block(call, (int64_t)(seconds * 1e6));
        return;
    }
    if (!make_object(call, 2, LIST, &to))
        return;
    text = text_new(list_at(from, 0));
    answer_bulk(call, (struct slice){text.ptr, text.len});
    list_drop(from, 1, false);
    list_push(to, (struct slice){text.ptr, text.len}, false);
    free(text.ptr);
    drop_if_empty(call, 1);
}

const struct command list_commands[] = {
    {"LLEN", 2, run_llen, ONE_KEY},
    {"LINDEX", 3, run_lindex, ONE_KEY},
    {"LRANGE", 4, run_lrange, ONE_KEY},
    {"LPUSH", -3, run_lpush, WRITES | GROWS | ONE_KEY},
    {"RPUSH", -3, run_rpush, WRITES | GROWS | ONE_KEY},
    {"LPOP", -2, run_lpop, WRITES | ONE_KEY},
    {"LTRIM", 4, run_ltrim, WRITES | ONE_KEY},
    {"LSET", 4, run_lset, WRITES | GROWS | ONE_KEY},
    {"BLMOVE", 6, run_blmove, WRITES | GROWS | TWO_KEYS},
    {0},
};

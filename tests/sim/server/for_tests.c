/* SPDX-License-Identifier: MIT */

/* Commands that only tests ask: weir itself does not use them. */

#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/private.h"

static void run_eval(struct call *call)
{
    char sha[41];
    struct slice *words;
    struct call by_sha = *call;

    if (!load_script(call, call->argv[1], sha))
        return;
    words = malloc(call->argc * sizeof(*words));
    if (words == NULL)
        server_fail("no memory for %zu words", call->argc);
    memcpy(words, call->argv, call->argc * sizeof(*words));
    words[1] = (struct slice){sha, 40};
    by_sha.argv = words;
    run_evalsha(&by_sha);
    free(words);
}

static bool matches(const struct entry *entry, struct slice pattern)
{
    return entry->len >= pattern.len - 1 &&
           memcmp(entry->name, pattern.ptr, pattern.len - 1) == 0;
}

/* Patterns have one star, at their end. */
static void run_keys(struct call *call)
{
    struct table *keys = &call->server->keys;
    struct slice pattern = call->argv[1];
    size_t count = 0, i = 0;

    if (pattern.len == 0 ||
        memchr(pattern.ptr, '*', pattern.len) != pattern.ptr + pattern.len - 1)
        unknown_option(call, 1);
    while (i < keys->count) /* a look removes what has expired */
        if (key_object(call->server, entry_name(keys->list[i])) != NULL)
            count += matches(keys->list[i++], pattern);
    answer_array(call, count);
    for (i = 0; i < keys->count; i++)
        if (matches(keys->list[i], pattern))
            answer_bulk(call, entry_name(keys->list[i]));
}

static void run_object(struct call *call)
{
    struct object *object;

    if (!is_word(call->argv[1], "ENCODING"))
        unknown_option(call, 1);
    if (!find_object(call, 2, HASH, &object))
        return;
    if (object == NULL)
        answer_nil(call);
    else
        answer_text(call, object->is_wide ? "hashtable" : "listpack");
}

/* A planted fault asks this in place of another command. */
static void run_echo(struct call *call)
{
    answer_bulk(call, call->argv[1]);
}

/* Likewise. */
static void run_zpopmax(struct call *call)
{
    sorted_pop(call, true);
}

static void run_flushall(struct call *call)
{
    server_clear(call->server);
    answer_status(call, "OK");
}

const struct command test_commands[] = {
    {"ECHO", 2, run_echo, LOADS},
    {"EVAL", -3, run_eval, SCRIPT},
    {"KEYS", 2, run_keys, 0},
    {"OBJECT", 3, run_object, HAS_PARTS | ONE_KEY},
    {"FLUSHALL", 1, run_flushall, WRITES},
    {"ZPOPMAX", -2, run_zpopmax, WRITES | ONE_KEY},
    {0},
};

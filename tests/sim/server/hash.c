/* SPDX-License-Identifier: MIT */

/* Hashes and sets. */

#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/server/private.h"

/* Redis keeps so much as a list: hash-max-listpack-value and -entries. */
enum { LIST_TEXT_MAX = 64, LIST_FIELDS_MAX = TABLE_SMALL };

static struct entry *field_of(const struct object *object, struct slice field)
{
    return object == NULL ? NULL : table_find(&object->table, field);
}

static void answer_field(struct call *call, const struct entry *entry)
{
    if (entry == NULL)
        answer_nil(call);
    else
        answer_bulk(call, entry_value(entry));
}

static void run_hget(struct call *call)
{
    struct object *object;

    if (find_object(call, 1, HASH, &object))
        answer_field(call, field_of(object, call->argv[2]));
}

static void run_hmget(struct call *call)
{
    struct object *object;

    if (!find_object(call, 1, HASH, &object))
        return;
    answer_array(call, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        answer_field(call, field_of(object, call->argv[i]));
}

static void answer_fields(struct call *call, bool names, bool values)
{
    struct object *object;
    size_t count;

    if (!find_object(call, 1, HASH, &object))
        return;
    count = object == NULL ? 0 : object->table.count;
    answer_array(call, count * (names + values));
    for (size_t i = 0; i < count; i++) {
        if (names)
            answer_bulk(call, entry_name(object->table.list[i]));
        if (values)
            answer_bulk(call, entry_value(object->table.list[i]));
    }
}

static void run_hgetall(struct call *call)
{
    answer_fields(call, true, true);
}

static void run_hkeys(struct call *call)
{
    answer_fields(call, true, false);
}

static void run_hvals(struct call *call)
{
    answer_fields(call, false, true);
}

static void run_hlen(struct call *call)
{
    struct object *object;

    if (find_object(call, 1, HASH, &object))
        answer_int(call, object == NULL ? 0 : (int64_t)object->table.count);
}

static void run_hexists(struct call *call)
{
    struct object *object;

    if (find_object(call, 1, HASH, &object))
        answer_int(call, field_of(object, call->argv[2]) != NULL);
}

/* Sets it; true: the field is new. */
static bool put_field(struct object *object, struct slice field,
                      struct slice value)
{
    struct entry *entry = table_find(&object->table, field);
    bool is_new = entry == NULL;

    if (is_new)
        entry = table_add(&object->table, field);
    if (field.len > LIST_TEXT_MAX || value.len > LIST_TEXT_MAX ||
        object->table.count > LIST_FIELDS_MAX)
        object->is_wide = true;
    entry_set(entry, value);
    return is_new;
}

static void run_hset(struct call *call)
{
    struct object *object;
    int64_t count = 0;

    if (call->argc % 2 != 0) {
        answer_error(call, "ERR wrong number of arguments for 'hset' command");
        return;
    }
    if (!make_object(call, 1, HASH, &object))
        return;
    for (size_t i = 2; i < call->argc; i += 2)
        count += put_field(object, call->argv[i], call->argv[i + 1]);
    answer_int(call, count);
}

static void run_hsetnx(struct call *call)
{
    struct object *object;

    if (!make_object(call, 1, HASH, &object))
        return;
    if (field_of(object, call->argv[2]) != NULL) {
        answer_int(call, 0);
        return;
    }
    (void)put_field(object, call->argv[2], call->argv[3]); /* it is new */
    answer_int(call, 1);
}

static void run_hincrby(struct call *call)
{
    struct object *object;
    const struct entry *entry;
    int64_t by, value = 0;
    char text[24];
    int len;

    if (!read_int(call, 3, &by) || !make_object(call, 1, HASH, &object))
        return;
    entry = field_of(object, call->argv[2]);
    if (entry != NULL && !parse_int(entry_value(entry), &value)) {
        answer_error(call, "ERR hash value is not an integer");
        return;
    }
    if ((by < 0 && value < INT64_MIN - by) ||
        (by > 0 && value > INT64_MAX - by)) {
        answer_error(call, "ERR increment or decrement would overflow");
        return;
    }
    value += by;
    len = snprintf(text, sizeof(text), "%" PRId64, value);
    (void)put_field(object, call->argv[2],
                    (struct slice){text, (size_t)len}); /* new or not */
    answer_int(call, value);
}

/* Removes fields of a hash, or members of a set. */
static void remove_each(struct call *call, enum object_type type)
{
    struct object *object;
    int64_t count = 0;

    if (!find_object(call, 1, type, &object))
        return;
    for (size_t i = 2; object != NULL && i < call->argc; i++) {
        struct entry *entry = table_find(&object->table, call->argv[i]);

        if (entry == NULL)
            continue;
        table_remove(&object->table, entry);
        count++;
    }
    drop_if_empty(call, 1);
    answer_int(call, count);
}

static void run_hdel(struct call *call)
{
    remove_each(call, HASH);
}

/* Redis promises no order: with a count, the answer has neighbours from a place
 * by chance, so that a test meets all of them. */
static void run_hrandfield(struct call *call)
{
    struct object *object;
    int64_t count = 1;
    bool with_values = call->argc == 4;
    size_t answers;

    if (with_values && !is_word(call->argv[3], "WITHVALUES"))
        unknown_option(call, 3);
    if ((call->argc > 2 && !read_int(call, 2, &count)) ||
        !find_object(call, 1, HASH, &object))
        return;
    if (call->argc == 2) {
        if (object == NULL)
            answer_nil(call);
        else
            answer_bulk(call, entry_name(object->table.list[server_below(
                                  call->server, object->table.count)]));
        return;
    }
    answers = count < 0 ? (size_t)-count : (size_t)count;
    if (object == NULL)
        answers = 0;
    else if (count > 0 && answers > object->table.count)
        answers = object->table.count;
    answer_array(call, answers * (1 + with_values));
    for (size_t i = 0,
                first = object == NULL
                            ? 0
                            : server_below(call->server, object->table.count);
         i < answers; i++) {
        size_t at = count < 0 ? server_below(call->server, object->table.count)
                              : (first + i) % object->table.count;

        answer_bulk(call, entry_name(object->table.list[at]));
        if (with_values)
            answer_bulk(call, entry_value(object->table.list[at]));
    }
}

/* --- sets ---------------------------------------------------------------- */

static void run_sadd(struct call *call)
{
    struct object *object;
    int64_t count = 0;

    if (!make_object(call, 1, SET, &object))
        return;
    for (size_t i = 2; i < call->argc; i++) {
        if (table_find(&object->table, call->argv[i]) != NULL)
            continue;
        (void)table_add(&object->table, call->argv[i]); /* has no value */
        count++;
    }
    answer_int(call, count);
}

static void run_srem(struct call *call)
{
    remove_each(call, SET);
}

/* --- scans --------------------------------------------------------------- */

/* All in one step, which Redis may do. */
static void scan(struct call *call, enum object_type type)
{
    struct object *object;
    size_t count;

    for (size_t i = 3; i < call->argc; i += 2)
        if (!is_word(call->argv[i], "COUNT"))
            unknown_option(call, i);
    if (!find_object(call, 1, type, &object))
        return;
    count = object == NULL ? 0 : object->table.count;
    answer_array(call, 2);
    answer_text(call, "0");
    answer_array(call, type == SET ? count : 2 * count);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = object->table.list[i];

        answer_bulk(call, entry_name(entry));
        if (type == HASH)
            answer_bulk(call, entry_value(entry));
        else if (type == SORTED)
            answer_score(call, entry->score);
    }
}

static void run_sscan(struct call *call)
{
    scan(call, SET);
}

static void run_hscan(struct call *call)
{
    scan(call, HASH);
}

static void run_zscan(struct call *call)
{
    scan(call, SORTED);
}

const struct command hash_commands[] = {
    {"HGET", 3, run_hget, ONE_KEY},
    {"HMGET", -3, run_hmget, ONE_KEY},
    {"HGETALL", 2, run_hgetall, ONE_KEY},
    {"HKEYS", 2, run_hkeys, ONE_KEY},
    {"HVALS", 2, run_hvals, ONE_KEY},
    {"HLEN", 2, run_hlen, ONE_KEY},
    {"HEXISTS", 3, run_hexists, ONE_KEY},
    {"HRANDFIELD", -2, run_hrandfield, ONE_KEY},
    {"HSET", -4, run_hset, WRITES | GROWS | ONE_KEY},
    {"HSETNX", 4, run_hsetnx, WRITES | GROWS | ONE_KEY},
    {"HINCRBY", 4, run_hincrby, WRITES | GROWS | ONE_KEY},
    {"HDEL", -3, run_hdel, WRITES | ONE_KEY},
    {"SADD", -3, run_sadd, WRITES | GROWS | ONE_KEY},
    {"SREM", -3, run_srem, WRITES | ONE_KEY},
    {"SSCAN", -3, run_sscan, ONE_KEY},
    {"HSCAN", -3, run_hscan, ONE_KEY},
    {"ZSCAN", -3, run_zscan, ONE_KEY},
    {0},
};

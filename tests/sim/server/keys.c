/* SPDX-License-Identifier: MIT */

/* Keys of all types, and texts. */

#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/private.h"

#define WRONG_TYPE \
    "WRONGTYPE Operation against a key holding the wrong kind of value"
enum { TEXT_MAX = 512 * 1024 * 1024 };

int64_t now_ms(const struct server *server)
{
    return server->now_us / 1000;
}

void keys_clear(struct table *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        object_free(keys->list[i]->object);
    table_clear(keys);
}

static void delete_entry(struct server *server, struct entry *entry)
{
    object_free(entry->object);
    table_remove(&server->keys, entry);
}

/* Keys whose time is over are gone when one looks. */
static struct entry *find_key(struct server *server, struct slice key)
{
    struct entry *entry = table_find(&server->keys, key);

    if (entry == NULL || entry->object->expires_ms == 0 ||
        entry->object->expires_ms > now_ms(server))
        return entry;
    delete_entry(server, entry);
    return NULL;
}

struct object *key_object(struct server *server, struct slice key)
{
    struct entry *entry = find_key(server, key);

    return entry == NULL ? NULL : entry->object;
}

void key_delete(struct server *server, struct slice key)
{
    struct entry *entry = find_key(server, key);

    if (entry != NULL)
        delete_entry(server, entry);
}

bool find_object(struct call *call, size_t i, enum object_type type,
                 struct object **ret_object)
{
    *ret_object = key_object(call->server, call->argv[i]);
    if (*ret_object == NULL || (*ret_object)->type == type)
        return true;
    answer_error(call, WRONG_TYPE);
    return false;
}

bool make_object(struct call *call, size_t i, enum object_type type,
                 struct object **ret_object)
{
    if (!find_object(call, i, type, ret_object))
        return false;
    if (*ret_object == NULL) {
        *ret_object = object_new(type);
        table_add(&call->server->keys, call->argv[i])->object = *ret_object;
    }
    return true;
}

void drop_if_empty(struct call *call, size_t i)
{
    struct object *object = key_object(call->server, call->argv[i]);

    if (object != NULL && object_is_empty(object))
        key_delete(call->server, call->argv[i]);
}

/* --- all types ----------------------------------------------------------- */

static void run_del(struct call *call)
{
    int64_t count = 0;

    for (size_t i = 1; i < call->argc; i++) {
        if (key_object(call->server, call->argv[i]) == NULL)
            continue;
        key_delete(call->server, call->argv[i]);
        count++;
    }
    answer_int(call, count);
}

static void run_exists(struct call *call)
{
    int64_t count = 0;

    for (size_t i = 1; i < call->argc; i++)
        count += key_object(call->server, call->argv[i]) != NULL;
    answer_int(call, count);
}

static void rename_key(struct call *call, bool only_new)
{
    struct entry *entry = find_key(call->server, call->argv[1]);
    struct object *object;

    if (entry == NULL) {
        answer_error(call, "ERR no such key");
        return;
    }
    if (only_new && key_object(call->server, call->argv[2]) != NULL) {
        answer_int(call, 0);
        return;
    }
    object = entry->object;
    table_remove(&call->server->keys, entry);
    key_delete(call->server, call->argv[2]);
    table_add(&call->server->keys, call->argv[2])->object = object;
    if (only_new)
        answer_int(call, 1);
    else
        answer_status(call, "OK");
}

static void run_rename(struct call *call)
{
    rename_key(call, false);
}

static void run_renamenx(struct call *call)
{
    rename_key(call, true);
}

static void run_persist(struct call *call)
{
    struct object *object = key_object(call->server, call->argv[1]);
    bool had_time = object != NULL && object->expires_ms != 0;

    if (had_time)
        object->expires_ms = 0;
    answer_int(call, had_time);
}

static void run_pttl(struct call *call)
{
    const struct object *object = key_object(call->server, call->argv[1]);

    if (object == NULL)
        answer_int(call, -2);
    else if (object->expires_ms == 0)
        answer_int(call, -1);
    else
        answer_int(call, object->expires_ms - now_ms(call->server));
}

/* --- texts --------------------------------------------------------------- */

static void set_text(struct object *object, struct slice text)
{
    struct text copied = text_new(text); /* first: it may be of this object */

    free(object->text.ptr);
    object->text = copied;
}

static void run_set(struct call *call)
{
    struct object *object = key_object(call->server, call->argv[1]);
    bool only_new = false;
    int64_t px = 0;

    for (size_t i = 3; i < call->argc; i++) {
        if (is_word(call->argv[i], "NX")) {
            only_new = true;
        } else if (is_word(call->argv[i], "PX") && i + 1 < call->argc) {
            if (!read_int(call, ++i, &px))
                return;
            if (px <= 0) {
                answer_error(call, "ERR invalid expire time in 'set' command");
                return;
            }
        } else {
            unknown_option(call, i);
        }
    }
    if (only_new && object != NULL) {
        answer_nil(call);
        return;
    }
    key_delete(call->server, call->argv[1]);
    (void)make_object(call, 1, TEXT, &object); /* the key is free */
    set_text(object, call->argv[2]);
    object->expires_ms = px == 0 ? 0 : now_ms(call->server) + px;
    answer_status(call, "OK");
}

static void answer_object(struct call *call, const struct object *object)
{
    if (object == NULL)
        answer_nil(call);
    else
        answer_bulk(call, (struct slice){object->text.ptr, object->text.len});
}

static void run_get(struct call *call)
{
    struct object *object;

    if (find_object(call, 1, TEXT, &object))
        answer_object(call, object);
}

static void run_mget(struct call *call)
{
    answer_array(call, call->argc - 1);
    for (size_t i = 1; i < call->argc; i++) {
        const struct object *object = key_object(call->server, call->argv[i]);

        answer_object(call,
                      object != NULL && object->type == TEXT ? object : NULL);
    }
}

static void run_getrange(struct call *call)
{
    struct object *object;
    int64_t from, to;
    size_t first, len;

    if (!read_int(call, 2, &from) || !read_int(call, 3, &to) ||
        !find_object(call, 1, TEXT, &object))
        return;
    if (object == NULL || (from < 0 && to < 0 && from > to)) {
        answer_text(call, "");
        return;
    }
    if (to < 0 && to + (int64_t)object->text.len < 0)
        to = -(int64_t)object->text.len; /* the first byte, as Redis has it */
    len = range_of(from, to, object->text.len, &first);
    answer_bulk(call,
                (struct slice){object->text.ptr + (len > 0 ? first : 0), len});
}

static void run_setrange(struct call *call)
{
    struct slice part = call->argv[3];
    struct object *object;
    int64_t at;
    size_t end;

    if (!read_int(call, 2, &at))
        return;
    if (at < 0) {
        answer_error(call, "ERR offset is out of range");
        return;
    }
    if (!find_object(call, 1, TEXT, &object))
        return;
    if (part.len == 0) {
        answer_int(call, object == NULL ? 0 : (int64_t)object->text.len);
        return;
    }
    end = (size_t)at + part.len;
    if (end > TEXT_MAX) {
        answer_error(call, "ERR string exceeds maximum allowed size "
                           "(proto-max-bulk-len)");
        return;
    }
    (void)make_object(call, 1, TEXT, &object); /* it is a text, or free */
    if (end > object->text.len) {
        object->text.ptr = realloc(object->text.ptr, end + 1);
        if (object->text.ptr == NULL)
            server_fail("the server has no memory for %zu bytes", end);
        memset(object->text.ptr + object->text.len, 0, end - object->text.len);
        object->text.len = end;
    }
    memcpy(object->text.ptr + at, part.ptr, part.len);
    answer_int(call, (int64_t)object->text.len);
}

const struct command key_commands[] = {
    {"DEL", -2, run_del, WRITES | ALL_KEYS},
    {"UNLINK", -2, run_del, WRITES | ALL_KEYS},
    {"EXISTS", -2, run_exists, ALL_KEYS},
    {"RENAME", 3, run_rename, WRITES | TWO_KEYS},
    {"RENAMENX", 3, run_renamenx, WRITES | TWO_KEYS},
    {"PERSIST", 2, run_persist, WRITES | ONE_KEY},
    {"PTTL", 2, run_pttl, ONE_KEY},
    {"SET", -3, run_set, WRITES | GROWS | ONE_KEY},
    {"GET", 2, run_get, ONE_KEY},
    {"MGET", -2, run_mget, ALL_KEYS},
    {"GETRANGE", 4, run_getrange, ONE_KEY},
    {"SETRANGE", 4, run_setrange, WRITES | GROWS | ONE_KEY},
    {0},
};

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/mem.h"
#include "core/text.h"

/* What answers with one callback for each thing: dead jobs, and topics. */

enum {
    PAGE = 100,                      /* dead jobs fetched at a time */
    TOPICS_PAGE = 1000,              /* names, about */
    TOPICS_BYTES = 64 * 1024 * 1024, /* of all names: more than a million */
    TOPICS_PAGES = 1000 * 1000,
    CURSOR_MAX = 20
};

/* --- dead jobs ---------------------------------------------------------- */

struct dead_job {
    size_t id_at, id_len; /* in the list's names */
    int64_t died_ms;
};

struct dead_list {
    struct weir__ask ask;
    struct weir__store_topic *topic;
    weir_show_fn fn;
    void *arg;
    size_t left; /* of the limit */
    size_t rank; /* of the next page */
    struct weir__buf names;
    struct dead_job page[PAGE];
    size_t count; /* of the page */
};

static void ask_page(struct dead_list *list);

static void finish_list(struct dead_list *list, int code)
{
    list->fn(code, NULL, list->arg);
    weir__buf_fini(&list->names);
    weir__mem_free(list);
}

static void show_dead(const struct dead_list *list,
                      const struct redisReply *records, size_t index)
{
    const struct dead_job *job = &list->page[index];
    struct weir_job_info info = {
        .id = {list->names.ptr + job->id_at, job->id_len},
        .state = WEIR_JOB_DEAD,
        .due_ms = job->died_ms,
    };
    struct weir_slice bytes;

    if (!weir__reply_str(records, index, &bytes))
        return; /* deleted in between */
    if (!weir__id_is_sound(info.id))
        info.id = weir__slice_str("unreadable");
    if (weir__job_read(bytes, &info) != WEIR_OK)
        info.reason = weir__slice_str("malformed");
    list->fn(WEIR_OK, &info, list->arg);
}

static void on_records(struct weir__ask *ask, int code,
                       const struct redisReply *reply)
{
    struct dead_list *list = (struct dead_list *)ask; /* its first member */
    bool is_last = list->count < PAGE || list->left == list->count;

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK)
        for (size_t i = 0; i < list->count; i++)
            show_dead(list, reply, i);
    list->left -= list->count;
    list->rank += list->count;
    if (code != WEIR_OK || is_last)
        finish_list(list, code);
    else
        ask_page(list);
}

/* Names and times of one page; false when out of memory. */
static bool read_page(struct dead_list *list, const struct redisReply *reply)
{
    struct weir_slice id, score;

    list->count = 0;
    weir__buf_reset(&list->names);
    for (size_t i = 0; i + 1 < (size_t)reply->elements; i += 2) {
        struct dead_job *job = &list->page[list->count];

        if (list->count == PAGE || !weir__reply_str(reply, i, &id) ||
            !weir__reply_str(reply, i + 1, &score))
            break;
        job->id_at = list->names.len;
        job->id_len = id.len;
        job->died_ms = strtoll((const char *)score.ptr, NULL, 10);
        weir__buf_append(&list->names, id.ptr, id.len);
        list->count++;
    }
    return !list->names.failed;
}

static void on_page(struct weir__ask *ask, int code,
                    const struct redisReply *reply)
{
    struct dead_list *list = (struct dead_list *)ask; /* its first member */
    struct weir__buf bytes = {0};

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && !read_page(list, reply))
        code = WEIR_ENOMEM;
    if (code != WEIR_OK || list->count == 0) {
        finish_list(list, code);
        return;
    }
    list->ask.done = on_records;
    weir__resp_command(&bytes, 2 + list->count);
    weir__resp_str(&bytes, "HMGET");
    weir__prefix_key(&bytes, &list->topic->base.prefix, "rec");
    for (size_t i = 0; i < list->count; i++)
        weir__resp_bytes(&bytes,
                         weir__slice_of(list->names.ptr + list->page[i].id_at,
                                        list->page[i].id_len));
    weir__base_send(&list->topic->store->base, &bytes, NULL,
                    WEIR__SEND_AGAIN | weir__send_bodies(list->count),
                    &list->ask);
}

static void ask_page(struct dead_list *list)
{
    size_t count = list->left < PAGE ? list->left : PAGE;
    struct weir__buf bytes = {0};

    list->ask.done = on_page;
    weir__resp_command(&bytes, 5);
    weir__resp_str(&bytes, "ZRANGE");
    weir__prefix_key(&bytes, &list->topic->base.prefix, "dead");
    weir__resp_int(&bytes, (int64_t)list->rank);
    weir__resp_int(&bytes, (int64_t)(list->rank + count) - 1);
    weir__resp_str(&bytes, "WITHSCORES");
    weir__base_send(&list->topic->store->base, &bytes, NULL, WEIR__SEND_AGAIN,
                    &list->ask);
}

static void on_exists(struct weir__ask *ask, int code,
                      const struct redisReply *reply)
{
    struct dead_list *list = (struct dead_list *)ask; /* its first member */

    if (code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER &&
        reply->integer == 0)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK || list->left == 0)
        finish_list(list, code);
    else
        ask_page(list);
}

int weir__topic_dead(struct weir__store_topic *topic, size_t limit,
                     weir_show_fn fn, void *arg)
{
    struct weir__buf bytes = {0};
    struct dead_list *list;

    if (topic->store->base.is_closed)
        return WEIR_ECANCELED;
    list = weir__mem_new(sizeof(*list));
    if (list == NULL)
        return WEIR_ENOMEM;
    list->ask.done = on_exists;
    list->topic = topic;
    list->fn = fn;
    list->arg = arg;
    list->left = limit;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "EXISTS");
    weir__prefix_key(&bytes, &topic->base.prefix, "meta");
    weir__base_send(&topic->store->base, &bytes, NULL, WEIR__SEND_AGAIN,
                    &list->ask);
    return WEIR_OK;
}

/* --- topics ------------------------------------------------------------- */

/* Names come in pages, some of them twice, and are told sorted. */
struct topic_list {
    struct weir__ask ask;
    struct weir__base *base;
    weir_topics_fn fn;
    void *arg;
    struct weir__buf names; /* a NUL behind each */
    size_t count, pages;
};

static void ask_topics(struct topic_list *list, struct weir_slice cursor)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 5);
    weir__resp_str(&bytes, "SSCAN");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_bytes(&bytes, cursor);
    weir__resp_str(&bytes, "COUNT");
    weir__resp_int(&bytes, TOPICS_PAGE);
    weir__base_send(list->base, &bytes, NULL, WEIR__SEND_AGAIN, &list->ask);
    weir__conn_flush(list->base->commands);
}

static int by_bytes(const void *left, const void *right)
{
    const char *const *one = left;
    const char *const *other = right;

    return strcmp(*one, *other);
}

/* All names in order, each once; WEIR_ENOMEM. */
static int tell_topics(const struct topic_list *list)
{
    const char **names =
        weir__mem_grow(NULL, list->count + 1, sizeof(names[0]));
    const char *at = (const char *)list->names.ptr;

    if (names == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < list->count; i++, at += strlen(at) + 1)
        names[i] = at;
    if (list->count > 1)
        qsort(names, list->count, sizeof(names[0]), by_bytes);
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
            list->fn(WEIR_OK, names[i], list->arg);
    weir__mem_free(names);
    return WEIR_OK;
}

/* WEIR_ESERVER: not an answer to SSCAN. */
static int read_topics(struct topic_list *list, const struct redisReply *reply,
                       struct weir_slice *ret_cursor)
{
    struct weir_slice name;

    if (!weir__reply_str(reply, 0, ret_cursor) || ret_cursor->len == 0 ||
        ret_cursor->len > CURSOR_MAX || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return WEIR_ESERVER;
    for (size_t i = 0; i < (size_t)reply->element[1]->elements; i++) {
        if (!weir__reply_str(reply->element[1], i, &name) ||
            weir__topic_check(name, NULL) < 0)
            continue; /* no topic has such a name */
        weir__buf_append(&list->names, name.ptr, name.len);
        weir__buf_append(&list->names, "", 1);
        list->count++;
    }
    if (list->names.failed)
        return WEIR_ENOMEM;
    return list->names.len > TOPICS_BYTES ? WEIR_ETOOBIG : WEIR_OK;
}

static void on_topics(struct weir__ask *ask, int code,
                      const struct redisReply *reply)
{
    struct topic_list *list = (struct topic_list *)ask; /* its first member */
    struct weir_slice cursor;

    if (code == WEIR_OK)
        code = read_topics(list, reply, &cursor);
    if (code == WEIR_OK && !weir__slice_equal(cursor, weir__slice_str("0"))) {
        if (++list->pages < TOPICS_PAGES) {
            ask_topics(list, cursor);
            return;
        }
        code = WEIR_ESERVER; /* it has no end */
    }
    if (code == WEIR_OK)
        code = tell_topics(list);
    list->fn(code, NULL, list->arg);
    weir__buf_fini(&list->names);
    weir__mem_free(list);
}

int weir__delay_topics(struct weir__store *port, weir_topics_fn fn, void *arg)
{
    struct weir__base *base = (struct weir__base *)port; /* first member */
    struct topic_list *list;

    if (base->is_closed)
        return WEIR_ECANCELED;
    list = weir__mem_new(sizeof(*list));
    if (list == NULL)
        return WEIR_ENOMEM;
    list->ask.done = on_topics;
    list->base = base;
    list->fn = fn;
    list->arg = arg;
    ask_topics(list, weir__slice_str("0"));
    return WEIR_OK;
}

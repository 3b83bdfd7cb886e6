/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/store/store.h"
#include "core/mem.h"
#include "core/text.h"

/* The names of all topics on the server, of every kind. */

enum {
    TOPICS_PAGE = 1000,              /* names, about */
    TOPICS_BYTES = 64 * 1024 * 1024, /* of all names: more than a million */
    TOPICS_PAGES = 1000 * 1000,
    CURSOR_MAX = 20
};

/* Names come in pages, some of them twice, and are told sorted. */
struct topic_list {
    struct weir__request request;
    struct weir__redis *store;
    weir_topics_fn fn;
    void *arg;
    struct weir__buf names; /* a NUL behind each */
    size_t count, pages;
};

static void request_topics(struct topic_list *list, struct weir_slice cursor)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 5);
    weir__resp_str(&bytes, "SSCAN");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_bytes(&bytes, cursor);
    weir__resp_str(&bytes, "COUNT");
    weir__resp_int(&bytes, TOPICS_PAGE);
    weir__redis_send(list->store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &list->request);
    weir__conn_flush(list->store->commands);
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

static void on_topics(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct topic_list *list =
        (struct topic_list *)request; /* its first member */
    struct weir_slice cursor;

    if (code == WEIR_OK)
        code = read_topics(list, reply, &cursor);
    if (code == WEIR_OK && !weir__slice_equal(cursor, weir__slice_str("0"))) {
        if (++list->pages < TOPICS_PAGES) {
            request_topics(list, cursor);
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

int weir__redis_topics(struct weir__store *port, weir_topics_fn fn, void *arg)
{
    struct weir__redis *store = (struct weir__redis *)port; /* first member */
    struct topic_list *list;

    if (store->is_closed)
        return WEIR_ECANCELED;
    list = weir__mem_new(sizeof(*list));
    if (list == NULL)
        return WEIR_ENOMEM;
    list->request.done = on_topics;
    list->store = store;
    list->fn = fn;
    list->arg = arg;
    request_topics(list, weir__slice_str("0"));
    return WEIR_OK;
}

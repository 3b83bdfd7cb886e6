/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/mem.h"
#include "core/text.h"

/* The list of dead jobs. */

enum { PAGE = 100 }; /* dead jobs fetched at a time */

/* --- dead jobs ---------------------------------------------------------- */

struct dead_job {
    size_t id_at, id_len; /* in the list's names */
    int64_t died_ms;
};

struct dead_list {
    struct weir__request request;
    struct weir__delay_topic *topic;
    weir_show_fn fn;
    void *arg;
    size_t left; /* of the limit */
    size_t rank; /* of the next page */
    struct weir__buf names;
    struct dead_job page[PAGE];
    size_t count; /* of the page */
};

static void request_page(struct dead_list *list);

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

static void on_records(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct dead_list *list = (struct dead_list *)request; /* its first member */
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
        request_page(list);
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

static void on_page(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct dead_list *list = (struct dead_list *)request; /* its first member */
    struct weir__buf bytes = {0};

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && !read_page(list, reply))
        code = WEIR_ENOMEM;
    if (code != WEIR_OK || list->count == 0) {
        finish_list(list, code);
        return;
    }
    list->request.done = on_records;
    weir__resp_command(&bytes, 2 + list->count);
    weir__resp_str(&bytes, "HMGET");
    weir__prefix_key(&bytes, &list->topic->base.prefix, "rec");
    for (size_t i = 0; i < list->count; i++)
        weir__resp_bytes(&bytes,
                         weir__slice_of(list->names.ptr + list->page[i].id_at,
                                        list->page[i].id_len));
    weir__redis_send(list->topic->base.store, &bytes, NULL,
                     WEIR__SEND_AGAIN | weir__send_bodies(list->count),
                     &list->request);
}

static void request_page(struct dead_list *list)
{
    size_t count = list->left < PAGE ? list->left : PAGE;
    struct weir__buf bytes = {0};

    list->request.done = on_page;
    weir__resp_command(&bytes, 5);
    weir__resp_str(&bytes, "ZRANGE");
    weir__prefix_key(&bytes, &list->topic->base.prefix, "dead");
    weir__resp_int(&bytes, (int64_t)list->rank);
    weir__resp_int(&bytes, (int64_t)(list->rank + count) - 1);
    weir__resp_str(&bytes, "WITHSCORES");
    weir__redis_send(list->topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &list->request);
}

static void on_exists(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct dead_list *list = (struct dead_list *)request; /* its first member */

    if (code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER &&
        reply->integer == 0)
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK || list->left == 0)
        finish_list(list, code);
    else
        request_page(list);
}

int weir__delay_dead(struct weir__store_topic *base, size_t limit,
                     weir_show_fn fn, void *arg)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__buf bytes = {0};
    struct dead_list *list;

    if (topic->base.store->is_closed)
        return WEIR_ECANCELED;
    list = weir__mem_new(sizeof(*list));
    if (list == NULL)
        return WEIR_ENOMEM;
    list->request.done = on_exists;
    list->topic = topic;
    list->fn = fn;
    list->arg = arg;
    list->left = limit;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "EXISTS");
    weir__prefix_key(&bytes, &topic->base.prefix, "meta");
    weir__redis_send(topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &list->request);
    return WEIR_OK;
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/external/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Looking at entries, one page of them. */

enum { HEAD = 1, FIELDS = 4 };

struct list_request {
    struct weir__request request;
    struct weir__external_topic *topic;
    enum weir_job_state state;
    size_t limit;
    weir_show_fn fn;
    void *arg;
};

static void show(const struct list_request *list,
                 const struct redisReply *reply, size_t at)
{
    struct weir_job_info info = {.state = list->state};
    struct weir__external_entry entry = {0};
    struct weir__record record = {0};
    struct weir__buf bytes = {0};
    struct weir_slice past;

    if (!weir__reply_str(reply, at, &info.id) ||
        !weir__reply_int(reply, at + 1, &info.due_ms) ||
        !weir__reply_str(reply, at + 2, &past))
        return;
    if (!weir__id_is_sound(info.id))
        info.id = weir__slice_str("unreadable");
    weir__external_read_past(past, &record, NULL);
    (void)weir__external_read_body(&bytes, reply->element[at + 3],
                                   &entry); /* its text, if it is no value */
    info.counters = record.counters;
    info.reason = record.reason;
    info.error = record.error;
    if (!bytes.failed) {
        info.body = weir__slice_of(bytes.ptr + entry.body_at, entry.body_len);
        list->fn(WEIR_OK, &info, list->arg);
    }
    weir__buf_fini(&bytes);
}

static void on_listed(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct list_request *list =
        (struct list_request *)request; /* its first member */
    struct weir_slice kind;

    weir__topic_log_error(&list->topic->base, "list", code, reply);
    if (code == WEIR_OK && !weir__reply_str(reply, 0, &kind))
        code = WEIR_ESERVER;
    for (size_t at = HEAD; code == WEIR_OK && at + FIELDS <= reply->elements;
         at += FIELDS)
        show(list, reply, at);
    list->fn(code, NULL, list->arg);
    weir__mem_free(list);
}

static void on_found(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct list_request *list =
        (struct list_request *)request; /* its first member */
    struct weir__external_place place;
    struct weir__buf bytes = {0};

    code = weir__external_found(list->topic, code, reply, &place);
    if (code != WEIR_OK) {
        list->fn(code, NULL, list->arg);
        weir__mem_free(list);
        return;
    }
    list->request.done = on_listed;
    weir__resp_eval(&bytes, &weir__script_external_list, 7, 3);
    weir__prefix_keys(&bytes, &list->topic->base.prefix,
                      "meta wait run held past dead");
    weir__resp_str(&bytes, place.key);
    weir__resp_str(&bytes, place.group);
    weir__resp_str(&bytes, weir_job_state_name(list->state));
    weir__resp_int(&bytes, (int64_t)list->limit);
    weir__redis_send(
        list->topic->base.store, &bytes, &weir__script_external_list,
        WEIR__SEND_AGAIN | weir__send_bodies(list->limit), &list->request);
    weir__conn_flush(list->topic->base.store->commands);
}

int weir__external_list(struct weir__store_topic *base,
                        enum weir_job_state state, size_t limit,
                        weir_show_fn fn, void *arg)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct list_request *list;

    if (topic->base.store->is_closed)
        return WEIR_ECANCELED;
    list = weir__mem_new(sizeof(*list));
    if (list == NULL)
        return WEIR_ENOMEM;
    *list = (struct list_request){
        .request.done = on_found,
        .topic = topic,
        .state = state,
        .limit =
            limit < WEIR__EXTERNAL_LIST_MAX ? limit : WEIR__EXTERNAL_LIST_MAX,
        .fn = fn,
        .arg = arg,
    };
    weir__external_find(topic, &list->request);
    return WEIR_OK;
}

int weir__external_dead(struct weir__store_topic *topic, size_t limit,
                        weir_show_fn fn, void *arg)
{
    return weir__external_list(topic, WEIR_JOB_DEAD, limit, fn, arg);
}

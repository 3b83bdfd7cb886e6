/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/classic/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Requests about a topic. */

/* --- statistics ----------------------------------------------------------- */

/* What this worker holds and has not parked; of others nobody knows. */
static uint64_t unparked(const struct weir__classic_topic *topic)
{
    uint64_t count = 0;

    for (size_t i = 0; i < topic->consumer_count; i++)
        count += topic->consumers[i]->message != NULL &&
                 !topic->consumers[i]->message->is_parked;
    return count;
}

static bool holds_none(const struct weir__classic_topic *topic)
{
    for (size_t i = 0; i < topic->consumer_count; i++)
        if (topic->consumers[i]->message != NULL)
            return false;
    return true;
}

void weir__classic_counted(struct weir__stats_request *request)
{
    const struct weir__classic_topic *topic =
        weir__classic_topic_of(request->topic);

    request->stats.running += unparked(topic);
    if (topic->has_newer && holds_none(topic)) /* nothing passes the head */
        request->stats.newer = request->stats.scheduled + request->stats.ready;
}

/* --- lists ---------------------------------------------------------------- */

struct list_request {
    struct weir__request request; /* first */
    enum weir_job_state state;
    weir_show_fn fn;
    void *arg;
};

static void show(const struct list_request *request, struct weir_slice bytes)
{
    struct weir_job_info info = {.state = request->state};
    struct weir__record record = {0};
    int rc = weir__message_read(bytes, &info.id, &info.due_ms, &record);

    if (rc == WEIR_EMALFORMED) {
        info.id = weir__slice_str("unreadable");
        info.reason = weir__slice_str("malformed");
    }
    if (request->state == WEIR_JOB_RUNNING)
        info.due_ms = -1;
    info.counters = record.counters;
    info.added_ms = record.added_ms;
    info.headers = record.headers;
    info.attempts = record.attempts;
    info.url = record.url;
    info.ttl_ms = record.ttl_ms;
    info.error = record.error;
    info.body = record.body;
    request->fn(WEIR_OK, &info, request->arg);
}

static void on_list(struct weir__request *base, int code,
                    const struct redisReply *reply)
{
    struct list_request *request =
        (struct list_request *)base; /* its first member */
    struct weir_slice bytes;
    int64_t exists = 0;

    if (code == WEIR_OK && !weir__reply_int(reply, 0, &exists))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && exists == 0)
        code = WEIR_ENOTFOUND;
    for (size_t i = 1; code == WEIR_OK && weir__reply_str(reply, i, &bytes);
         i++)
        show(request, bytes);
    request->fn(code, NULL, request->arg);
    weir__mem_free(request);
}

int weir__classic_list(struct weir__store_topic *base,
                       const struct weir__list *what, weir_show_fn fn,
                       void *arg)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);
    struct weir__buf bytes = {0};
    struct list_request *request;

    request = weir__mem_new(sizeof(*request));
    if (request == NULL)
        return WEIR_ENOMEM;
    request->request.done = on_list;
    request->state = what->state;
    request->fn = fn;
    request->arg = arg;
    weir__resp_eval(&bytes, &weir__script_classic_list, 3, 2);
    weir__prefix_keys(&bytes, &topic->base.prefix, "fifo parked meta");
    weir__resp_str(&bytes, weir_job_state_name(what->state));
    weir__resp_int(&bytes,
                   what->limit > INT32_MAX ? INT32_MAX : (int64_t)what->limit);
    weir__place_send(topic->base.place, &bytes, &weir__script_classic_list,
                     WEIR__SEND_AGAIN | weir__send_bodies(what->limit),
                     &request->request);
    return WEIR_OK;
}

/* --- purging -------------------------------------------------------------- */

struct purge_request {
    struct weir__request request; /* first */
    weir_count_fn fn;
    void *arg;
};

static void on_purged(struct weir__request *base, int code,
                      const struct redisReply *reply)
{
    struct purge_request *request =
        (struct purge_request *)base; /* its first member */
    int64_t count = 0;

    if (code == WEIR_OK && !weir__reply_int(reply, 0, &count))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && count < 0)
        code = WEIR_ENOTFOUND;
    request->fn(code, code == WEIR_OK ? (uint64_t)count : 0, request->arg);
    weir__mem_free(request);
}

int weir__classic_purge(struct weir__store_topic *base, enum weir__purge what,
                        weir_count_fn fn, void *arg)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);
    struct weir__buf bytes = {0};
    struct purge_request *request;

    if (what == WEIR__PURGE_DEAD)
        return WEIR_EKIND;
    request = weir__mem_new(sizeof(*request));
    if (request == NULL)
        return WEIR_ENOMEM;
    request->request.done = on_purged;
    request->fn = fn;
    request->arg = arg;
    weir__resp_eval(&bytes, &weir__script_classic_purge, 4, 0);
    weir__prefix_keys(&bytes, &topic->base.prefix, "fifo parked alive meta");
    weir__place_send(topic->base.place, &bytes, &weir__script_classic_purge,
                     WEIR__SEND_AGAIN, &request->request);
    return WEIR_OK;
}

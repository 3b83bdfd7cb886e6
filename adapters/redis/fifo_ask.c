/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/fifo_private.h"
#include "adapters/redis/late.h"
#include "core/mem.h"
#include "core/text.h"

/* Requests about a topic. */

static int send(struct weir__store_topic *topic, struct weir__buf *bytes,
                const struct weir__script *script, weir__reply_fn fn, void *arg)
{
    int rc = weir__conn_send(topic->store->commands, bytes, script,
                             WEIR__SEND_AGAIN, fn, arg);

    if (rc < 0)
        weir__mem_free(arg);
    return rc;
}

/* --- statistics ----------------------------------------------------------- */

struct stats_ask {
    struct weir__store_topic *topic;
    weir_stats_fn fn;
    void *arg;
    int64_t now_ms;
    struct weir_stats stats;
};

static uint64_t not_negative(int64_t value)
{
    return value < 0 ? 0 : (uint64_t)value;
}

/* What this worker holds and has not parked; of others nobody knows. */
static uint64_t unparked(const struct weir__store_topic *topic)
{
    uint64_t count = 0;

    for (size_t i = 0; i < topic->consumer_count; i++)
        count += topic->consumers[i]->message != NULL &&
                 !topic->consumers[i]->message->is_parked;
    return count;
}

static int read_stats(struct stats_ask *ask, const struct redisReply *reply)
{
    int64_t numbers[12] = {0};
    struct weir_slice kind;

    for (size_t i = 0; i < 12; i++)
        if (i != 1 && !weir__reply_int(reply, i, &numbers[i]))
            return WEIR_ESERVER;
    if (!weir__reply_str(reply, 1, &kind))
        return WEIR_ESERVER;
    if (kind.len == 0)
        return WEIR_ENOTFOUND;
    if (!weir__slice_equal(kind,
                           weir__slice_str(ask->topic->store->policy->kind)))
        return WEIR_EKIND;
    ask->now_ms = numbers[0];
    ask->stats = (struct weir_stats){
        .topic = ask->topic->name,
        .kind = ask->topic->store->policy->kind,
        .paused = numbers[2] != 0,
        .ready_is_exact = true,
        .scheduled = not_negative(numbers[3] - numbers[4]),
        .ready = not_negative(numbers[4]),
        .running = not_negative(numbers[5]) + unparked(ask->topic),
        .added_total = not_negative(numbers[6]),
        .done_total = not_negative(numbers[7]),
        .retried_total = not_negative(numbers[8]),
        .failed_total = not_negative(numbers[9]),
        .expired_total = not_negative(numbers[10]),
        .crashed_total = not_negative(numbers[11]),
        .lateness_p50_us = -1,
        .lateness_p99_us = -1,
        .lateness_max_us = -1,
    };
    return WEIR_OK;
}

static void on_late(int code, const struct redisReply *reply, void *arg)
{
    struct stats_ask *ask = arg;

    if (code == WEIR_OK)
        weir__late_read(reply, ask->now_ms, &ask->stats);
    ask->fn(code, code == WEIR_OK ? &ask->stats : NULL, ask->arg);
    weir__mem_free(ask);
}

static void on_stats(int code, const struct redisReply *reply, void *arg)
{
    struct stats_ask *ask = arg;
    struct weir__buf bytes = {0};

    if (code == WEIR_OK)
        code = read_stats(ask, reply);
    if (code == WEIR_OK) {
        weir__resp_command(&bytes, 2);
        weir__resp_str(&bytes, "HGETALL");
        weir__fifo_keys(&bytes, ask->topic, "late");
        code = weir__conn_send(ask->topic->store->commands, &bytes, NULL,
                               WEIR__SEND_AGAIN, on_late, ask);
    }
    if (code == WEIR_OK)
        return;
    ask->fn(code, NULL, ask->arg);
    weir__mem_free(ask);
}

int weir__fifo_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                     void *arg)
{
    struct weir__buf bytes = {0};
    struct stats_ask *ask;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    ask = weir__mem_new(sizeof(*ask));
    if (ask == NULL)
        return WEIR_ENOMEM;
    ask->topic = topic;
    ask->fn = fn;
    ask->arg = arg;
    weir__resp_eval(&bytes, &weir__script_fifo_stats, 3, 0);
    weir__fifo_keys(&bytes, topic, "fifo parked meta");
    return send(topic, &bytes, &weir__script_fifo_stats, on_stats, ask);
}

void weir__fifo_lateness(struct weir__store_topic *topic,
                         const uint32_t *counts, int64_t max_us)
{
    size_t len = strlen(topic->prefix);
    struct weir__buf bytes = {0};
    char key[WEIR__FIFO_KEY_MAX];

    memcpy(key, topic->prefix, len);
    memcpy(key + len, "late", 4); /* fits */
    if (!topic->store->is_closed &&
        weir__late_write(&bytes, weir__slice_of(key, len + 4), counts, max_us))
        (void)weir__conn_send(topic->store->commands, &bytes,
                              &weir__script_lateness, WEIR__SEND_ONCE, NULL,
                              NULL); /* not worth a failure */
}

/* --- lists ---------------------------------------------------------------- */

struct list_ask {
    enum weir_job_state state;
    weir_show_fn fn;
    void *arg;
};

static void show(const struct list_ask *ask, struct weir_slice bytes)
{
    struct weir_job_info info = {.state = ask->state};
    struct weir__record record = {0};
    int rc = weir__message_read(bytes, &info.id, &info.due_ms, &record);

    if (rc == WEIR_EMALFORMED) {
        info.id = weir__slice_str("unreadable");
        info.reason = weir__slice_str("malformed");
    }
    if (ask->state == WEIR_JOB_RUNNING)
        info.due_ms = -1;
    info.counters = record.counters;
    info.url = record.url;
    info.ttl_ms = record.ttl_ms;
    info.error = record.error;
    info.body = record.body;
    ask->fn(WEIR_OK, &info, ask->arg);
}

static void on_list(int code, const struct redisReply *reply, void *arg)
{
    struct list_ask *ask = arg;
    struct weir_slice bytes;
    int64_t exists = 0;

    if (code == WEIR_OK && !weir__reply_int(reply, 0, &exists))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && exists == 0)
        code = WEIR_ENOTFOUND;
    for (size_t i = 1; code == WEIR_OK && weir__reply_str(reply, i, &bytes);
         i++)
        show(ask, bytes);
    ask->fn(code, NULL, ask->arg);
    weir__mem_free(ask);
}

int weir__fifo_list(struct weir__store_topic *topic, enum weir_job_state state,
                    size_t limit, weir_show_fn fn, void *arg)
{
    struct weir__buf bytes = {0};
    struct list_ask *ask;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    ask = weir__mem_new(sizeof(*ask));
    if (ask == NULL)
        return WEIR_ENOMEM;
    ask->state = state;
    ask->fn = fn;
    ask->arg = arg;
    weir__resp_eval(&bytes, &weir__script_fifo_list, 3, 2);
    weir__fifo_keys(&bytes, topic, "fifo parked meta");
    weir__resp_str(&bytes, weir_job_state_name(state));
    weir__resp_int(&bytes, limit > INT32_MAX ? INT32_MAX : (int64_t)limit);
    return send(topic, &bytes, &weir__script_fifo_list, on_list, ask);
}

/* --- purging -------------------------------------------------------------- */

struct purge_ask {
    weir_count_fn fn;
    void *arg;
};

static void on_purged(int code, const struct redisReply *reply, void *arg)
{
    struct purge_ask *ask = arg;
    int64_t count = 0;

    if (code == WEIR_OK && !weir__reply_int(reply, 0, &count))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && count < 0)
        code = WEIR_ENOTFOUND;
    ask->fn(code, code == WEIR_OK ? (uint64_t)count : 0, ask->arg);
    weir__mem_free(ask);
}

int weir__fifo_purge(struct weir__store_topic *topic, enum weir__purge what,
                     weir_count_fn fn, void *arg)
{
    struct weir__buf bytes = {0};
    struct purge_ask *ask;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    if (what == WEIR__PURGE_DEAD)
        return WEIR_EKIND;
    ask = weir__mem_new(sizeof(*ask));
    if (ask == NULL)
        return WEIR_ENOMEM;
    ask->fn = fn;
    ask->arg = arg;
    weir__resp_eval(&bytes, &weir__script_fifo_purge, 4, 0);
    weir__fifo_keys(&bytes, topic, "fifo parked alive meta");
    return send(topic, &bytes, &weir__script_fifo_purge, on_purged, ask);
}

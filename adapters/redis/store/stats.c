/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/late.h"
#include "adapters/redis/store/store.h"
#include "core/mem.h"
#include "core/text.h"

/* Counts of a topic, and how late its jobs started in the last five minutes. */

void weir__stats_finish(struct weir__stats_request *stats, int code)
{
    stats->fn(code, code == WEIR_OK ? &stats->stats : NULL, stats->arg);
    weir__mem_free(stats);
}

/* --- lateness ----------------------------------------------------------- */

static void on_late(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__stats_request *stats =
        (struct weir__stats_request *)request; /* first */

    if (code == WEIR_OK)
        weir__late_read(reply, stats->now_ms, &stats->stats);
    weir__stats_finish(stats, code);
}

void weir__topic_lateness(struct weir__store_topic *port,
                          const uint32_t *counts, int64_t max_us)
{
    struct weir__store_topic *topic = (void *)port; /* its first member */
    const struct weir__prefix *prefix = &topic->prefix;
    struct weir__buf bytes = {0};
    char key[WEIR__KEY_MAX];

    memcpy(key, prefix->text, prefix->len);
    memcpy(key + prefix->len, "late", 4); /* fits */
    if (weir__late_write(&bytes, weir__slice_of(key, prefix->len + 4), counts,
                         max_us))
        weir__redis_send(topic->store, &bytes, &weir__script_store_lateness,
                         WEIR__SEND_ONCE, NULL);
}

/* --- counts ------------------------------------------------------------- */

static uint64_t not_negative(int64_t value)
{
    return value < 0 ? 0 : (uint64_t)value;
}

int weir__stats_read(struct weir__stats_request *request,
                     const struct redisReply *reply)
{
    int64_t numbers[15] = {0};
    struct weir_slice kind;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (i != 1 && !weir__reply_int(reply, i, &numbers[i]))
            return WEIR_ESERVER;
    if (!weir__reply_str(reply, 1, &kind) ||
        kind.len >= sizeof(request->kind) || numbers[0] < 0)
        return WEIR_ESERVER;
    weir__topic_log_aside(request->topic, reply,
                          sizeof(numbers) / sizeof(numbers[0]));
    memcpy(request->kind, kind.ptr, kind.len);
    request->now_ms = numbers[0];
    request->stats = (struct weir_stats){
        .paused = numbers[2] != 0,
        .scheduled = not_negative(numbers[3]),
        .ready = not_negative(numbers[4]),
        .running = not_negative(numbers[5]),
        .dead = not_negative(numbers[6]),
        .ready_is_exact = numbers[7] != 0,
        .added_total = not_negative(numbers[8]),
        .done_total = not_negative(numbers[9]),
        .retried_total = not_negative(numbers[10]),
        .failed_total = not_negative(numbers[11]),
        .expired_total = not_negative(numbers[12]),
        .crashed_total = not_negative(numbers[13]),
        .dropped_total = not_negative(numbers[14]),
    };
    return WEIR_OK;
}

void weir__stats_counted(struct weir__request *request, int code,
                         const struct redisReply *reply)
{
    struct weir__stats_request *stats =
        (struct weir__stats_request *)request; /* first */
    struct weir__redis *store = request->store;
    struct weir__buf bytes = {0};

    weir__topic_log_error(stats->topic, "stats", code, reply);
    if (code == WEIR_OK)
        code = stats->read(stats, reply);
    if (code == WEIR_ESERVER)
        weir__topic_log_error(stats->topic, "stats", code, reply);
    if (code != WEIR_OK) {
        weir__stats_finish(stats, code);
        return;
    }
    stats->stats.topic = stats->topic->name;
    stats->stats.kind = stats->kind;
    stats->stats.lateness_p50_us = -1;
    stats->stats.lateness_p99_us = -1;
    stats->stats.lateness_max_us = -1;
    stats->request.done = on_late;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__prefix_key(&bytes, &stats->topic->prefix, "late");
    weir__redis_send(store, &bytes, NULL, WEIR__SEND_AGAIN, &stats->request);
    weir__conn_flush(store->commands);
}

int weir__stats_new(struct weir__store_topic *topic,
                    int (*read)(struct weir__stats_request *,
                                const struct redisReply *),
                    weir_stats_fn fn, void *arg,
                    struct weir__stats_request **ret_stats)
{
    struct weir__stats_request *stats;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    stats = weir__mem_new(sizeof(*stats));
    if (stats == NULL)
        return WEIR_ENOMEM;
    stats->request.done = weir__stats_counted;
    stats->topic = topic;
    stats->read = read;
    stats->fn = fn;
    stats->arg = arg;
    *ret_stats = stats;
    return WEIR_OK;
}

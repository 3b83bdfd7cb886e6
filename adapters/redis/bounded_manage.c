/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "adapters/redis/bounded_private.h"
#include "adapters/redis/delay_wire.h"
#include "adapters/redis/late.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Counts of a topic, and deleting what is in it. */

enum { PURGE_GROUPS = 200 }; /* of one list, named by one call */

/* --- statistics --------------------------------------------------------- */

struct stats_ask {
    struct weir__bound_ask ask;
    struct weir__bound_topic *topic;
    weir_stats_fn fn;
    void *arg;
    struct weir_stats stats;
};

static void on_late(struct weir__bound_ask *ask, int code,
                    const struct redisReply *reply)
{
    struct stats_ask *stats = (struct stats_ask *)ask; /* its first member */
    const struct weir__bounded *store = stats->topic->store;

    if (code == WEIR_OK)
        weir__late_read(reply,
                        store->ahead_ms + weir__bounded_now_ns(store) / 1000000,
                        &stats->stats);
    stats->fn(code, code == WEIR_OK ? &stats->stats : NULL, stats->arg);
    weir__mem_free(stats);
}

/* 0 where there is none. */
static uint64_t number_at(const struct redisReply *reply, size_t index)
{
    struct weir_slice digits;

    if (!weir__reply_str(reply, index, &digits) || digits.len > 18 ||
        digits.len == 0 || digits.ptr[0] == '-')
        return 0;
    return (uint64_t)weir__digits_read(digits);
}

static void read_counts(struct weir_stats *stats,
                        const struct redisReply *reply)
{
    *stats = (struct weir_stats){
        .kind = "bounded",
        .paused = number_at(reply, 1) != 0,
        .ready_is_exact = true,
        .ready = number_at(reply, 2),
        .running = number_at(reply, 3),
        .added_total = number_at(reply, 4),
        .done_total = number_at(reply, 5),
        .retried_total = number_at(reply, 6),
        .failed_total = number_at(reply, 7),
        .crashed_total = number_at(reply, 8),
        .dropped_overflow = number_at(reply, 9),
        .dropped_age = number_at(reply, 10),
        .dropped_ttl = number_at(reply, 11),
        .lateness_p50_us = -1,
        .lateness_p99_us = -1,
        .lateness_max_us = -1,
    };
    stats->dropped_total =
        stats->dropped_overflow + stats->dropped_age + stats->dropped_ttl;
}

static void on_counts(struct weir__bound_ask *ask, int code,
                      const struct redisReply *reply)
{
    struct stats_ask *stats = (struct stats_ask *)ask; /* its first member */
    struct weir__buf bytes = {0};
    struct weir_slice kind;

    if (code == WEIR_OK && !weir__reply_str(reply, 0, &kind))
        code = WEIR_ENOTFOUND;
    else if (code == WEIR_OK &&
             !weir__slice_equal(kind, weir__slice_str("bounded")))
        code = WEIR_EKIND;
    if (code != WEIR_OK) {
        stats->fn(code, NULL, stats->arg);
        weir__mem_free(stats);
        return;
    }
    read_counts(&stats->stats, reply);
    stats->stats.topic = stats->topic->name;
    stats->ask.done = on_late;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__bound_keys(&bytes, stats->topic->name, "late");
    weir__bounded_send(stats->topic->store, &bytes, NULL, WEIR__SEND_AGAIN,
                       &stats->ask);
    weir__conn_flush(stats->topic->store->commands);
}

int weir__bound_stats(struct weir__store_topic *base, weir_stats_fn fn,
                      void *arg)
{
    static const char *const fields[] = {
        "kind",    "paused", "waiting", "running",  "added", "done",
        "retried", "failed", "crashed", "overflow", "age",   "ttl"};
    struct weir__bound_topic *topic = weir__bound_topic_of(base);
    size_t count = sizeof(fields) / sizeof(fields[0]);
    struct weir__buf bytes = {0};
    struct stats_ask *stats;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    stats = weir__mem_new(sizeof(*stats));
    if (stats == NULL)
        return WEIR_ENOMEM;
    stats->ask.done = on_counts;
    stats->topic = topic;
    stats->fn = fn;
    stats->arg = arg;
    weir__resp_command(&bytes, 2 + count);
    weir__resp_str(&bytes, "HMGET");
    weir__bound_keys(&bytes, topic->name, "meta");
    for (size_t i = 0; i < count; i++)
        weir__resp_str(&bytes, fields[i]);
    weir__bounded_send(topic->store, &bytes, NULL, WEIR__SEND_AGAIN,
                       &stats->ask);
    return WEIR_OK;
}

void weir__bound_lateness(struct weir__store_topic *base,
                          const uint32_t *counts, int64_t max_us)
{
    struct weir__bound_topic *topic = weir__bound_topic_of(base);
    struct weir__buf bytes = {0};
    char key[WEIR__BOUND_KEY_MAX];

    (void)snprintf(key, sizeof(key), "weir:{%s}:late", topic->name); /* fits */
    if (weir__late_write(&bytes, weir__slice_str(key), counts, max_us))
        weir__bounded_send(topic->store, &bytes, &weir__script_lateness,
                           WEIR__SEND_ONCE, NULL);
}

/* --- deleting ----------------------------------------------------------- */

struct purge_ask {
    struct weir__bound_ask ask;
    struct weir__bound_topic *topic;
    weir_count_fn fn;
    void *arg;
    uint64_t deleted;
};

static void send_purge(struct purge_ask *purge, const struct redisReply *names)
{
    struct weir__bound_topic *topic = purge->topic;
    size_t count = names == NULL ? 0 : (size_t)names->elements - 1;
    struct weir__buf bytes = {0};
    struct weir_slice group;

    weir__resp_eval(&bytes, &weir__script_boundpurge, 6 + 2 * count, 2 + count);
    weir__bound_keys(&bytes, topic->name, "rot hot lease out meta ttl");
    for (size_t i = 1; i <= count && weir__reply_str(names, i, &group); i++) {
        weir__bound_group_key(&bytes, topic->name, 'g', group);
        weir__bound_group_key(&bytes, topic->name, 'l', group);
    }
    weir__resp_str(&bytes, "bounded");
    weir__resp_int(&bytes, PURGE_GROUPS);
    for (size_t i = 1; i <= count && weir__reply_str(names, i, &group); i++)
        weir__resp_bytes(&bytes, group);
    weir__bounded_send(topic->store, &bytes, &weir__script_boundpurge,
                       WEIR__SEND_AGAIN, &purge->ask);
}

static bool are_names(const struct redisReply *reply)
{
    struct weir_slice group;

    for (size_t i = 1; i < (size_t)reply->elements; i++)
        if (!weir__reply_str(reply, i, &group) || group.len > WEIR_MAX_ID)
            return false;
    return true;
}

static void on_purged(struct weir__bound_ask *ask, int code,
                      const struct redisReply *reply)
{
    struct purge_ask *purge = (struct purge_ask *)ask; /* its first member */
    int64_t deleted = 0;

    weir__bound_log_error(purge->topic, "purge", code, reply);
    if (code == WEIR_OK &&
        (!weir__reply_int(reply, 0, &deleted) || !are_names(reply)))
        code = WEIR_ESERVER;
    else if (code == WEIR_OK && deleted < 0)
        code = deleted == -1 ? WEIR_ENOTFOUND : WEIR_EKIND;
    if (code == WEIR_OK) {
        purge->deleted += (uint64_t)deleted;
        if (reply->elements > 1) {
            send_purge(purge, reply);
            weir__conn_flush(purge->topic->store->commands);
            return;
        }
    }
    purge->fn(code, purge->deleted, purge->arg);
    weir__mem_free(purge);
}

int weir__bound_purge(struct weir__store_topic *base, enum weir__purge what,
                      weir_count_fn fn, void *arg)
{
    struct weir__bound_topic *topic = weir__bound_topic_of(base);
    struct purge_ask *purge;

    if (what == WEIR__PURGE_DEAD)
        return WEIR_EKIND; /* none are kept */
    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    purge = weir__mem_new(sizeof(*purge));
    if (purge == NULL)
        return WEIR_ENOMEM;
    purge->ask.done = on_purged;
    purge->topic = topic;
    purge->fn = fn;
    purge->arg = arg;
    send_purge(purge, NULL);
    return WEIR_OK;
}

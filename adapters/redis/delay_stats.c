/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay_private.h"
#include "adapters/redis/delay_wire.h"
#include "adapters/redis/late.h"
#include "core/mem.h"
#include "core/text.h"

/* Counts of a topic, and how late its jobs started in the last five minutes. */

enum { MOST_NODES = 2000 }; /* that one stats call looks at */

struct stats_ask {
    struct weir__ask ask;
    struct weir__store_topic *topic;
    weir_stats_fn fn;
    void *arg;
    char kind[16];
    int64_t now_ms;
    struct weir_stats stats;
};

/* --- lateness ----------------------------------------------------------- */

static void on_late(struct weir__ask *ask, int code,
                    const struct redisReply *reply)
{
    struct stats_ask *stats = (struct stats_ask *)ask; /* its first member */

    if (code == WEIR_OK)
        weir__late_read(reply, stats->now_ms, &stats->stats);
    stats->fn(code, code == WEIR_OK ? &stats->stats : NULL, stats->arg);
    weir__mem_free(stats);
}

void weir__topic_lateness(struct weir__store_topic *topic,
                          const uint32_t *counts, int64_t max_us)
{
    struct weir__buf bytes = {0};
    char key[WEIR__KEY_MAX];

    memcpy(key, topic->prefix, topic->prefix_len);
    memcpy(key + topic->prefix_len, "late", 4); /* fits */
    if (weir__late_write(&bytes, weir__slice_of(key, topic->prefix_len + 4),
                         counts, max_us))
        weir__delay_send(topic->store, &bytes, &weir__script_lateness,
                         WEIR__SEND_ONCE, NULL);
}

/* --- counts ------------------------------------------------------------- */

static uint64_t not_negative(int64_t value)
{
    return value < 0 ? 0 : (uint64_t)value;
}

/* False: not an answer of the script. */
static bool read_counts(struct stats_ask *ask, const struct redisReply *reply)
{
    struct weir_stats *stats = &ask->stats;
    int64_t numbers[15] = {0};
    struct weir_slice kind;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (i != 1 && !weir__reply_int(reply, i, &numbers[i]))
            return false;
    if (!weir__reply_str(reply, 1, &kind) || kind.len >= sizeof(ask->kind))
        return false;
    memcpy(ask->kind, kind.ptr, kind.len);
    ask->now_ms = numbers[0];
    *stats = (struct weir_stats){
        .topic = ask->topic->name,
        .kind = ask->kind,
        .paused = numbers[2] != 0,
        .scheduled = not_negative(numbers[3] - numbers[4]),
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
        .lateness_p50_us = -1,
        .lateness_p99_us = -1,
        .lateness_max_us = -1,
    };
    return true;
}

static void on_counts(struct weir__ask *ask, int code,
                      const struct redisReply *reply)
{
    struct stats_ask *stats = (struct stats_ask *)ask; /* its first member */
    struct weir__buf bytes = {0};

    if (code == WEIR_OK && !read_counts(stats, reply))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && stats->kind[0] == '\0')
        code = WEIR_ENOTFOUND;
    if (code != WEIR_OK) {
        stats->fn(code, NULL, stats->arg);
        weir__mem_free(stats);
        return;
    }
    stats->ask.done = on_late;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__topic_key(&bytes, stats->topic, "late");
    weir__delay_send(stats->topic->store, &bytes, NULL, WEIR__SEND_AGAIN,
                     &stats->ask);
}

int weir__topic_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                      void *arg)
{
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
    weir__delay_eval(&bytes, &weir__script_stats, 3, 1);
    weir__topic_keys(&bytes, topic, "wait meta dead");
    weir__resp_int(&bytes, MOST_NODES);
    weir__delay_send(topic->store, &bytes, &weir__script_stats,
                     WEIR__SEND_AGAIN, &stats->ask);
    return WEIR_OK;
}

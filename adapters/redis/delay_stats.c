/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/delay_private.h"
#include "adapters/redis/delay_wire.h"
#include "core/assert.h"
#include "core/histogram.h"
#include "core/mem.h"

/* Counts of a topic, and how late its jobs started in the last five minutes. */

enum {
    MINUTES = 6,       /* slots of the hash `late`, the current one included */
    MOST_NODES = 2000, /* that one stats call looks at */
    MS_PER_MINUTE = 60000
};

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

struct late {
    uint64_t counts[MINUTES][WEIR__BUCKETS];
    int64_t max_us[MINUTES];
    int64_t minute[MINUTES]; /* what the slot holds; -1: nothing */
};

/* Fields are M, M:max and M:<bucket>. */
static void read_field(struct late *late, struct weir_slice field,
                       int64_t value)
{
    const char *text = (const char *)field.ptr; /* hiredis adds a NUL */
    size_t slot = field.len > 0 ? (size_t)(field.ptr[0] - '0') : MINUTES;
    unsigned long bucket;

    if (slot >= MINUTES)
        return;
    if (field.len == 1) {
        late->minute[slot] = value;
    } else if (strcmp(text + 1, ":max") == 0) {
        late->max_us[slot] = value;
    } else {
        bucket = strtoul(text + 2, NULL, 10);
        if (bucket < WEIR__BUCKETS && value > 0)
            late->counts[slot][bucket] += (uint64_t)value;
    }
}

static void sum_up(const struct late *late, int64_t now_ms,
                   struct weir_stats *stats)
{
    uint64_t counts[WEIR__BUCKETS] = {0};
    int64_t minute = now_ms / MS_PER_MINUTE;

    for (size_t slot = 0; slot < MINUTES; slot++) {
        if (late->minute[slot] < 0 || late->minute[slot] <= minute - MINUTES)
            continue;
        for (size_t i = 0; i < WEIR__BUCKETS; i++)
            counts[i] += late->counts[slot][i];
        if (late->max_us[slot] > stats->lateness_max_us)
            stats->lateness_max_us = late->max_us[slot];
    }
    stats->lateness_p50_us = weir__bucket_quantile_us(counts, 500);
    stats->lateness_p99_us = weir__bucket_quantile_us(counts, 990);
    /* The top of a bucket may lie above the largest value in it. */
    if (stats->lateness_p50_us > stats->lateness_max_us)
        stats->lateness_p50_us = stats->lateness_max_us;
    if (stats->lateness_p99_us > stats->lateness_max_us)
        stats->lateness_p99_us = stats->lateness_max_us;
}

static void on_late(struct weir__ask *ask, int code,
                    const struct redisReply *reply)
{
    struct stats_ask *stats = (struct stats_ask *)ask; /* its first member */
    struct late late = {0};
    struct weir_slice field, value;

    memset(late.minute, -1, sizeof(late.minute)); /* all bits: -1 */
    if (code == WEIR_OK && reply->type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i + 1 < (size_t)reply->elements; i += 2)
            if (weir__reply_str(reply, i, &field) &&
                weir__reply_str(reply, i + 1, &value))
                read_field(&late, field,
                           strtoll((const char *)value.ptr, NULL, 10));
        sum_up(&late, stats->now_ms, &stats->stats);
    }
    stats->fn(code, code == WEIR_OK ? &stats->stats : NULL, stats->arg);
    weir__mem_free(stats);
}

void weir__topic_lateness(struct weir__store_topic *topic,
                          const uint32_t *counts, int64_t max_us)
{
    struct weir__buf bytes = {0};
    size_t used = 0;

    for (size_t i = 0; i < WEIR__BUCKETS; i++)
        used += counts[i] > 0;
    if (used == 0)
        return;
    weir__delay_eval(&bytes, &weir__script_lateness, 1, 1 + 2 * used);
    weir__topic_key(&bytes, topic, "late");
    weir__resp_int(&bytes, max_us);
    for (size_t i = 0; i < WEIR__BUCKETS; i++) {
        if (counts[i] == 0)
            continue;
        weir__resp_int(&bytes, (int64_t)i);
        weir__resp_int(&bytes, counts[i]);
    }
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

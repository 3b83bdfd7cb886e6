/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/feed_private.h"
#include "adapters/redis/late.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Counts of a topic, and how late its entries started. */

struct stats_ask {
    struct weir__feed_ask ask;
    struct weir__feed_topic *topic;
    weir_stats_fn fn;
    void *arg;
    char kind[16];
    int64_t now_ms;
    struct weir_stats stats;
};

void weir__feed_lateness(struct weir__store_topic *base, const uint32_t *counts,
                         int64_t max_us)
{
    struct weir__feed_topic *topic = weir__feed_topic_of(base);
    struct weir__buf bytes = {0};
    char key[WEIR__FEED_KEY_MAX];

    (void)snprintf(key, sizeof(key), "weir:{%s}:late", topic->name);
    if (weir__late_write(&bytes, weir__slice_str(key), counts, max_us))
        weir__feed_send(topic->store, &bytes, &weir__script_lateness,
                        WEIR__SEND_ONCE, NULL);
}

static void finish(struct stats_ask *asked, int code)
{
    asked->fn(code, code == WEIR_OK ? &asked->stats : NULL, asked->arg);
    weir__mem_free(asked);
}

static void on_late(struct weir__feed_ask *ask, int code,
                    const struct redisReply *reply)
{
    struct stats_ask *asked = (struct stats_ask *)ask; /* its first member */

    if (code == WEIR_OK)
        weir__late_read(reply, asked->now_ms, &asked->stats);
    finish(asked, code);
}

/* --- counts ------------------------------------------------------------- */

static uint64_t not_negative(int64_t value)
{
    return value < 0 ? 0 : (uint64_t)value;
}

/* False: not an answer of the script. */
static bool read_counts(struct stats_ask *asked, const struct redisReply *reply)
{
    int64_t numbers[15] = {0};
    struct weir_slice kind;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (i != 1 && !weir__reply_int(reply, i, &numbers[i]))
            return false;
    if (!weir__reply_str(reply, 1, &kind) || kind.len >= sizeof(asked->kind))
        return false;
    memcpy(asked->kind, kind.ptr, kind.len);
    asked->now_ms = numbers[0];
    asked->stats = (struct weir_stats){
        .topic = asked->topic->name,
        .kind = asked->kind,
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
        .lateness_p50_us = -1,
        .lateness_p99_us = -1,
        .lateness_max_us = -1,
    };
    return true;
}

static void on_counts(struct weir__feed_ask *ask, int code,
                      const struct redisReply *reply)
{
    struct stats_ask *asked = (struct stats_ask *)ask; /* its first member */
    struct weir__buf bytes = {0};

    weir__feed_log_error(asked->topic, "stats", code, reply);
    if (code == WEIR_OK && !read_counts(asked, reply))
        code = WEIR_ESERVER;
    if (code != WEIR_OK) {
        finish(asked, code);
        return;
    }
    asked->ask.done = on_late;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__feed_keys(&bytes, asked->topic->name, "late");
    weir__feed_send(asked->topic->store, &bytes, NULL, WEIR__SEND_AGAIN,
                    &asked->ask);
    weir__conn_flush(asked->topic->store->commands);
}

static void on_found(struct weir__feed_ask *ask, int code,
                     const struct redisReply *reply)
{
    struct stats_ask *asked = (struct stats_ask *)ask; /* its first member */
    struct weir__feed_place place;
    struct weir__buf bytes = {0};

    code = weir__feed_found(asked->topic, code, reply, &place);
    if (code != WEIR_OK) {
        finish(asked, code);
        return;
    }
    asked->ask.done = on_counts;
    weir__resp_eval(&bytes, &weir__script_feedstats, 6, 1);
    weir__feed_keys(&bytes, asked->topic->name, "meta wait run dead auto");
    weir__resp_str(&bytes, place.key);
    weir__resp_str(&bytes, place.group);
    weir__feed_send(asked->topic->store, &bytes, &weir__script_feedstats,
                    WEIR__SEND_AGAIN, &asked->ask);
    weir__conn_flush(asked->topic->store->commands);
}

int weir__feed_stats(struct weir__store_topic *base, weir_stats_fn fn,
                     void *arg)
{
    struct weir__feed_topic *topic = weir__feed_topic_of(base);
    struct stats_ask *asked;

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    asked = weir__mem_new(sizeof(*asked));
    if (asked == NULL)
        return WEIR_ENOMEM;
    asked->ask.done = on_found;
    asked->topic = topic;
    asked->fn = fn;
    asked->arg = arg;
    weir__feed_find(topic, &asked->ask);
    return WEIR_OK;
}

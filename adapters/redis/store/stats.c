/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/store/kind.h"
#include "core/histogram.h"
#include "core/mem.h"
#include "core/text.h"

/* Counts of a topic, and how late its jobs started in the last five minutes. */

void weir__stats_finish(struct weir__stats_request *stats, int code)
{
    stats->fn(code, code == WEIR_OK ? &stats->stats : NULL, stats->arg);
    weir__mem_free(stats->parts);
    weir__mem_free(stats);
}

/* --- lateness ----------------------------------------------------------- */

/* The hash `late` (scripts/store/lateness.lua). */
enum {
    MINUTES = 6, /* slots of the hash, the current one included */
    MS_PER_MINUTE = 60000
};

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

static void read_late(const struct redisReply *reply, int64_t now_ms,
                      struct weir_stats *stats)
{
    struct late late = {0};
    struct weir_slice field, value;

    if (reply->type != REDIS_REPLY_ARRAY)
        return;
    memset(late.minute, -1, sizeof(late.minute)); /* all bits: -1 */
    for (size_t i = 0; i + 1 < (size_t)reply->elements; i += 2)
        if (weir__reply_str(reply, i, &field) &&
            weir__reply_str(reply, i + 1, &value))
            read_field(&late, field,
                       strtoll((const char *)value.ptr, NULL, 10));
    sum_up(&late, now_ms, stats);
}

static void on_late(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct weir__stats_request *stats =
        (struct weir__stats_request *)request; /* first */

    if (code == WEIR_OK)
        read_late(reply, stats->now_ms, &stats->stats);
    weir__stats_finish(stats, code);
}

void weir__topic_lateness(struct weir__store_topic *port,
                          const uint32_t *counts, int64_t max_us)
{
    struct weir__store_topic *topic = (void *)port; /* its first member */
    struct weir__buf bytes = {0};
    size_t used = 0;

    for (size_t i = 0; i < WEIR__BUCKETS; i++)
        used += counts[i] > 0;
    if (used == 0)
        return;
    weir__resp_eval(&bytes, &weir__script_store_lateness, 1, 1 + 2 * used);
    weir__prefix_key(&bytes, &topic->prefix, "late");
    weir__resp_int(&bytes, max_us);
    for (size_t i = 0; i < WEIR__BUCKETS; i++) {
        if (counts[i] == 0)
            continue;
        weir__resp_int(&bytes, (int64_t)i);
        weir__resp_int(&bytes, counts[i]);
    }
    weir__place_send(topic->place, &bytes, &weir__script_store_lateness,
                     WEIR__SEND_ONCE, NULL);
}

/* --- counts ------------------------------------------------------------- */

/* What scripts answer a number for, by name. */
static const struct {
    const char *name;
    size_t at;
} numbers[] = {
    {"waiting", offsetof(struct weir_stats, scheduled)}, /* ready or not */
    {"ready", offsetof(struct weir_stats, ready)},
    {"running", offsetof(struct weir_stats, running)},
    {"dead", offsetof(struct weir_stats, dead)},
    {"relaying", offsetof(struct weir_stats, relaying)},
    {"added", offsetof(struct weir_stats, added_total)},
    {"done", offsetof(struct weir_stats, done_total)},
    {"retried", offsetof(struct weir_stats, retried_total)},
    {"failed", offsetof(struct weir_stats, failed_total)},
    {"expired", offsetof(struct weir_stats, expired_total)},
    {"crashed", offsetof(struct weir_stats, crashed_total)},
    {"dropped", offsetof(struct weir_stats, dropped_total)},
    {"lost", offsetof(struct weir_stats, lost_total)},
    {"overflow", offsetof(struct weir_stats, dropped_overflow)},
    {"age", offsetof(struct weir_stats, dropped_age)},
    {"ttl", offsetof(struct weir_stats, dropped_ttl)},
    {"ticks", offsetof(struct weir_stats, ticks)},
};

static bool is_named(struct weir_slice name, const char *text)
{
    return weir__slice_equal(name, weir__slice_str(text));
}

static void note(struct weir__stats_request *request, struct weir_slice name,
                 int64_t value)
{
    uint64_t count = value < 0 ? 0 : (uint64_t)value;

    if (is_named(name, "time"))
        request->now_ms = value;
    else if (is_named(name, "paused"))
        request->stats.paused = value != 0;
    else if (is_named(name, "exact"))
        request->stats.ready_is_exact = value != 0;
    else if (is_named(name, "elsewhere"))
        request->stats.is_elsewhere = value != 0;
    else if (is_named(name, "oldest"))
        request->stats.oldest_us = value < 0 ? -1 : value * 1000;
    else if (is_named(name, "ended"))
        request->stats.lease_ended_us = value * 1000;
    else if (is_named(name, "limited") && value > 0 &&
             value <= WEIR_LIMITED_KEY)
        request->stats.limited = (enum weir_limit)value;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (is_named(name, numbers[i].name))
            memcpy((char *)&request->stats + numbers[i].at, &count,
                   sizeof(count));
}

/* Of a topic of the first kind nothing may be known: it may be stored with any.
 * WEIR_ENOTFOUND: there is no such topic. */
static int read_counts(struct weir__stats_request *request,
                       const struct redisReply *reply)
{
    const struct weir__kind *topic_kind = request->topic->kind;
    struct weir_stats *stats = &request->stats;
    struct weir_slice name, kind = {0};
    size_t i = 0;
    int64_t value;

    request->now_ms = -1;
    stats->ready_is_exact = true;
    stats->oldest_us = -1;
    stats->lease_ended_us = -1;
    for (; weir__reply_str(reply, i, &name); i += 2) {
        if (weir__reply_int(reply, i + 1, &value))
            note(request, name, value);
        else if (is_named(name, "kind"))
            (void)weir__reply_str(reply, i + 1, &kind);
        if (is_named(name, "aside"))
            weir__topic_log_aside(request->topic, reply, i + 1);
        if (is_named(name, "groups") && i + 1 < (size_t)reply->elements &&
            weir__unserved_read(request, reply->element[i + 1]) < 0)
            return WEIR_ENOMEM;
    }
    if (request->now_ms < 0 || kind.ptr == NULL ||
        kind.len >= sizeof(request->kind))
        return WEIR_ESERVER;
    if (kind.len == 0)
        return WEIR_ENOTFOUND;
    memcpy(request->kind, kind.ptr, kind.len);
    if (topic_kind != weir__kinds[0] &&
        strcmp(request->kind, topic_kind->name) != 0)
        return WEIR_EKIND;
    stats->scheduled -=
        stats->ready < stats->scheduled ? stats->ready : stats->scheduled;
    if (topic_kind->counted != NULL)
        topic_kind->counted(request);
    return WEIR_OK;
}

void weir__stats_ask_lateness(struct weir__stats_request *stats)
{
    struct weir__buf bytes = {0};

    stats->request.done = on_late;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "HGETALL");
    weir__prefix_key(&bytes, &stats->topic->prefix, "late");
    weir__place_send(stats->topic->place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &stats->request);
    weir__place_flush(stats->topic->place);
}

void weir__stats_counted(struct weir__request *request, int code,
                         const struct redisReply *reply)
{
    struct weir__stats_request *stats =
        (struct weir__stats_request *)request; /* first */

    weir__topic_log_error(stats->topic, "stats", code, reply);
    if (code == WEIR_OK)
        code = read_counts(stats, reply);
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
    stats->stats.unserved_groups = stats->unserved;
    if (stats->parts != NULL)
        weir__unserved_ask(stats);
    else
        weir__stats_ask_lateness(stats);
}

struct weir__stats_request *weir__stats_new(struct weir__store_topic *topic,
                                            weir_stats_fn fn, void *arg)
{
    struct weir__stats_request *stats = weir__mem_new(sizeof(*stats));

    if (stats == NULL)
        return NULL;
    stats->request.done = weir__stats_counted;
    stats->topic = topic;
    stats->fn = fn;
    stats->arg = arg;
    return stats;
}

int weir__topic_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                      void *arg)
{
    const struct weir__kind *kind = topic->kind;
    struct weir__stats_request *stats = weir__stats_new(topic, fn, arg);
    const char *groups = topic->sleeps_for == NULL ? "" : topic->sleeps_for;
    struct weir__buf bytes = {0};

    if (stats == NULL)
        return WEIR_ENOMEM;
    weir__resp_eval(&bytes, kind->stats_script, kind->stats_key_count,
                    *groups != '\0');
    weir__prefix_keys(&bytes, &topic->prefix, kind->stats_keys);
    if (*groups != '\0')
        weir__resp_str(&bytes, groups);
    weir__place_send(topic->place, &bytes, kind->stats_script, WEIR__SEND_AGAIN,
                     &stats->request);
    return WEIR_OK;
}

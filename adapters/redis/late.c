/* SPDX-License-Identifier: MIT */
#include "adapters/redis/late.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/reply.h"
#include "adapters/redis/resp.h"
#include "core/histogram.h"

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

void weir__late_read(const struct redisReply *reply, int64_t now_ms,
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

bool weir__late_write(struct weir__buf *buf, struct weir_slice key,
                      const uint32_t *counts, int64_t max_us)
{
    size_t used = 0;

    for (size_t i = 0; i < WEIR__BUCKETS; i++)
        used += counts[i] > 0;
    if (used == 0)
        return false;
    weir__resp_eval(buf, &weir__script_store_lateness, 1, 1 + 2 * used);
    weir__resp_bytes(buf, key);
    weir__resp_int(buf, max_us);
    for (size_t i = 0; i < WEIR__BUCKETS; i++) {
        if (counts[i] == 0)
            continue;
        weir__resp_int(buf, (int64_t)i);
        weir__resp_int(buf, counts[i]);
    }
    return true;
}

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_LATE_H
#define WEIR_REDIS_LATE_H

/* How late the jobs of a topic started in the last five minutes: the hash
 * `late` of any kind of topic (scripts/store/lateness.lua). */

#include "core/buf.h"
#include <weir/weir.h>

struct redisReply;

/* The command that adds samples, one count for each bucket of
 * core/histogram.h. False: there are none, nothing was written. */
bool weir__late_write(struct weir__buf *buf, struct weir_slice key,
                      const uint32_t *counts, int64_t max_us);

/* Fill in the lateness out of the reply to HGETALL. */
void weir__late_read(const struct redisReply *reply, int64_t now_ms,
                     struct weir_stats *stats);

#endif

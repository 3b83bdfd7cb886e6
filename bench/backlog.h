/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_BACKLOG_H
#define WEIR_BENCH_BACKLOG_H

/* Jobs that lie in a topic while others are measured, what they take, and the
 * server's commands that take long beside them. */

#include "bench/load.h"

/* Ids from here on are those of a backlog; no fresh job has them. */
#define BENCH_BACKLOG_IDS INT64_C(1000000000)

/* As bench_load_fill, with what a job takes of the server's memory:
 * server_bytes_per_job. */
int bench_backlog_put(struct bench *bench, const struct bench_load *load,
                      const char *topic, struct bench_row *row,
                      struct weir_error *err);

/* Count commands of 5 ms and more from now on. Somebody else's server keeps its
 * SLOWLOG as it is. WEIR_ESERVER: ours has none. */
int bench_slow_begin(struct bench *bench, struct weir_error *err);

/* How many there were, and the longest: slow_commands, slowest_ms. Nothing
 * where the server is somebody else's. */
void bench_slow_count(struct bench *bench, struct bench_row *row);

#endif

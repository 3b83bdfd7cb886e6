/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_SOURCE_H
#define WEIR_BENCH_SOURCE_H

/* The published fixed-length queue that bounded topics come from (S2 of the
 * project's seeds, 001_1f9972c832503f68.txt, its sections 4.1 and 4.2): its two
 * scripts word by word, its set and its list of games, sent by EVAL as there.
 *
 * Its server is given the best of it: what is added in one millisecond travels
 * in one write, and its consumer polls one game in a millisecond instead of as
 * fast as it can. */

#include "bench/server.h"
#include "bench/tally.h"

struct bench_source {
    int64_t jobs, per_s, payload_bytes;
    int64_t groups, length, batch, ttl_s;
};

/* Add and take; `tally` has a mark for each event that was taken, the pointers
 * get us of server CPU for each and what was dropped as a list was full. It
 * BLOCKS for jobs / per_s seconds and until nothing is left. */
int bench_source_run(struct bench_server *server,
                     const struct bench_source *source,
                     struct bench_tally *tally, double *ret_server_us,
                     int64_t *ret_dropped, struct weir_error *err);

#endif

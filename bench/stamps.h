/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_STAMPS_H
#define WEIR_BENCH_STAMPS_H

/* Percentiles of what handlers noted. */

#include "bench/row.h"
#include "bench/team.h"

/* Writes p50_ms to max_ms, early and measured; `per_ms` stamps are one ms. The
 * percentiles stay NAN where nothing was noted. */
int bench_stamps_read(const struct bench_team *team, int64_t per_ms,
                      struct bench_row *row, struct weir_error *err);

#endif

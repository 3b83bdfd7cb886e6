/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_WHERE_H
#define WEIR_BENCH_WHERE_H

/* Where it is measured: machine, server with its settings, build. */

#include "bench/bench.h"

/* What the build was made of; "" where that was no repository. */
extern const char bench_where_commit[];

/* Fill in `server`, `host` and `build` of the output; the first call does.
 * WEIR_ENOMEM. */
int bench_where_describe(struct bench *bench, struct weir_error *err);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_REPORT_H
#define WEIR_BENCH_REPORT_H

/* --report: what a case found as one HTML file that needs nothing else, for a
 * phone as for paper. */

#include "bench/bench.h"

#include <weir/base.h>

/* Whether the file can be written, before hours are spent; leaves nothing
 * behind. WEIR_EINVAL. */
int bench_report_check(const char *path, struct weir_error *err);

/* Write the rows that were printed to the path in `options`; a file that is
 * there is replaced once the new one is complete. `argv` is the command line,
 * `options` are what it said: a case may have changed its own. WEIR_EINVAL. */
int bench_report_write(const struct bench *bench,
                       const struct bench_options *options, char *const *argv,
                       struct weir_error *err);

#endif

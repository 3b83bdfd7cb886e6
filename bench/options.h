/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_OPTIONS_H
#define WEIR_BENCH_OPTIONS_H

/* The command line of weir-bench, read with getopt_long. A mistake is one
 * sentence on stderr. */

#include "bench/bench.h"

/* Exit codes: those of `weir`. */
enum {
    BENCH_DONE_CODE = 0,
    BENCH_FAILED_CODE = 1,
    BENCH_USAGE_CODE = 2,
    BENCH_SERVER_CODE = 5,
    BENCH_NO_CODE = -1
};

extern const struct bench_case *const bench_cases[];
extern const size_t bench_case_count;

/* BENCH_NO_CODE: run `*ret_case` with `ret_options`; otherwise what to exit
 * with: help or the version was printed, or a mistake told. */
int bench_options_read(int argc, char **argv,
                       const struct bench_case **ret_case,
                       struct bench_options *ret_options);

#endif

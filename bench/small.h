/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_SMALL_H
#define WEIR_BENCH_SMALL_H

/* Whether a set is too small to mean much. It is with less than
 *
 *   3 repeats         there is no spread to judge a difference by
 *   2,000 jobs        in a row with a rate
 *   20 ms             that these jobs take
 *   100 jobs          that were timed, in a row with p99
 *   1 s               that an idle worker is looked at
 */

#include "bench/bench.h"

enum { BENCH_SMALL_CAP = 400 };

/* Writes what is too small as a part of a sentence, "" when nothing is. */
void bench_small_text(const struct bench *bench, char buf[BENCH_SMALL_CAP]);

#endif

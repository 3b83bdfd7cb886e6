/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_NUMBERS_H
#define WEIR_BENCH_NUMBERS_H

/* Medians and percentiles. Both sort what they are given. */

#include <stddef.h>
#include <stdint.h>

/* The middle one, or the mean of the two in the middle; NAN values do not
 * count. NAN when nothing does. */
double bench_median(double *values, size_t count);

/* Sort, so that bench_percentile can be asked. */
void bench_sort(int64_t *values, size_t count);

/* The smallest of the sorted values that at least `percent` % are not above;
 * `count` is not 0. */
int64_t bench_percentile(const int64_t *sorted, size_t count, double percent);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HISTOGRAM_H
#define WEIR_HISTOGRAM_H

/* Log-scaled buckets for lateness in microseconds: four per power of two, so
 * a bucket's bounds are at most 25 % apart. The layout is part of what is
 * stored on the server: never renumber. */

#include <stddef.h>
#include <stdint.h>

enum { WEIR__BUCKETS = 160 };

/* The bucket of a value; negative values count as 0, huge ones go into the
 * last bucket. Buckets 0 to 3 hold the values 0 to 3 exactly. */
size_t weir__bucket_of(int64_t us);

/* The largest value that falls into `bucket`; for the last one 2^41 - 1 (about
 * 25 days), though it takes everything above as well. */
int64_t weir__bucket_top_us(size_t bucket);

/* The value below or at which `permille` thousandths of all counts lie, as the
 * top of its bucket; -1 when there are no counts. `permille` is at most 1000
 * (the largest count) and 0 means the smallest. */
int64_t weir__bucket_quantile_us(const uint64_t counts[WEIR__BUCKETS],
                                 unsigned permille);

#endif

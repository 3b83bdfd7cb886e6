/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_ORIGIN_H
#define WEIR_BENCH_ORIGIN_H

/* The published measurement of the queues that `sync` and `concurrent` follow,
 * beside the rows of `compare` that answer to it. */

#include "bench/row.h"

#include <stdio.h>

/* Write it as a part of a page. */
void bench_origin_put(FILE *file, const struct bench_output *output);

#endif

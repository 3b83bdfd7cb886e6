/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_TALLY_H
#define WEIR_BENCH_TALLY_H

/* How often each job was handled, by its number. Lies in memory that several
 * processes share: each handled job is marked by whoever handles it, and what
 * is lost or came twice is counted from the marks alone. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_tally {
    int64_t jobs;            /* numbered 0 to jobs - 1 */
    _Atomic int64_t foreign; /* runs whose body held no number of ours */
    _Atomic uint8_t runs[];  /* of each job; stays at 255 */
};

/* Bytes that a tally of so many jobs takes. */
size_t bench_tally_size(int64_t jobs);

/* `memory` has that many bytes, all zero. */
struct bench_tally *bench_tally_init(void *memory, int64_t jobs);

/* Job `number` is handled. True when it was for the first time. */
bool bench_tally_mark(struct bench_tally *tally, int64_t number);

/* Jobs that were never handled, and jobs that were handled more than once. */
int64_t bench_tally_lost(const struct bench_tally *tally);
int64_t bench_tally_duplicated(const struct bench_tally *tally);

#endif

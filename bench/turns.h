/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_TURNS_H
#define WEIR_BENCH_TURNS_H

/* What a process spends: how long its loop is busy from when it wakes to when
 * it waits again, and CPU time. */

#include <ev.h>
#include <stdint.h>

struct bench_turns {
    ev_check woken;
    ev_prepare asleep;
    int64_t woken_ns;    /* 0: not yet */
    int64_t *longest_ns; /* borrowed */
};

/* Watch from the end of this turn on; `*longest_ns` gets what is longer than
 * what it holds. */
void bench_turns_begin(struct bench_turns *turns, struct ev_loop *loop,
                       int64_t *longest_ns);

/* A zeroed one is fine. */
void bench_turns_end(struct bench_turns *turns, struct ev_loop *loop);

/* Of all threads so far. */
int64_t bench_cpu_ns(void);

#endif

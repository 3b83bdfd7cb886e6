/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_LATER_H
#define WEIR_BENCH_LATER_H

/* Pending jobs that are done in a later turn of the loop: in the next one, as
 * early as those of a handler that asks somebody else can be, all or each with
 * even chances; or a millisecond later, as where the answer takes that long. */

#include "bench/team.h"

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <weir/plugin.h>

#define BENCH_LATER_NS INT64_C(1000000)

struct bench_later {
    struct ev_loop *loop; /* borrowed */
    enum bench_handler handler;
    ev_idle next; /* its turn; runs while there is one */
    ev_io timer;  /* of the first one; a timerfd, since a loop that waits does
                     so for whole milliseconds */
    struct bench_late {
        struct weir_handle handle;
        int64_t due_ns; /* of a timer */
    } * jobs;
    size_t first, count, cap; /* jobs[first] to jobs[count - 1] are pending */
    unsigned short random[3]; /* nrand48 */
};

/* False: no timer. */
bool bench_later_init(struct bench_later *later, struct ev_loop *loop,
                      enum bench_handler handler);
void bench_later_fini(struct bench_later *later);

/* Called by a handler that is about to return WEIR_PENDING. False: out of
 * memory. */
bool bench_later_put(struct bench_later *later, struct weir_job *job);

#endif

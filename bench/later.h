/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_LATER_H
#define WEIR_BENCH_LATER_H

/* Pending jobs that are done in the next turn of the loop, as early as those of
 * a handler that asks somebody else can be: all, or each with even chances. */

#include <ev.h>
#include <weir/plugin.h>

struct bench_later {
    struct ev_loop *loop; /* borrowed */
    ev_idle next;         /* its turn; runs while there is one */
    struct weir_handle *handles;
    size_t count, cap;
    bool is_random;
    unsigned short random[3]; /* nrand48 */
};

void bench_later_init(struct bench_later *later, struct ev_loop *loop,
                      bool is_random);
void bench_later_fini(struct bench_later *later);

/* Called by a handler that is about to return WEIR_PENDING. False: out of
 * memory. */
bool bench_later_put(struct bench_later *later, struct weir_job *job);

#endif

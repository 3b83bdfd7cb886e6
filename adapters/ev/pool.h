/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_POOL_H
#define WEIR_EV_POOL_H

/* Threads for handlers that block: thread runs are queued under a lock, a
 * thread takes one at a time, and the loop is woken once for all that are done
 * since it last took some. Topics share the threads by weight, and each has one
 * while it has a run. Threads are started when there is work for them, up to
 * `threads` and those that make it so; they block all signals but those of
 * faults. */

#include "core/error.h"
#include "core/thread_run.h"

struct ev_loop;
struct weir__ev_pool;

/* The callback runs on the loop thread. */
struct weir__ev_pool_options {
    struct ev_loop *loop; /* kept */
    uint32_t threads;
    const struct weir__log *log; /* kept */
    int *depth;                  /* callbacks on the stack; kept, counted */
    void (*returned)(struct weir__thread_run *thread_run, void *arg);
    void *arg;
};

/* WEIR_ENOMEM, WEIR_ESYSTEM (no lock to be had). */
int weir__ev_pool_open(const struct weir__ev_pool_options *options,
                       struct weir__ev_pool **ret_pool);

/* What core knows of the pool. */
struct weir__pool *weir__ev_pool_port(struct weir__ev_pool *pool);

/* What the calling thread runs, where it is one of the pool's; false: nothing,
 * or it is none. May be called by a handler of a signal. */
bool weir__ev_pool_current(const struct weir__ev_pool *pool,
                           struct weir_current *ret_current);

/* Begin no further thread run and BLOCK until the threads are done with theirs.
 * Their verdicts are dropped. NULL is fine. */
void weir__ev_pool_close(struct weir__ev_pool *pool);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_THREAD_RUN_H
#define WEIR_THREAD_RUN_H

/* Runs of handlers that block, as threads beside the loop have them: a thread
 * run is a copy of its run. So the run itself can be settled at any moment
 * (timed out, given back, lost) while its thread, which nobody can interrupt,
 * goes on with the copy; a verdict of the copy then comes too late.
 *
 *   run --(begin)--> pending + thread run --> the pool --> a thread
 *                       |                                |  weir__thread_run_do
 *                       +<-- weir__reactor_returned <----+
 *
 * Of a topic no more are given away than all threads take up soon: a run that
 * waits here may still be given back. Among topics the pool chooses. */

#include "core/handler_counters.h"
#include "core/run.h"

struct weir__reactor;
struct weir__thread_run;

enum { WEIR__THREADS_MAX = 256 };

/* First in, first out. */
struct weir__thread_queue {
    struct weir__thread_run *first, *last;
};

/* What the pool has of a topic; its own, zeroed at first. */
struct weir__pool_share {
    struct weir__pool_share *next; /* topic with runs that wait */
    struct weir__thread_queue waiting;
    size_t busy; /* runs on threads */
    uint32_t weight;
};

struct weir__thread_run {
    struct weir__run run;          /* first; what the handler sees */
    struct weir__thread_run *next; /* the pool's, while it has it */
    int64_t began_ns; /* the pool's: when a thread did; 0: none yet */
    bool is_canceled; /* the pool's */
    struct weir__pool_share *share; /* of its topic */
    uint32_t weight;                /* of that, as it is now */
    uint64_t ticket;
    struct weir__handler_counters *counters; /* NULL: nothing was counted */
    uint8_t bytes[];                         /* for the slices of the copy */
};

/* Threads beside the loop. Called on the loop thread, but where it says so. */
struct weir__pool {
    uint32_t threads; /* so many at once, but a topic always has one */

    /* Have weir__thread_run_do called by a thread, soon, and after that
     * weir__reactor_returned on the loop thread. */
    void (*start)(struct weir__pool *pool, struct weir__thread_run *thread_run);
    /* 0: no thread has begun with it, and it is the caller's again. Else when
     * one began (monotonic ns). */
    int64_t (*recall)(struct weir__pool *pool,
                      struct weir__thread_run *thread_run);
    /* Its run was given up. */
    void (*cancel)(struct weir__pool *pool,
                   struct weir__thread_run *thread_run);
    /* Was it? On its thread. */
    bool (*is_canceled)(struct weir__pool *pool,
                        const struct weir__thread_run *thread_run);
    /* Have a line logged by the loop thread, before the thread run returns; on
     * its thread. */
    void (*log)(struct weir__pool *pool, struct weir__thread_run *thread_run,
                enum weir_level level, const char *text);
};

/* Call the handler; on any thread. */
void weir__thread_run_do(struct weir__thread_run *thread_run);

struct weir__log;

/* Log what its handler said; on the loop thread. */
void weir__thread_run_log(const struct weir__thread_run *thread_run,
                          const struct weir__log *log, enum weir_level level,
                          const char *text);

/* A thread run came back; on the loop thread. Frees it. */
void weir__reactor_returned(struct weir__reactor *reactor,
                            struct weir__thread_run *thread_run);

void weir__thread_run_free(struct weir__thread_run *thread_run);

#endif

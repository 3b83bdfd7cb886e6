/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_WORLD_PRIVATE_H
#define WEIR_TEST_WORLD_PRIVATE_H

/* What the parts of a world share: its jobs, its processes and its troubles. */

#include <weir/weir.h>

#include "tests/sim/world.h"

enum { NAMES = 64, NAME_CAP = 16, TOPICS_MAX = 3 };

struct job {
    bool is_added, is_refused;
    bool is_over; /* a handler gave its last verdict */
    bool is_dead; /* the server lists it */
    bool may_go;  /* a fault took it, as docs/ have it */
    bool is_far;  /* it may wait for the clock that was ahead */
    bool is_named, fails;
    int topic, runs, retries, snoozes;
    int64_t told_ns; /* its add, the answer to that, or its last verdict */
    int64_t due_ns;
    int64_t delay_ms;            /* -1: has a time of its own */
    int64_t due_us, due_last_us; /* by the server's clock: between these */
    int64_t seen_us; /* what that said when it was ahead, before the job ran */
};

/* The world that runs, for callbacks. */
extern struct world *this_world;
extern struct job *jobs;
extern int next_number; /* jobs before it were given to the producer */
extern const char *const topics[TOPICS_MAX];

bool has_feature(enum world_feature feature);
bool has_fault(enum world_fault fault);
int topic_count(void);
int64_t world_now_us(void); /* by the server's clock */

/* A reactor of the process that runs. */
struct weir_reactor *open_reactor(struct ev_loop *loop, char *name);

/* --- world_jobs.c -------------------------------------------------------- */

/* Opens the topics with handlers that note what runs. */
void serve_topics(struct weir_reactor *reactor);

/* The process that adds jobs and, each 2 s, asks for counters. */
void produce(void *name);

/* Before a world. */
void jobs_begin(void);

/* 5 s before its end; then, at the end: what is missing? */
void jobs_ask_last(void *arg);
void jobs_judge(void);

/* --- world_faults.c ------------------------------------------------------ */

/* A fault has the server's clock ahead for a while. */
bool is_clock_ahead(void);

/* Plans the faults of the plan. `pids` are those of its workers; a worker that
 * died is replaced. */
void faults_begin(int *pids, int (*start_worker)(void));

#endif

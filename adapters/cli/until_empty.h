/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_UNTIL_EMPTY_H
#define WEIR_CLI_UNTIL_EMPTY_H

/* Notices when the served topics hold nothing scheduled, ready or running but
 * ticks of schedules, also with other workers.
 *
 * A topic is looked at (weir_reactor_stats) when its reactor ran out of jobs,
 * and once a second while jobs are ready or running elsewhere; while jobs are
 * only scheduled there is nothing to ask, the next idle event comes by itself.
 * When all look empty they are asked once more, because a job may have moved
 * from one to the other between two answers. */

#include <ev.h>
#include <weir/weir.h>

struct weir__watch;

struct weir__watched {
    struct weir__watch *watch;
    const char *topic; /* borrowed */
    struct ev_timer again;
    bool is_asked;      /* an answer is on its way */
    bool is_ask_again;  /* something happened since the question */
    bool is_at_rest;    /* the last answer: empty, paused, or all newer */
    uint64_t held_back; /* jobs of a paused topic at rest */
    uint64_t elsewhere; /* events in groups that this worker does not serve */
    uint64_t newer;     /* jobs that this version leaves alone */
    uint64_t dead;      /* by the last answer */
};

struct weir__watch {
    struct ev_loop *loop;
    struct weir_reactor *reactor;
    struct weir__watched *topics; /* owned */
    size_t count;
    bool is_confirming;
    bool is_over;
    /* Runs once. `left` is a topic where jobs are left, or NULL. */
    void (*done)(const struct weir__watched *left, void *arg);
    void *arg;
};

/* Prepare for `count` topics, `names[i]` each. WEIR_ENOMEM. */
int weir__watch_init(struct weir__watch *watch, size_t count);

/* Set the reactor's idle callback and look for the first time. */
void weir__watch_start(struct weir__watch *watch);

/* Before the reactor is freed. */
void weir__watch_fini(struct weir__watch *watch);

#endif

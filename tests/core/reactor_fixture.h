/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_REACTOR_FIXTURE_H
#define WEIR_TEST_REACTOR_FIXTURE_H

/* A reactor over the store in memory, in virtual time: one topic, "orders",
 * whose handler notes what it sees and does what the test says. */

#include "core/reactor.h"
#include "tests/harness/mem_store.h"
#include "tests/harness/test.h"

extern struct mem_store *store;
extern struct weir__reactor *reactor;
extern struct weir__pool *pool; /* given to open_reactor; NULL at first */
extern char last_log[512];
extern char logged[8192];         /* all lines, each with its level in front */
extern bool logs_outcomes;        /* likewise */
extern enum weir_level log_level; /* given to open_reactor */
extern int idles, stops;          /* callbacks */

/* What the handler does (NULL: it is done), and what it saw. */
extern enum weir_verdict (*behaviour)(struct weir_job *job);
extern int runs;
extern int64_t cost_ms; /* virtual time a run takes */
extern int flush_rc, flushes;
extern char
    order[400]; /* ids in the order of their runs, a blank behind each */

/* What is open is closed when the test ends, or before that. */
struct weir__lane_options lane_options(const char *ladder);
void open_reactor(const struct weir__lane_options *lane);
void open_with_ladder(const char *ladder);
void close_reactor(void);

/* One tick; returns what it returned. */
int64_t turn(void);

/* Turns until nothing happens without time passing. */
int64_t settle_down(void);

/* Let virtual time pass as a loop would, from deadline to deadline. */
void pass(int64_t ms);

/* Add jobs "j0", "j1", ... that are due now, with one wake-up. */
void add_many(int count);

/* Given to weir__reactor_stop: counts into `stops`. */
void on_stopped(void *arg);

#endif

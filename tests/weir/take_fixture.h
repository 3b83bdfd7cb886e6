/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_TAKE_FIXTURE_H
#define WEIR_TEST_TAKE_FIXTURE_H

/* A host that takes jobs of the topic "orders", and what it is told. */

#include <weir/take.h>

#include "tests/weir/host.h"

extern struct weir_take *takes[WEIR_MAX_TAKE]; /* in hand, as they came */
extern size_t take_count;
extern int answers, answer_code; /* of calls; the last one */
extern size_t answer_count;      /* its jobs */
extern char ids[800];            /* of jobs that came, a blank behind each */
extern char lost[200];           /* "ID:WHY " for each that was lost */
extern char settled[400];        /* "OK " or "WEIR_E... " for each */
extern int settled_count;

/* Options of the topic for each call; NULL: none. */
extern const char *const *take_with;
extern const char *const brief_lease[]; /* options: 300 ms */

void on_taken(int code, struct weir_take *const *taken, size_t count,
              void *arg);
void on_lost(struct weir_take *take, enum weir_cancel why, void *arg);
void on_settled(int code, void *arg);

/* The code of a call. */
int call_take(struct weir_reactor *from, const char *topic, size_t limit,
              int64_t wait_ms);

/* The same from `weir` and "orders", until it is answered with so many. */
void take(size_t limit, size_t count);

void add(const char *id);
void add_to(const char *topic, const char *id);

/* Settle the take at this place of `takes`. */
void settle(size_t at, enum weir_verdict verdict);
void give_back(size_t at);

/* Until all is answered; as in `settled`. */
void expect_settled(const char *codes);

/* "ready", "dead", ...; "none": there is no such job. */
const char *state_of(const char *id);
extern struct weir_counters counters; /* of that */

/* The server stands still: what it is sent it reads when it goes on. */
void stand_still(void);
void go_on(void);

/* A few turns, so that what was asked for is on its way. */
void send_all(void);

/* By tests that count: of "orders". */
const struct weir_stats *look(void);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FOLLOW_FIXTURE_H
#define WEIR_TEST_FOLLOW_FIXTURE_H

/* Jobs that handlers add with their verdicts, on a real server: a reactor that
 * serves the topic "t" on a loop of its own. */

#include "tests/weir/host.h"

extern char ran[400]; /* ids in the order of their runs, a blank behind each */
extern char logged[400];          /* the last warning, but of deaths */
extern int codes[80], code_count; /* what `follow` got */
extern struct weir_stats last;

void open_as(const struct weir_topic_options *topic);
/* `timeout` is an option, or NULL. */
void open_host(weir_run_fn run, const char *timeout);

void add_to(const char *topic, const char *id);
void add(const char *id);

/* Ask for the topic's statistics: into `last`. */
void look(const char *topic);

/* Run the loop until so many verdicts are settled, and a look after that. */
void await_settled(uint64_t count);

bool is_id(const struct weir_job *job, const char *id);
void note(const struct weir_job *job);

/* Add a job with the body {"n": 7}. */
void follow(struct weir_job *job, const char *id, int64_t delay_ms);

#endif

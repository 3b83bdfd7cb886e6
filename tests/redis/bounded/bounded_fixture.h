/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_BOUNDED_FIXTURE_H
#define WEIR_TEST_BOUNDED_FIXTURE_H

/* Bounded stores with the topic "t"; the body of an event is a number. */

#include "tests/redis/store/store_fixture.h"

struct host *bounded_open(const char *worker,
                          const struct weir__options *options);

/* Add events and do not wait. */
void events_send(struct host *host, const char *group, int from, int to);

/* Add one event, or those from `from` to `to`, and wait for the answers. */
void event_add(struct host *host, const char *group, int number);
void events_add(struct host *host, const char *group, int from, int to);

int event_number(const struct weir__run *run);

/* The runs that arrived, as "GROUP:NUMBER ...", until the next call. Runs in a
 * row are written as "GROUP:FROM-TO". */
const char *events_text(const struct host *host);

/* Is a group with waiting events on a rotation or leased, once, and no other?
 * Do the counts add up? Fails the test if not. */
void bounded_walk(void);

/* A counter of the topic. */
long long bounded_count(const char *field);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FRONT_FIXTURE_H
#define WEIR_TEST_FRONT_FIXTURE_H

/* Two scripted peers that play the nodes of a cluster and stand before one
 * server, which has the keys of both. The slots are at the first one until it
 * was asked for them once, then at the second. */

#include "tests/harness/resp_peer.h"
#include "tests/redis/store/store_fixture.h"

enum { FRONTS = 2 };

extern struct resp_peer *fronts[FRONTS];
extern struct redis_proc *behind;

/* The server, and peers that do not answer yet. */
void fronts_prepare(const struct redis_options *options);

/* MOVED to the second one, of the topic "t". Valid for the test. */
const char *front_moved(void);

/* The world is theirs: the first one answers with these rules, the second one
 * with `others`, and the server what is left. */
void fronts_run(const struct resp_rule *rules, size_t count,
                const struct resp_rule *others, size_t other_count);

/* The first one answers MOVED where this stands in a command. */
void fronts_run_moved(const char *words);

/* In how many lines that it heard these words are. */
int front_heard(int front, const char *words);

#endif

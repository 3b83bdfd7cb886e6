/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LANE_FIXTURE_H
#define WEIR_TEST_LANE_FIXTURE_H

/* Jobs of lanes (lanes.lua), each of which has a number: job 7 has the id "j7",
 * and its first pack is named by 12 digits, those of the first of its jobs.
 * What a call answers is one line. */

#include "tests/redis/scripts/script_fixture.h"

enum { LANE_JOBS = 30000 };

struct lane_held {
    char node[17];
    unsigned slot;
    long long token, due, state;
};

/* What a slip while changing a script could be; in force while set. */
struct lane_fault {
    const char *name;
    const struct weir__script *script;
    const char *find, *replace;
};
extern const struct lane_fault *lane_fault;

/* Of the last claim. */
extern struct lane_held lane_held[LANE_JOBS]; /* by job */
extern int lane_claimed[1024];                /* jobs in their order */
extern int lane_claimed_count;
extern long long lane_next_us, lane_token;
extern redisReply *lane_reply; /* of the last call */

/* `when` as in due.lua; key and rule "": it has no unique key. */
const char *lane_add_under(int job, const char *when, const char *key,
                           const char *rule);
const char *lane_add(int job, const char *when);
/* Jobs from this one on, in one pack. */
const char *lane_add_pack(int job, int count, const char *when);

struct lane_claim {
    const char *worker, *room, *lease_ms, *limits, *suspects;
};
/* "1 2+1": the jobs, and how many leases of theirs ended. */
const char *lane_claim_as(struct lane_claim claim);
const char *lane_claim(const char *room, const char *limits);

/* A verdict on a job as it was claimed: "done", "dead", "back", "spare" (the
 * same of one that did not start), or when it runs again (due.lua). `flags` as
 * of settle.lua. */
const char *lane_settle_as(int job, const char *verdict, const char *flags);
const char *lane_settle(int job, const char *verdict); /* flags "4" */

/* "delete", or "reschedule" to `when`. */
const char *lane_slot(const char *verb, int job, const char *when);
/* Of the nodes in which these jobs are. */
const char *lane_purge(const int *jobs, int count);
const char *lane_drop(void);

/* The node of `key` (wait or run) that has the job; "": none has. */
const char *lane_node(const char *key, int job);
/* Is it under the token by which it was claimed? */
bool lane_runs(int job);

/* When a job that waits is due, and when a lane has its turn. */
long long lane_due_ms(int job);
long long lane_turn_ms(const char *lane);
long long lane_now_ms(void);
/* The last claim was told of this time, which is so much later than something
 * that was done since `from_ms`. */
void lane_expect_told(long long ms, long long from_ms, long long later_ms);

/* Claims whose lease is over from now on. */
void lane_expire(long long token);
/* The topic sees so much more of the clock. */
void lane_pass_ms(long long ms);

#endif

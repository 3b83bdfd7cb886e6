/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LOST_H
#define WEIR_TEST_LOST_H

/* Topics against a count, while one key of each is deleted: a list, a bounded
 * topic, and a `delay` topic whose ticks are left to workers of weir. A seed
 * chooses what is added, claimed and done, and which key goes. In the end each
 * job has run, or the topic says that it was lost, and nothing is left. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/chaos/model/script_call.h"

struct redisReply;

struct lost_run {
    struct caller caller;
    uint64_t seed, random;
    int64_t now_ms;
    const char *part, *key; /* of the topic; the key that was deleted */
    long long added, done;
};

/* 0 to count - 1. */
unsigned lost_pick(struct lost_run *run, unsigned count);

void lost_pass(struct lost_run *run, int64_t ms);

/* Prints the seed and what differs, and ends the process with 1. */
void lost_expect(const struct lost_run *run, const char *what, long long wanted,
                 long long got);

/* The reply of what was queued, an array of `least` elements or more; the
 * caller frees it. */
struct redisReply *lost_array(struct lost_run *run, size_t least);

/* An integer, or the digits of a string; 0: nothing. `format` is one command
 * with blanks between its words. */
long long lost_ask(struct lost_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A number of a reply of stats by its name; 0: it is not told. */
long long lost_stat(const struct redisReply *reply, const char *name);

/* Each fills a topic, deletes a key and runs what is left. */
void lost_list(struct lost_run *run);
void lost_bounded(struct lost_run *run);
void lost_ticks(struct lost_run *run);

extern const struct fault lost_faults[];
extern const size_t lost_fault_count;

#endif

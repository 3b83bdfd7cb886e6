/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LANE_MODEL_H
#define WEIR_TEST_LANE_MODEL_H

/* Random operations on jobs with keys and priorities. After each of them the
 * server's state is walked; in the end every job came to somebody or was
 * deleted. The server is in this process, and its time is the model's. */

#include <stdint.h>

#include "tests/redis/scripts/lane_fixture.h"

enum { LANE_KEYS = 5, LANE_LEVELS = 4 };
enum { LANE_STEP_MS = 500, LANE_BURST = 3, LANE_SEEN_MS = 5000 };
#define LANE_KEY_RATE "2/s burst 3"

enum lane_state { LANE_NEW, LANE_ADDED, LANE_CLAIMED, LANE_GONE };

struct lane_model {
    uint64_t random;
    int next, alive; /* number of the next job; those that are there */
    enum lane_state states[LANE_JOBS];
    bool is_packed[LANE_JOBS]; /* its pack may have others */
    bool has_older; /* workers, who know packs of one and leave keys to be
                       looked at again */
    bool is_narrow; /* two keys, one priority */
    int ageing_ms, parallel;
    bool has_rate;
    long long begin_ms;
    long long started[LANE_KEYS]; /* of each key */
    char limits[40];
    const char *problem; /* the first one; NULL: none was found */
};
extern struct lane_model lane_model;

/* So many operations on an empty server. Returns what was wrong, or NULL. */
const char *lane_model_run(uint64_t seed, int ops);

/* --- what must hold (lane_rules.c) ---------------------------------------- */

void lane_find_problem(const char *what, const char *more);
void lane_check_all(void);
/* `ready` of the topic, which it counts then, is as many as are due. */
void lane_check_ready(void);

/* Packs of which one comes first in the next claim, and what its last one then
 * gave; "": that is not known. */
enum { LANE_FIRSTS_CAP = 1024 };
void lane_look_before(char ret_firsts[LANE_FIRSTS_CAP]);
void lane_check_claim(const char *firsts);
/* A job that was claimed is going to be told not to have started. */
void lane_count_spared(int job);

#endif

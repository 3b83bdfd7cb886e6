/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_KILLS_H
#define WEIR_BENCH_KILLS_H

/* Workers of a team are killed at random, each replaced at once. */

#include "bench/team.h"

enum { BENCH_KILLS = 20, BENCH_VICTIMS_MAX = 8 };

struct bench_kills {
    struct bench_role role; /* of those that come */
    int alive[BENCH_VICTIMS_MAX];
    int workers;
    int64_t jobs;  /* of the run */
    int64_t count; /* so far */
    int64_t next;  /* when so many were handled */
    uint64_t random;
};

/* The first `workers` members of the team are in danger. Kills are spread over
 * three quarters of `jobs`: what is dropped is not handled. */
void bench_kills_init(struct bench_kills *kills, const struct bench_role *role,
                      int workers, int64_t jobs);

/* Kill one and start another if it is time. */
int bench_kills_look(struct bench_kills *kills, struct bench_team *team,
                     struct weir_error *err);

#endif

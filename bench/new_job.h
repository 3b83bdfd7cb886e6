/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_NEW_JOB_H
#define WEIR_BENCH_NEW_JOB_H

/* What a member's jobs are like, but for their bodies: names and due time. */

#include "bench/body.h"
#include "bench/team.h"

#include <weir/weir.h>

struct bench_new_job {
    struct weir_new_job job; /* points into it */
    char id[BENCH_ID_CAP], group[BENCH_GROUP_CAP], key[BENCH_GROUP_CAP];
};

uint64_t bench_random_next(uint64_t *random);

/* The one of that number; it is the `nth` of its member. */
void bench_new_job_make(const struct bench_role *role, int64_t number,
                        int64_t nth, uint64_t *random,
                        struct bench_new_job *ret_job);

#endif

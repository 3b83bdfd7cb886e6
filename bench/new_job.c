/* SPDX-License-Identifier: MIT */
#include "bench/new_job.h"

#include <stdio.h>

enum { GROUPS = 1000, HOT_GROUPS = 10 };

uint64_t bench_random_next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static void write_group(const struct bench_role *role, int64_t number,
                        uint64_t *random, char group[BENCH_GROUP_CAP])
{
    if (role->is_hot)
        (void)snprintf(group, BENCH_GROUP_CAP, "hot-%d",
                       (int)(bench_random_next(random) % HOT_GROUPS));
    else
        bench_group_write(group, number,
                          role->groups > 0 ? role->groups : GROUPS);
}

static void say_due(const struct bench_role *role, uint64_t *random,
                    struct weir_new_job *job)
{
    int64_t more =
        role->spread_ms > 0
            ? (int64_t)(bench_random_next(random) % (uint64_t)role->spread_ms)
            : 0;

    if (role->from_ms > 0)
        job->at_ms = role->from_ms + more;
    else
        job->delay_ms = role->delay_ms + more;
}

void bench_new_job_make(const struct bench_role *role, int64_t number,
                        int64_t nth, uint64_t *random,
                        struct bench_new_job *ret_job)
{
    static const char *const priorities[] = {"urgent", "high", "normal", "low"};
    struct weir_new_job *job = &ret_job->job;

    *job = (struct weir_new_job){0};
    if (!role->makes_ids) {
        bench_id_write(ret_job->id, role->id_base + nth);
        job->id = ret_job->id;
    }
    if (role->has_groups) {
        write_group(role, number, random, ret_job->group);
        job->group = ret_job->group;
    }
    if (role->keys > 0) {
        bench_group_write(ret_job->key, number, role->keys);
        job->key = ret_job->key;
    }
    if (role->has_priorities)
        job->priority = priorities[number % 4];
    if (role->is_unique)
        job->unique = ret_job->id;
    say_due(role, random, job);
}

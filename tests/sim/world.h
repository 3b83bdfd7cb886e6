/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_WORLD_H
#define WEIR_TEST_WORLD_H

/* A world of a server, a producer and workers: real reactors with one plain
 * topic, and trouble by chance. */

#include "tests/sim/redis.h"

struct world_plan {
    int jobs, workers;
    int64_t least_ns; /* a portion of bytes is under way */
    int64_t gap_ns;   /* between two jobs: up to twice as long */
    int64_t delay_ms; /* of a job: up to so long */
    int hold_one_in;  /* this many jobs hold their loop; 0: none */
    int64_t hold_ns;  /* up to so long; others take up to 2 ms */
    bool blocks;      /* handlers run on threads */
    bool cuts;        /* all connections, every 10 s or so */
    bool jumps;       /* of the server's clock, every 60 s or so: by up to a
                         day for some seconds, or back by up to a minute */
    bool deaths;      /* of workers, every 20 s or so; another one begins */
    int64_t run_ns;   /* how long the world lasts */
    const char *options[8]; /* of the topic; the first NULL ends them */
};

struct world {
    const struct world_plan *plan;
    struct sim_redis redis;
    int added, refused; /* answers to the producer */
    int runs, twice, missing, early;
    int cuts, deaths, jumps, holds;
    int64_t late_ns; /* the latest first run, behind its due time */
    int errors;      /* lines of the log of level ERROR */
    char error[512]; /* the last of them */
    uint64_t hash, scripts;
    double cpu_s;
};

/* A random plan from the seed: 2,000 jobs in ten minutes. */
struct world_plan world_plan_of(uint64_t seed);

/* Runs it to its end. `missing` are jobs that were acknowledged, were due a
 * minute ago by the server's clock, and never ran; `early` are those that ran
 * before they were due by it. */
void world_run(struct world *world, const struct world_plan *plan,
               uint64_t seed);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_WORLD_H
#define WEIR_TEST_WORLD_H

/* A world of a server, a producer and workers: real reactors with delay topics,
 * random features of jobs, and random faults. */

#include "adapters/redis/script.h"
#include "tests/model/listen.h"
#include "tests/sim/redis.h"

/* X(NAME, what `./run sim` prints) */
#define WORLD_FEATURES(X)       \
    X(DELAYS, "delays")         \
    X(TIMES, "times")           \
    X(KEYS, "keys")             \
    X(PRIORITIES, "priorities") \
    X(RATE, "rate")             \
    X(PARALLEL, "parallel")     \
    X(KEY_PARALLEL, "per key")  \
    X(UNIQUE, "unique")         \
    X(IDS, "ids")               \
    X(RETRIES, "retries")       \
    X(SNOOZES, "snoozes")       \
    X(FAILURES, "failures")     \
    X(HOLDS, "holds")           \
    X(THREADS, "threads")       \
    X(TOPICS, "topics")

/* X(NAME, what is printed, s between two on average) */
#define WORLD_FAULTS(X)                    \
    X(CUT, "all connections cut", 10)      \
    X(CUT_OFF, "cut behind a byte", 60)    \
    X(PIECES, "bytes late, in pieces", 60) \
    X(STALL, "network stands still", 40)   \
    X(DEATH, "a worker dies", 20)          \
    X(CLOCK, "clock jumps", 60)            \
    X(FULL, "OOM", 40)                     \
    X(DISK, "MISCONF", 40)                 \
    X(REPLICA, "READONLY", 60)             \
    X(LOADING, "LOADING", 60)              \
    X(RIGHTS, "NOPERM", 60)                \
    X(KEY, "a key lost", 60)               \
    X(EVICTION, "keys evicted", 100)       \
    X(RESTART, "the last second lost", 60)

enum world_feature {
#define MEMBER(name, text) WORLD_##name,
    WORLD_FEATURES(MEMBER) WORLD_FEATURE_COUNT
#undef MEMBER
};

enum world_fault {
#define MEMBER(name, text, every) WORLD_FAULT_##name,
    WORLD_FAULTS(MEMBER) WORLD_FAULT_COUNT
#undef MEMBER
};

extern const char *const world_features[WORLD_FEATURE_COUNT];
extern const char *const world_faults[WORLD_FAULT_COUNT];

struct world_plan {
    int jobs, workers;
    int64_t least_ns;  /* a portion of bytes is under way */
    int64_t gap_ns;    /* between two jobs: up to twice as long */
    int64_t delay_ms;  /* of a job: up to so long */
    int hold_one_in;   /* this many jobs hold their loop */
    int64_t hold_ns;   /* up to so long; others take up to 2 ms */
    int64_t run_ns;    /* how long the world lasts; faults end 120 s before */
    unsigned features; /* a bit for each of enum world_feature */
    unsigned faults;   /* the same */
    const struct weir__script *script; /* has a fault: `find` is `replace` */
    const char *find, *replace;
};

struct world {
    const struct world_plan *plan;
    struct sim_redis redis;
    struct listener *listener;
    int added, refused; /* answers to the producer */
    int runs, twice;
    int faults[WORLD_FAULT_COUNT]; /* how often each occurred */
    int64_t late_ns; /* the latest first run, behind its due time */
    int lost;        /* jobs that the server counted as lost */
    int may_miss;    /* jobs that may have gone with their keys */

    /* What must not be: */
    int missing;     /* acknowledged, and neither done nor dead nor lost */
    int early;       /* ran before they were due by the server's clock */
    int ghosts;      /* ran though their add was refused */
    int beyond;      /* ran beyond a bound of the topic */
    int left;        /* wait or run at the end by the topic's counters */
    int miscounted;  /* counters that differ from what happened */
    int errors;      /* lines of level ERROR that no fault explains */
    char error[512]; /* the last of them, or the first wrong counter */

    uint64_t hash, scripts;
    uint64_t judged;   /* calls of scripts that the model judged */
    char problem[400]; /* what the model found first; "": nothing */
    double cpu_s;
};

/* A random plan from the seed: 800 jobs in four minutes. */
struct world_plan world_plan_of(uint64_t seed);

/* Runs it to its end. False: something is that must not be. */
bool world_run(struct world *world, const struct world_plan *plan,
               uint64_t seed);

/* One line for each thing that must not be, with what it is. */
void world_print_faults(const struct world *world);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_FLAGS_H
#define WEIR_BENCH_FLAGS_H

/* The flags of weir-bench and what --help says of them. */

#include "bench/bench.h"

enum bench_flag {
    REDIS,
    DATA,
    JOBS,
    PAYLOAD,
    BATCH,
    IDS,
    TRANSPORT,
    PERSISTENCE,
    CONSUMERS,
    PRODUCERS,
    NODES,
    REPEAT,
    KIND,
    HANDLER,
    CONCURRENCY,
    DELAY,
    WINDOW,
    BACKLOG,
    TOPICS,
    SECONDS,
    REPORT,
    ONE_PROCESS,
    JSON,
    HELP,
    VERSION,
    FLAG_COUNT
};

/* `only`: the BENCH_FLAG_ bit that a case must have; 0: all take it. */
struct bench_flag_text {
    const char *name, *value, *help;
    unsigned only;
};
extern const struct bench_flag_text bench_flags[FLAG_COUNT];

void bench_help_all(void);
void bench_help_case(const struct bench_case *which);

#endif

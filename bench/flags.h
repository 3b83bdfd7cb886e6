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

/* Every option that has a value, as it would be written. */
enum { BENCH_OPTIONS_TEXT_CAP = 600 };
void bench_options_text(const struct bench_options *options, char *buf,
                        size_t cap);

void bench_help_all(void);
void bench_help_case(const struct bench_case *which);

#endif

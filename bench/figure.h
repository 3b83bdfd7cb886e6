/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_FIGURE_H
#define WEIR_BENCH_FIGURE_H

/* What a row can say in numbers. NAN: the figure has no meaning in it. */

#include <stddef.h>

/* X(name, heading, digits behind the point, how repeats become one). The first
 * group stands in every JSON line, the second where it has a meaning. */
#define BENCH_FIGURES(X)                              \
    X(enqueue_per_s, "enqueue/s", 0, MEDIAN)          \
    X(drain_per_s, "drain/s", 0, MEDIAN)              \
    X(end_to_end_per_s, "end to end/s", 0, MEDIAN)    \
    X(elapsed_ms, "elapsed ms", 1, MEDIAN)            \
    X(server_us_per_job, "server us", 3, MEDIAN)      \
    X(client_us_per_job, "client us", 3, MEDIAN)      \
    X(lost, "lost", 0, WORST)                         \
    X(duplicated, "duplicated", 0, WORST)             \
    X(p50_ms, "p50 ms", 3, MEDIAN)                    \
    X(p90_ms, "p90 ms", 3, MEDIAN)                    \
    X(p99_ms, "p99 ms", 3, MEDIAN)                    \
    X(max_ms, "max ms", 3, WORST)                     \
    X(early, "early", 0, WORST)                       \
    X(ops_per_s, "ops/s", 0, MEDIAN)                  \
    X(enqueue_server_us, "enqueue srv us", 3, MEDIAN) \
    X(drain_server_us, "drain srv us", 3, MEDIAN)     \
    X(enqueue_client_us, "enqueue cl us", 3, MEDIAN)  \
    X(drain_client_us, "drain cl us", 3, MEDIAN)      \
    X(floor_share, "of floor", 2, MEDIAN)             \
    X(floor_ratio, "x floor", 2, MEDIAN)              \
    X(ratio, "x slowest", 2, MEDIAN)                  \
    X(measured, "measured", 0, MEDIAN)                \
    X(commands_per_s, "commands/s", 2, MEDIAN)        \
    X(server_cpu_percent, "server %", 3, MEDIAN)      \
    X(worker_cpu_percent, "worker %", 3, MEDIAN)      \
    X(server_bytes_per_job, "bytes/job", 0, MEDIAN)   \
    X(slow_commands, "over 5 ms", 0, WORST)           \
    X(slowest_ms, "slowest ms", 1, WORST)             \
    X(worker_rss_mb, "worker MB", 1, MEDIAN)          \
    X(producer_rss_mb, "producer MB", 1, MEDIAN)      \
    X(turn_ms, "turn ms", 2, MEDIAN)                  \
    X(killed_at, "killed at", 0, MEDIAN)              \
    X(recovered_ms, "recovered ms", 0, MEDIAN)        \
    X(dropped_overflow, "overflow", 0, WHOLE)         \
    X(dropped_age, "too old", 0, WHOLE)               \
    X(dropped_ttl, "group idle", 0, WHOLE)            \
    X(added, "added", 0, WHOLE)                       \
    X(handled, "handled", 0, WHOLE)                   \
    X(misordered, "misordered", 0, WORST)             \
    X(killed, "killed", 0, WORST)                     \
    X(ran_dropped, "ran, dropped", 0, WHOLE)          \
    X(drain_of_sync, "of sync", 2, MEDIAN)            \
    X(drain_of_limit, "of limit", 2, MEDIAN)          \
    X(end_to_end_of_sync, "of sync", 2, MEDIAN)       \
    X(cost_ratio, "x one server", 2, MEDIAN)          \
    X(load_ratio, "x its load", 2, MEDIAN)            \
    X(cpu_share, "cpu share", 2, MEDIAN)

enum bench_figure {
#define BENCH_FIGURE_MEMBER(name, heading, digits, merge) BENCH_##name,
    BENCH_FIGURES(BENCH_FIGURE_MEMBER)
#undef BENCH_FIGURE_MEMBER
        BENCH_FIGURE_COUNT
};
enum { BENCH_FIGURES_FIXED = BENCH_ops_per_s };

enum bench_merge {
    BENCH_MEDIAN,
    BENCH_WORST,
    /* Counts that add up: all are of the repeat whose `handled` is the median;
     * the worst if the case has no `handled`. */
    BENCH_WHOLE
};

enum bench_unit {
    BENCH_PER_S,
    BENCH_US,
    BENCH_MS,
    BENCH_MB,
    BENCH_BYTES,
    BENCH_PERCENT,
    BENCH_RATIO,
    BENCH_COUNT,
    BENCH_UNITS
};
extern const char *const bench_unit_names[BENCH_UNITS];

enum bench_better { BENCH_HIGHER, BENCH_LOWER, BENCH_NEITHER };

/* What is known of each figure. */
struct bench_figure_words {
    const char *name, *heading;
    int digits;
    enum bench_merge merge;
};
extern const struct bench_figure_words bench_figures[BENCH_FIGURE_COUNT];

/* The same for who does not know the case. */
struct bench_figure_sense {
    enum bench_unit unit;
    enum bench_better better;
    const char *title;
};
extern const struct bench_figure_sense bench_senses[BENCH_FIGURE_COUNT];

/* A value as tables show it; "-" for NAN. */
void bench_figure_text(enum bench_figure figure, double value, char *buf,
                       size_t cap);

#endif

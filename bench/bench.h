/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_BENCH_H
#define WEIR_BENCH_BENCH_H

/* What the cases of weir-bench have in common: options, kinds, the life of a
 * row. A case returns WEIR_OK or a code with a sentence in `err`. */

#include "bench/row.h"
#include "bench/say.h"
#include "bench/server.h"
#include "bench/team.h"

#include <stdio.h>
#include <weir/base.h>

/* Who says how long a job is held back. */
enum bench_delay {
    BENCH_DELAY_OF_JOB,
    BENCH_DELAY_OF_TOPIC, /* its option */
    BENCH_DELAY_NONE
};

/* How a kind of topic is driven. Its name is that of `weir`. */
struct bench_kind {
    const char *name;
    bool has_ids; /* jobs may have ids of the caller's */
    bool
        has_groups; /* jobs are spread over 1,000 of them, handled in batches */
    enum bench_delay delay;
    /* Its consumers are an option of the topic, all in one worker; otherwise
     * each is a worker process. */
    bool has_consumers;
};
extern const struct bench_kind bench_kinds[];
extern const size_t bench_kind_count;
const struct bench_kind *bench_kind_find(const char *name);

/* A kind with its options: what compare and crash go through. */
struct bench_variant {
    const char *kind;
    const char *lock, *parking, *auto_ack; /* as in struct bench_row */
    const char *words;                     /* for the table */
};
extern const struct bench_variant bench_variants[];
extern const size_t bench_variant_count;

/* Their names, in the order of enum bench_handler, and NULL. */
extern const char *const bench_handler_names[];

enum { BENCH_COUNTS_MAX = 8 };

struct bench_options {
    char *own_redis; /* owned copy of what stood in argv; or NULL */
    struct bench_server_options server;
    const struct bench_kind *kind;
    enum bench_handler handler;
    int64_t jobs, payload_bytes, batch, consumers, concurrency, repeat;
    int64_t delay_ms, window_ms, backlog, topics, span_ms;
    int64_t nodes, producers;
    /* What a case with BENCH_FLAG_LISTS goes through: a bit for each of
     * bench_kinds, 0: all of them; numbers of consumers, up to a 0. */
    unsigned kinds;
    int64_t counts[BENCH_COUNTS_MAX + 1];
    bool makes_ids, one_process, json;
    const char *report;
};

struct bench {
    const struct bench_case *which;
    struct bench_options options;
    struct bench_server server;
    struct bench_output output;
    struct bench_progress progress;
    int topics_made;
};

/* The flags that a case takes beside those that all take. */
enum {
    BENCH_FLAG_KIND = 1,
    BENCH_FLAG_DELAY = 2,
    BENCH_FLAG_WINDOW = 4,
    BENCH_FLAG_BACKLOG = 8,
    BENCH_FLAG_TOPICS = 16,
    BENCH_FLAG_SPAN = 32,
    BENCH_FLAG_ONE_PROCESS = 64,
    BENCH_FLAG_CONSUMERS = 128, /* others refuse what is not their default */
    BENCH_FLAG_HANDLER = 256,
    BENCH_FLAG_CONCURRENCY = 512,
    BENCH_FLAG_NODES = 1024,
    BENCH_FLAG_LISTS = 2048 /* --kind and --consumers, several of each */
};

struct bench_case {
    const char *name, *summary, *details, *example;
    unsigned flags;
    struct bench_options fallback; /* what is 0 there has no default */
    /* It asks one server, and takes no cluster of several primaries. */
    bool one_server;
    const enum bench_figure *columns;
    size_t column_count;
    int (*run)(struct bench *bench, struct weir_error *err);
    /* What its report has behind the table; or NULL. */
    void (*put_more)(FILE *file, const struct bench_output *output);
};
extern const struct bench_case bench_case_compare, bench_case_throughput,
    bench_case_floor, bench_case_lateness, bench_case_wake, bench_case_idle,
    bench_case_scale, bench_case_crash, bench_case_groups, bench_case_handlers,
    bench_case_follow, bench_case_cluster, bench_case_scattered,
    bench_case_limits;

/* A row with the labels that the options give it. */
void bench_row_label(const struct bench *bench, struct bench_row *row,
                     const char *case_name);

/* A fresh server for a row; bench_row_close ends it. WEIR_EINVAL: the case
 * looks at one server, and this is a cluster. */
int bench_row_open(struct bench *bench, struct weir_error *err);
void bench_row_close(struct bench *bench);

/* One repeat of a row: writes figures into `ret_row`. */
typedef int (*bench_repeat_fn)(struct bench *bench, const void *arg,
                               struct bench_row *ret_row,
                               struct weir_error *err);

/* How a row is measured: `warm_ups` repeats that do not count, then as many as
 * the options say, each on an empty server; or, with a `prepare`, all of them
 * on what that left there. */
struct bench_plan {
    bench_repeat_fn fn;
    const void *arg;
    int warm_ups;
    bench_repeat_fn prepare; /* NULL: none */
};

/* Put as many repeats together as the options say; `row` gets the figures. */
int bench_row_put_together(struct bench *bench, struct bench_row *row,
                           const struct bench_row *repeats,
                           struct weir_error *err);

/* Measure on a fresh server; `row` gets the figures. */
int bench_row_measure(struct bench *bench, struct bench_row *row,
                      const struct bench_plan *plan, struct weir_error *err);

/* The same, and print it. */
int bench_row_report(struct bench *bench, struct bench_row *row,
                     const struct bench_plan *plan, struct weir_error *err);

/* Print and keep a row. */
int bench_row_print(struct bench *bench, const struct bench_row *row,
                    struct weir_error *err);

/* A topic's name that was not used before. */
void bench_topic_name(struct bench *bench, char name[BENCH_TOPIC_CAP]);

#endif

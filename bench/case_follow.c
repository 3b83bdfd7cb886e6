/* SPDX-License-Identifier: MIT */

/* weir-bench follow: jobs that handlers add to another topic with their
 * verdicts. */

#include "bench/load.h"

#include <stdio.h>

enum { PER_S = 50000 };

static const enum bench_figure columns[] = {BENCH_end_to_end_per_s,
                                            BENCH_p50_ms,
                                            BENCH_p90_ms,
                                            BENCH_p99_ms,
                                            BENCH_max_ms,
                                            BENCH_server_us_per_job,
                                            BENCH_client_us_per_job,
                                            BENCH_lost,
                                            BENCH_duplicated};

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    struct bench_load load = *(const struct bench_load *)arg;
    char first[BENCH_TOPIC_CAP], second[BENCH_TOPIC_CAP];

    bench_topic_name(bench, first);
    bench_topic_name(bench, second);
    load.by = first;
    return bench_load_flow(bench, &load, second, row, err);
}

static int report(struct bench *bench, int64_t per_s, struct weir_error *err)
{
    struct bench_load load = bench_load_of(bench);
    struct bench_plan plan = {.fn = repeat, .arg = &load};
    struct bench_row row;

    load.per_s = per_s;
    bench_row_label(bench, &row, "follow");
    if (per_s > 0)
        (void)snprintf(row.label, sizeof(row.label), "%s, %lld/s", row.kind,
                       (long long)per_s);
    else
        (void)snprintf(row.label, sizeof(row.label), "%s, as many as go",
                       row.kind);
    return bench_row_report(bench, &row, &plan, err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    int rc;

    bench->progress.steps = 2 * (int)bench->options.repeat;
    rc = report(bench, PER_S, err);
    return rc == WEIR_OK ? report(bench, 0, err) : rc;
}

const struct bench_case bench_case_follow = {
    .name = "follow",
    .summary = "jobs that handlers add to another topic",
    .details =
        "A producer adds to one topic, whose handler adds each job to another "
        "topic with its verdict; a second worker handles that. The time is "
        "from the verdict to the begin of the handler there, and has to be "
        "read in the row with 50,000 jobs a second: in the other, with as many "
        "as go, they wait. Server us and client us are for both runs of a job. "
        "Lost and duplicated count its second run.",
    .example = "weir-bench follow --jobs 100000 --repeat 3",
    .fallback = {.jobs = 200000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .repeat = 3},
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* weir-bench throughput: add, drain, both at once, as a share of what the raw
 * server does with a list. */

#include "bench/floor.h"
#include "bench/load.h"

#include <stdio.h>

static const enum bench_figure columns[] = {
    BENCH_enqueue_per_s,     BENCH_drain_per_s,       BENCH_end_to_end_per_s,
    BENCH_floor_share,       BENCH_server_us_per_job, BENCH_floor_ratio,
    BENCH_client_us_per_job, BENCH_drain_server_us,   BENCH_worker_rss_mb,
    BENCH_producer_rss_mb,   BENCH_turn_ms,           BENCH_lost,
    BENCH_duplicated};

/* An element through a list and out again, many at a time. */
static int look_at_floor(struct bench *bench, double *ret_per_s,
                         double *ret_server_us, struct weir_error *err)
{
    struct bench_floor floor = {
        .op = BENCH_FLOOR_RPUSH_MANY,
        .count = bench->options.jobs,
        .payload_bytes = bench->options.payload_bytes,
        .batch = bench->options.batch,
    };
    double push_per_s, pop_per_s, push_us, pop_us;
    int rc =
        bench_floor_run(&bench->server, &floor, &push_per_s, &push_us, err);

    floor.op = BENCH_FLOOR_LPOP_MANY;
    if (rc == WEIR_OK)
        rc = bench_floor_run(&bench->server, &floor, &pop_per_s, &pop_us, err);
    if (rc < 0)
        return rc;
    *ret_per_s = 1 / (1 / push_per_s + 1 / pop_per_s);
    *ret_server_us = push_us + pop_us;
    return WEIR_OK;
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct bench_load *load = arg;
    double floor_per_s, floor_us;
    int rc = look_at_floor(bench, &floor_per_s, &floor_us, err);

    if (rc == WEIR_OK)
        rc = bench_load_run(bench, load, row, err);
    if (rc < 0)
        return rc;
    row->figure[BENCH_floor_share] =
        row->figure[BENCH_end_to_end_per_s] / floor_per_s;
    row->figure[BENCH_floor_ratio] =
        row->figure[BENCH_server_us_per_job] / floor_us;
    return WEIR_OK;
}

static int run(struct bench *bench, struct weir_error *err)
{
    struct bench_load load = bench_load_of(bench);
    struct bench_plan plan = {.fn = repeat, .arg = &load, .warm_ups = 1};
    bool is_sync = load.handler == BENCH_HANDLER_SYNC;
    struct bench_row row;

    bench->progress.steps = (int)bench->options.repeat;
    bench_row_label(bench, &row, "throughput");
    row.handler = bench_handler_names[load.handler];
    (void)snprintf(row.label, sizeof(row.label), "%s%s%s, batch %lld, %s%s%s",
                   row.kind, row.ids != NULL ? ", ids " : "",
                   row.ids != NULL ? row.ids : "", (long long)load.batch,
                   row.transport, is_sync ? "" : ", ",
                   is_sync ? "" : row.handler);
    return bench_row_report(bench, &row, &plan, err);
}

const struct bench_case bench_case_throughput = {
    .name = "throughput",
    .summary = "enqueue, drain, and both at once",
    .details =
        "First everything is added, then handled, then both at once with a "
        "producer and --consumers workers (processes each). Server us and "
        "client us are CPU time for each job with both at once; of floor and "
        "x floor compare with the raw server's variadic RPUSH and LPOP in the "
        "same run. Turn ms is the longest turn of a loop then. Lost and "
        "duplicated count job numbers.",
    .example = "weir-bench throughput --jobs 1000000 --batch 64 --json",
    .flags = BENCH_FLAG_KIND | BENCH_FLAG_DELAY | BENCH_FLAG_ONE_PROCESS |
             BENCH_FLAG_CONSUMERS | BENCH_FLAG_HANDLER,
    .fallback = {.jobs = 500000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .repeat = 5},
    .one_server = true,
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* weir-bench floor: the raw server. */

#include "bench/bench.h"
#include "bench/floor.h"

#include <math.h>
#include <stdio.h>

static const enum bench_figure columns[] = {BENCH_ops_per_s,
                                            BENCH_server_us_per_job};

/* Fill what a pop is to find, outside of the measure. */
static int fill_for(struct bench *bench, struct bench_floor floor,
                    struct weir_error *err)
{
    double ignored;

    if (floor.op != BENCH_FLOOR_LPOP && floor.op != BENCH_FLOOR_LPOP_MANY)
        return WEIR_OK;
    floor.op--;
    return bench_floor_run(&bench->server, &floor, &ignored, &ignored, err);
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    struct bench_floor floor = {
        .op = *(const enum bench_floor_op *)arg,
        .count = bench->options.jobs,
        .payload_bytes = bench->options.payload_bytes,
        .batch = bench->options.batch,
    };
    int rc = fill_for(bench, floor, err);

    if (rc < 0)
        return rc;
    return bench_floor_run(&bench->server, &floor,
                           &row->figure[BENCH_ops_per_s],
                           &row->figure[BENCH_server_us_per_job], err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    int rc = WEIR_OK;

    bench->progress.steps = BENCH_FLOOR_OPS * (int)bench->options.repeat;
    for (enum bench_floor_op op = 0; op < BENCH_FLOOR_OPS && rc == WEIR_OK;
         op++) {
        struct bench_plan plan = {.fn = repeat, .arg = &op, .warm_ups = 1};
        struct bench_row row;

        bench_row_label(bench, &row, "floor");
        row.kind = row.ids = NULL; /* no jobs, only elements */
        row.consumers = -1;
        (void)snprintf(row.label, sizeof(row.label), "%s",
                       bench_floor_names[op]);
        rc = bench_row_report(bench, &row, &plan, err);
    }
    return rc;
}

const struct bench_case bench_case_floor = {
    .name = "floor",
    .summary = "the raw server: pipelined plain commands",
    .details = "One connection, --batch commands in each write (or elements "
               "in each command for rpush-many and lpop-many), four batches "
               "in flight. Server us is the server's CPU time for each "
               "element.",
    .example = "weir-bench floor --jobs 1000000 --batch 256",
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

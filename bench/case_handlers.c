/* SPDX-License-Identifier: MIT */

/* weir-bench handlers: what it costs that a handler finishes its jobs later, or
 * that threads call it. */

#include "bench/later.h"
#include "bench/load.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>

enum { HANDLERS = 5 };

static const enum bench_figure columns[] = {
    BENCH_drain_per_s,       BENCH_drain_of_sync,      BENCH_drain_of_limit,
    BENCH_end_to_end_per_s,  BENCH_end_to_end_of_sync, BENCH_server_us_per_job,
    BENCH_client_us_per_job, BENCH_worker_rss_mb,      BENCH_lost,
    BENCH_duplicated};

/* The repeats of the handlers, those of one in a row. */
struct rounds {
    struct bench_row *rows;
    size_t count;
};

static struct bench_row *row_of(const struct rounds *rounds, size_t handler,
                                size_t at)
{
    return &rounds->rows[handler * rounds->count + at];
}

static void label(const struct bench *bench, struct bench_row *row,
                  size_t handler)
{
    bench_row_label(bench, row, "handlers");
    row->handler = bench_handler_names[handler];
    row->concurrency = bench->options.concurrency;
    (void)snprintf(row->label, sizeof(row->label), "%s, %s", row->kind,
                   row->handler);
}

/* A job is pending for a millisecond, `concurrency` of them at once. */
static double limit_per_s(const struct bench *bench)
{
    return (double)bench->options.concurrency * 1e9 / BENCH_LATER_NS;
}

static void compare(const struct bench *bench, const struct rounds *rounds,
                    size_t at)
{
    double *timer = row_of(rounds, BENCH_HANDLER_TIMER, at)->figure;
    const double *sync = row_of(rounds, BENCH_HANDLER_SYNC, at)->figure;

    for (size_t i = 0; i < HANDLERS; i++) {
        double *figure = row_of(rounds, i, at)->figure;

        figure[BENCH_drain_of_sync] =
            figure[BENCH_drain_per_s] / sync[BENCH_drain_per_s];
        figure[BENCH_end_to_end_of_sync] =
            figure[BENCH_end_to_end_per_s] / sync[BENCH_end_to_end_per_s];
    }
    timer[BENCH_drain_of_limit] = timer[BENCH_drain_per_s] / limit_per_s(bench);
}

/* All of them one after the other, on the same server: what changes on the
 * machine from round to round changes for each of them. */
static int go_round(struct bench *bench, const struct rounds *rounds, size_t at,
                    struct weir_error *err)
{
    struct bench_load load = bench_load_of(bench);
    int rc = WEIR_OK;

    for (size_t i = 0; i < HANDLERS && rc == WEIR_OK; i++) {
        struct bench_row *row = row_of(rounds, i, at);

        load.handler = (enum bench_handler)i;
        label(bench, row, i);
        bench_progress_draw(&bench->progress, 0);
        rc = bench_server_clear(&bench->server, err);
        if (rc == WEIR_OK)
            rc = bench_load_run(bench, &load, row, err);
    }
    if (rc == WEIR_OK)
        compare(bench, rounds, at);
    return rc;
}

/* The first round does not count: it is measured again. */
static int measure(struct bench *bench, const struct rounds *rounds,
                   struct weir_error *err)
{
    int rc = bench_row_open(bench, err);

    if (rc == WEIR_OK)
        rc = go_round(bench, rounds, 0, err);
    for (size_t at = 0; at < rounds->count && rc == WEIR_OK; at++) {
        rc = go_round(bench, rounds, at, err);
        bench->progress.step++;
    }
    if (rc == WEIR_OK)
        rc = bench_server_clear(&bench->server, err);
    bench_row_close(bench);
    return rc;
}

static int print(struct bench *bench, const struct rounds *rounds,
                 struct weir_error *err)
{
    int rc = WEIR_OK;

    for (size_t i = 0; i < HANDLERS && rc == WEIR_OK; i++) {
        struct bench_row row;

        label(bench, &row, i);
        rc = bench_row_put_together(bench, &row, row_of(rounds, i, 0), err);
        if (rc == WEIR_OK)
            rc = bench_row_print(bench, &row, err);
    }
    return rc;
}

static int run(struct bench *bench, struct weir_error *err)
{
    struct rounds rounds = {.count = (size_t)bench->options.repeat};
    int rc;

    rounds.rows = calloc(rounds.count * HANDLERS, sizeof(rounds.rows[0]));
    if (rounds.rows == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    bench->progress.steps = (int)rounds.count;
    rc = measure(bench, &rounds, err);
    if (rc == WEIR_OK)
        rc = print(bench, &rounds, err);
    free(rounds.rows);
    return rc;
}

const struct bench_case bench_case_handlers = {
    .name = "handlers",
    .summary = "handlers that return, are pending, block",
    .details =
        "The same jobs with handlers that do nothing: sync returns its "
        "verdict, pending completes all jobs of a turn of the loop in the "
        "next one (--concurrency: how many may be), random half of them in any "
        "order, as answers come that take their time, blocking is called by 8 "
        "threads, timer completes each job 1 ms after it began: of limit is "
        "its drain as a share of --concurrency jobs a millisecond. Each repeat "
        "has all of them; of sync, after the drain and after the figure end to "
        "end, is the ratio to sync in the same repeat. The rows are printed at "
        "the end.",
    .example = "weir-bench handlers --ids made --repeat 3",
    .flags = BENCH_FLAG_KIND | BENCH_FLAG_CONSUMERS | BENCH_FLAG_ONE_PROCESS |
             BENCH_FLAG_CONCURRENCY,
    .fallback = {.jobs = 500000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .concurrency = 256,
                 .repeat = 5},
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* weir-bench compare: the same messages through every kind. */

#include "bench/load.h"
#include "core/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const enum bench_figure columns[] = {BENCH_elapsed_ms,
                                            BENCH_drain_per_s,
                                            BENCH_ratio,
                                            BENCH_lost,
                                            BENCH_duplicated,
                                            BENCH_server_us_per_job,
                                            BENCH_client_us_per_job,
                                            BENCH_enqueue_per_s};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static const int64_t consumers[] = {1, 10};
enum { COUNTS = sizeof(consumers) / sizeof(consumers[0]) };

/* Filled first and drained once all is due; then with the consumers running
 * from the first add to the last settle. */
static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    return bench_load_run(bench, arg, row, err);
}

static int measure(struct bench *bench, const struct bench_variant *variant,
                   int64_t count, struct bench_row *row, struct weir_error *err)
{
    struct bench_load load;
    struct bench_plan plan = {.fn = repeat, .arg = &load};

    bench_row_label(bench, row, "compare");
    load = bench_load_variant(bench, variant, count, row);
    (void)snprintf(row->label, sizeof(row->label), "%s, %lld", variant->words,
                   (long long)count);
    return bench_row_measure(bench, row, &plan, err);
}

/* How often the slowest row that neither loses nor repeats goes into each. */
static void compare(struct bench_row *rows, size_t count)
{
    double slowest = (double)NAN;

    for (size_t i = 0; i < count; i++) {
        const double *figure = rows[i].figure;

        if (figure[BENCH_lost] == 0 && figure[BENCH_duplicated] == 0 &&
            !(figure[BENCH_drain_per_s] >= slowest))
            slowest = figure[BENCH_drain_per_s];
    }
    for (size_t i = 0; i < count; i++)
        rows[i].figure[BENCH_ratio] =
            rows[i].figure[BENCH_drain_per_s] / slowest;
}

static int print(struct bench *bench, const struct bench_row *rows,
                 size_t count, struct weir_error *err)
{
    int rc = WEIR_OK;

    for (size_t i = 0; i < count && rc == WEIR_OK; i++)
        rc = bench_row_print(bench, &rows[i], err);
    return rc;
}

static int run(struct bench *bench, struct weir_error *err)
{
    size_t count = bench_variant_count * COUNTS;
    struct bench_row *rows = calloc(count, sizeof(rows[0]));
    int rc = WEIR_OK;

    if (rows == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    bench->progress.steps = (int)(count * (size_t)bench->options.repeat);
    for (size_t i = 0; i < count && rc == WEIR_OK; i++)
        rc = measure(bench, &bench_variants[i / COUNTS], consumers[i % COUNTS],
                     &rows[i], err);
    if (rc == WEIR_OK) {
        compare(rows, count);
        rc = print(bench, rows, count, err);
    }
    free(rows);
    return rc;
}

const struct bench_case bench_case_compare = {
    .name = "compare",
    .summary = "every kind with 1 and 10 consumers, the same messages",
    .details =
        "Elapsed is the time from the first add to the last settle, the "
        "consumers running throughout. For drain the queue is filled first "
        "and the consumers start when the last message is due. x slowest "
        "compares the drain with that of the slowest row that neither loses "
        "nor repeats a message. The rows are printed at the end.",
    .example = "weir-bench compare --delay 1s --report compare.html",
    .flags = BENCH_FLAG_DELAY,
    .fallback = {.jobs = 100000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .repeat = 5,
                 .delay_ms = 1000},
    .columns = columns,
    .column_count = COLUMNS,
    .run = run,
};

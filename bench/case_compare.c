/* SPDX-License-Identifier: MIT */

/* weir-bench compare: the same messages through every kind. */

#include "bench/load.h"
#include "bench/origin.h"
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

/* Whether the options leave it in. */
static bool is_wanted(const struct bench_options *options,
                      const struct bench_variant *variant)
{
    long kind = bench_kind_find(variant->kind) - bench_kinds;

    return options->kinds == 0 || (options->kinds >> kind & 1) != 0;
}

static size_t count_rows(const struct bench_options *options)
{
    size_t variants = 0, counts = 0;

    for (size_t i = 0; i < bench_variant_count; i++)
        variants += is_wanted(options, &bench_variants[i]);
    while (options->counts[counts] != 0)
        counts++;
    return variants * counts;
}

static int measure_all(struct bench *bench, struct bench_row *rows,
                       struct weir_error *err)
{
    const struct bench_options *options = &bench->options;
    int rc = WEIR_OK;

    for (size_t i = 0; i < bench_variant_count; i++) {
        if (!is_wanted(options, &bench_variants[i]))
            continue;
        for (size_t k = 0; options->counts[k] != 0 && rc == WEIR_OK; k++)
            rc = measure(bench, &bench_variants[i], options->counts[k], rows++,
                         err);
    }
    return rc;
}

static int run(struct bench *bench, struct weir_error *err)
{
    size_t count = count_rows(&bench->options);
    struct bench_row *rows = calloc(count, sizeof(rows[0]));
    int rc;

    if (rows == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    bench->progress.steps = (int)(count * (size_t)bench->options.repeat);
    rc = measure_all(bench, rows, err);
    if (rc == WEIR_OK) {
        compare(rows, count);
        rc = print(bench, rows, count, err);
    }
    free(rows);
    return rc;
}

const struct bench_case bench_case_compare = {
    .name = "compare",
    .summary = "every kind with few and many consumers, the same messages",
    .details =
        "Elapsed is the time from the first add to the last settle, the "
        "consumers running throughout. For drain the queue is filled first "
        "and the consumers start when the last message is due. x slowest "
        "compares the drain with that of the slowest row that neither loses "
        "nor repeats a message. --kind and --consumers leave rows out. The "
        "rows are printed at the end.",
    .example = "weir-bench compare --delay 1s --report compare.html",
    .flags = BENCH_FLAG_DELAY | BENCH_FLAG_LISTS,
    .fallback = {.jobs = 100000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .counts = {1, 10},
                 .repeat = 5,
                 .delay_ms = 1000},
    .columns = columns,
    .column_count = COLUMNS,
    .run = run,
    .put_more = bench_origin_put,
};

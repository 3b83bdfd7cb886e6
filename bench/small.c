/* SPDX-License-Identifier: MIT */
#include "bench/small.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REPEATS = 3, JOBS = 2000, RUN_MS = 20, TIMED = 100, SPAN_MS = 1000 };

/* The least of all rows; NAN: no row has it. */
struct least {
    double jobs, run_ms, timed;
};

static void look_at(const struct bench_row *row, struct least *least)
{
    static const enum bench_figure rates[] = {
        BENCH_enqueue_per_s, BENCH_drain_per_s, BENCH_end_to_end_per_s,
        BENCH_ops_per_s};
    double jobs = (double)row->jobs;

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        double per_s = row->figure[rates[i]];

        if (!(per_s > 0))
            continue;
        least->jobs = fmin(least->jobs, jobs);
        least->run_ms = fmin(least->run_ms, jobs * 1000 / per_s);
    }
    if (isnan(row->figure[BENCH_p99_ms]))
        return;
    least->timed = fmin(least->timed, isnan(row->figure[BENCH_measured])
                                          ? jobs
                                          : row->figure[BENCH_measured]);
}

/* Add "<before><value><unit> (<least> at least)" where it is not. */
static void weigh(char *buf, double value, double least, const char *before,
                  const char *unit)
{
    size_t len = strlen(buf);
    int digits = value == floor(value) ? 0 : 1;

    if (value < least)
        (void)snprintf(buf + len, BENCH_SMALL_CAP - len,
                       "%s%s%.*f%s (%.0f at least)", len > 0 ? ", " : "",
                       before, digits, value, unit, least);
}

void bench_small_text(const struct bench *bench, char buf[BENCH_SMALL_CAP])
{
    struct least least = {(double)NAN, (double)NAN, (double)NAN};
    const struct bench_options *options = &bench->options;
    bool is_idle = false;

    for (size_t i = 0; i < bench->output.row_count; i++) {
        const struct bench_row *row = &bench->output.rows[i];

        look_at(row, &least);
        is_idle |= !isnan(row->figure[BENCH_commands_per_s]);
    }
    buf[0] = '\0';
    weigh(buf, (double)options->repeat, REPEATS, "--repeat ", "");
    weigh(buf, least.jobs, JOBS, "rows of ", " jobs");
    weigh(buf, least.run_ms, RUN_MS, "runs of ", " ms");
    weigh(buf, least.timed, TIMED, "p99 of ", " jobs");
    if (is_idle)
        weigh(buf, (double)options->span_ms, SPAN_MS, "--for ", "ms");
}

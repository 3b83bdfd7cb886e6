/* SPDX-License-Identifier: MIT */

/* weir-bench limits: what `rate` and `parallel` of a topic cost beside a topic
 * without them. */

#include "bench/ask.h"
#include "bench/load.h"

#include <stdio.h>

static const enum bench_figure columns[] = {
    BENCH_drain_per_s, BENCH_drain_server_us, BENCH_drain_client_us, BENCH_lost,
    BENCH_duplicated};

/* An option of the topic, "" none, and what the row is called. */
struct limits {
    const char *option, *words;
};

static const struct limits each[] = {
    {"", "no limit"},
    {"rate=1000000/s burst 1000000", "rate that is not reached"},
    {"rate=20000/s", "20,000/s"},
    {"parallel=1000000", "parallel that is not reached"},
    {"parallel=64", "64 at once"},
};
enum { ROWS = sizeof(each) / sizeof(each[0]) };

struct measured {
    struct bench_load load;
    const struct limits *limits;
};

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct measured *measured = arg;
    const struct bench_load *load = &measured->load;
    const char *const settings[] = {measured->limits->option, NULL};
    char topic[BENCH_TOPIC_CAP];
    struct bench_topic made = {bench->server.url, topic, load->kind->name};
    int64_t due_ns = 0;
    int rc = bench_load_prepare(bench, load, topic, err);

    if (rc == WEIR_OK && settings[0][0] != '\0')
        rc = bench_topic_set(&made, settings, err);
    if (rc == WEIR_OK)
        rc = bench_load_fill(bench, load, topic, row, &due_ns, err);
    return rc < 0 ? rc : bench_load_drain(bench, load, topic, due_ns, row, err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    struct measured measured = {.load = bench_load_of(bench)};
    struct bench_plan plan = {.fn = repeat, .arg = &measured};
    struct bench_row row;
    int rc = WEIR_OK;

    bench->progress.steps = ROWS * (int)bench->options.repeat;
    for (size_t i = 0; i < ROWS && rc == WEIR_OK; i++) {
        measured.limits = &each[i];
        bench_row_label(bench, &row, "limits");
        (void)snprintf(row.label, sizeof(row.label), "%s", each[i].words);
        rc = bench_row_report(bench, &row, &plan, err);
    }
    return rc;
}

const struct bench_case bench_case_limits = {
    .name = "limits",
    .summary = "what rate and parallel of a topic cost",
    .details =
        "Jobs are added, then handled by --consumers workers: of a topic "
        "without "
        "limits, with a rate and a bound of how many run that are not reached, "
        "so that they only cost what looking at them does, with 20,000 starts "
        "a "
        "second, and with 64 jobs at once over all workers.",
    .example = "weir-bench limits --consumers 4 --repeat 3",
    .flags = BENCH_FLAG_CONSUMERS,
    .fallback = {.jobs = 100000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 4,
                 .repeat = 3},
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

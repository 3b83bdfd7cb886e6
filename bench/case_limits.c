/* SPDX-License-Identifier: MIT */

/* weir-bench limits: what limits of a topic, keys, priorities and unique keys
 * of jobs cost beside jobs and a topic without them. */

#include "bench/ask.h"
#include "bench/load.h"

#include <stdio.h>

static const enum bench_figure columns[] = {
    BENCH_enqueue_per_s,   BENCH_enqueue_server_us, BENCH_drain_per_s,
    BENCH_drain_server_us, BENCH_drain_client_us,   BENCH_lost,
    BENCH_duplicated};

/* Options of the topic, what its jobs have, and what the row is called. */
struct limits {
    const char *options[2];
    const char *words;
    int64_t keys;
    bool has_priorities, is_unique;
};

static const struct limits each[] = {
    {.words = "no limit"},
    {.words = "rate that is not reached",
     .options = {"rate=1000000/s burst 1000000"}},
    {.words = "20,000/s", .options = {"rate=20000/s"}},
    {.words = "parallel that is not reached", .options = {"parallel=1000000"}},
    {.words = "64 at once", .options = {"parallel=64"}},
    {.words = "1,000 keys in turn", .keys = 1000},
    {.words = "their limits are not reached",
     .options = {"key_parallel=1000", "key_rate=1000000/s burst 1000000"},
     .keys = 1000},
    {.words = "one of a key at once",
     .options = {"key_parallel=1"},
     .keys = 1000},
    {.words = "four priorities", .has_priorities = true},
    {.words = "unique keys", .is_unique = true},
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
    const char *const settings[] = {measured->limits->options[0],
                                    measured->limits->options[1], NULL};
    char topic[BENCH_TOPIC_CAP];
    struct bench_topic made = {bench->server.url, topic, load->kind->name};
    int64_t due_ns = 0;
    int rc = bench_load_prepare(bench, load, topic, err);

    if (rc == WEIR_OK && settings[0] != NULL)
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
        measured.load.keys = each[i].keys;
        measured.load.has_priorities = each[i].has_priorities;
        measured.load.is_unique = each[i].is_unique;
        bench_row_label(bench, &row, "limits");
        (void)snprintf(row.label, sizeof(row.label), "%s", each[i].words);
        rc = bench_row_report(bench, &row, &plan, err);
    }
    return rc;
}

const struct bench_case bench_case_limits = {
    .name = "limits",
    .summary = "what limits, keys and priorities cost",
    .details =
        "Jobs are added, then handled by --consumers workers: of a topic "
        "without limits, with a rate and a bound of how many run that are not "
        "reached, so that they only cost what looking at them does, with "
        "20,000 starts a second, and with 64 jobs at once over all workers; "
        "jobs of 1,000 keys that take turns, with limits of each key that are "
        "not reached and with one job of a key at once; jobs of all four "
        "priorities; and jobs with a unique key each.",
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

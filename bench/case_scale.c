/* SPDX-License-Identifier: MIT */

/* weir-bench scale: what a job costs as backlog, topics, workers and bodies
 * grow. */

#include "bench/backlog.h"

#include <stdio.h>

#define HOUR_MS      INT64_C(3600000)
#define BYTES_IN_ALL (INT64_C(256) * 1024 * 1024)

static const enum bench_figure columns[] = {
    BENCH_enqueue_per_s,     BENCH_drain_per_s,
    BENCH_end_to_end_per_s,  BENCH_server_us_per_job,
    BENCH_client_us_per_job, BENCH_server_bytes_per_job,
    BENCH_slow_commands,     BENCH_slowest_ms,
    BENCH_worker_rss_mb,     BENCH_lost,
    BENCH_duplicated};

struct step {
    struct bench_load load, backlog; /* backlog.jobs is 0: none */
    char topic[BENCH_TOPIC_CAP];     /* of the backlog */
};

static int prepare(struct bench *bench, const void *arg, struct bench_row *row,
                   struct weir_error *err)
{
    const struct step *step = arg;

    if (step->backlog.jobs == 0)
        return WEIR_OK;
    return bench_backlog_put(bench, &step->backlog, step->topic, row, err);
}

static int measure_one(struct bench *bench, const struct step *step,
                       const struct bench_load *load, struct bench_row *row,
                       struct weir_error *err)
{
    char fresh[BENCH_TOPIC_CAP];
    int64_t due_ns;
    int rc = bench_load_prepare(bench, load, fresh, err);

    if (rc < 0)
        return rc;
    if (step->backlog.jobs > 0)
        return bench_load_flow(bench, load, step->topic, row, err);
    rc = bench_load_fill(bench, load, fresh, row, &due_ns, err);
    if (rc == WEIR_OK)
        rc = bench_load_drain(bench, load, fresh, due_ns, row, err);
    if (rc == WEIR_OK)
        rc = bench_load_prepare(bench, load, fresh, err);
    return rc < 0 ? rc : bench_load_flow(bench, load, fresh, row, err);
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct step *step = arg;
    struct bench_load load = step->load;
    int rc;

    load.id_base = load.jobs * bench->progress.step; /* new ids each time */
    rc = bench_slow_begin(bench, err);
    if (rc == WEIR_OK)
        rc = measure_one(bench, step, &load, row, err);
    bench_slow_count(bench, row);
    return rc;
}

static int measure(struct bench *bench, struct step *step, const char *words,
                   int64_t value, struct weir_error *err)
{
    struct bench_plan plan = {.fn = repeat, .arg = step, .prepare = prepare};
    struct bench_row row;

    bench_row_label(bench, &row, "scale");
    row.consumers = step->load.consumers;
    row.jobs = step->load.jobs;
    row.payload_bytes = step->load.payload_bytes;
    row.topics = step->load.idle_topics + 1;
    row.backlog = step->backlog.jobs;
    (void)snprintf(row.label, sizeof(row.label), "%s %lld", words,
                   (long long)value);
    bench_topic_name(bench, step->topic);
    return bench_row_report(bench, &row, &plan, err);
}

/* --- what grows ------------------------------------------------------- */

static int backlogs(struct bench *bench, struct weir_error *err)
{
    static const int64_t counts[] = {1000, 1000000, 10000000};
    int rc = WEIR_OK;

    for (size_t i = 0; i < 3 && rc == WEIR_OK; i++) {
        struct step step = {.load = bench_load_of(bench),
                            .backlog = bench_load_of(bench)};

        if (counts[i] > bench->options.backlog)
            return WEIR_OK;
        step.backlog.jobs = counts[i];
        step.backlog.delay_ms = HOUR_MS;
        step.backlog.id_base = BENCH_BACKLOG_IDS;
        rc = measure(bench, &step, "backlog", counts[i], err);
    }
    return rc;
}

static int topics(struct bench *bench, struct weir_error *err)
{
    static const int64_t counts[] = {1, 100, 10000};
    int rc = WEIR_OK;

    for (size_t i = 0; i < 3 && rc == WEIR_OK; i++) {
        struct step step = {.load = bench_load_of(bench)};

        if (counts[i] > bench->options.topics)
            return WEIR_OK;
        step.load.idle_topics = counts[i] - 1;
        rc = measure(bench, &step, "topics", counts[i], err);
    }
    return rc;
}

static int workers(struct bench *bench, struct weir_error *err)
{
    int rc = WEIR_OK;

    for (int64_t count = 1; count <= 8 && rc == WEIR_OK; count *= 2) {
        struct step step = {.load = bench_load_of(bench)};

        step.load.consumers = count;
        rc = measure(bench, &step, "workers", count, err);
    }
    return rc;
}

static int bodies(struct bench *bench, struct weir_error *err)
{
    static const int64_t sizes[] = {16, 100, 1024, 8192, 65536};
    int rc = WEIR_OK;

    for (size_t i = 0; i < 5 && rc == WEIR_OK; i++) {
        struct step step = {.load = bench_load_of(bench)};

        step.load.payload_bytes = sizes[i];
        if (step.load.jobs > BYTES_IN_ALL / sizes[i])
            step.load.jobs = BYTES_IN_ALL / sizes[i];
        rc = measure(bench, &step, "body bytes", sizes[i], err);
    }
    return rc;
}

static int run(struct bench *bench, struct weir_error *err)
{
    int rc;

    bench->progress.steps = 15 * (int)bench->options.repeat;
    rc = backlogs(bench, err);
    if (rc == WEIR_OK)
        rc = topics(bench, err);
    if (rc == WEIR_OK)
        rc = workers(bench, err);
    return rc < 0 ? rc : bodies(bench, err);
}

const struct bench_case bench_case_scale = {
    .name = "scale",
    .summary = "what a job costs as backlog, topics, workers, bodies grow",
    .details =
        "One thing grows at a time: jobs scheduled in the same topic (1,000, "
        "1 and 10 million, as far as --backlog allows), topics that are served "
        "and empty (--topics), worker processes, bytes of a body. Bytes/job is "
        "the server's memory for the backlog; over 5 ms counts commands in its "
        "SLOWLOG while jobs were measured. 10 million jobs take about 3 GB.",
    .example = "weir-bench scale --backlog 10000000 --repeat 3",
    .flags = BENCH_FLAG_BACKLOG | BENCH_FLAG_TOPICS,
    .fallback = {.jobs = 200000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .repeat = 5,
                 .backlog = 1000000,
                 .topics = 10000},
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

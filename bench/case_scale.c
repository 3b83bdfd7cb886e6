/* SPDX-License-Identifier: MIT */

/* weir-bench scale: what a job costs as backlog, topics, workers and bodies
 * grow. */

#include "bench/backlog.h"

#include <stdio.h>

#define HOUR_MS      INT64_C(3600000)
#define BYTES_IN_ALL (INT64_C(256) * 1024 * 1024)

enum {
    LARGE_BODY = 4096,
    BYTES_IN_FLIGHT = 32 * 1024 * 1024, /* of large bodies */
    BUSY_IN_FLIGHT = 4096,              /* jobs, over all busy topics */
    BUSY_MAX = 64
};

static const enum bench_figure columns[] = {
    BENCH_enqueue_per_s,     BENCH_drain_per_s,
    BENCH_end_to_end_per_s,  BENCH_server_us_per_job,
    BENCH_client_us_per_job, BENCH_server_bytes_per_job,
    BENCH_slow_commands,     BENCH_slowest_ms,
    BENCH_worker_rss_mb,     BENCH_producer_rss_mb,
    BENCH_turn_ms,           BENCH_lost,
    BENCH_duplicated};

struct step {
    struct bench_load load, backlog; /* backlog.jobs is 0: none */
    char topic[BENCH_TOPIC_CAP];     /* of the backlog */
    int64_t jobs_before;             /* that go through it unmeasured */
};

static int prepare(struct bench *bench, const void *arg, struct bench_row *row,
                   struct weir_error *err)
{
    const struct step *step = arg;
    struct bench_load load = step->load;
    struct bench_row ignored = *row;
    int rc;

    if (step->backlog.jobs == 0)
        return WEIR_OK;
    rc = bench_backlog_put(bench, &step->backlog, step->topic, row, err);
    if (rc < 0 || step->jobs_before == 0)
        return rc;
    load.jobs = step->jobs_before;
    load.id_base = 2 * BENCH_BACKLOG_IDS;
    return bench_load_flow(bench, &load, step->topic, &ignored, err);
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
    if (load->spread != NULL)
        return bench_load_flow(bench, load, load->spread->topics[0], row, err);
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
    row.topics = step->load.spread != NULL ? step->load.spread->count
                                           : step->load.idle_topics + 1;
    row.batch = step->load.batch;
    row.backlog = step->backlog.jobs;
    (void)snprintf(row.label, sizeof(row.label), "%s %lld", words,
                   (long long)value);
    bench_topic_name(bench, step->topic);
    return bench_row_report(bench, &row, &plan, err);
}

/* --- what grows ------------------------------------------------------- */

static int backlog(struct bench *bench, int64_t count, int64_t jobs_before,
                   struct weir_error *err)
{
    struct step step = {.load = bench_load_of(bench),
                        .backlog = bench_load_of(bench),
                        .jobs_before = jobs_before};

    step.backlog.jobs = count;
    step.backlog.delay_ms = HOUR_MS;
    step.backlog.id_base = BENCH_BACKLOG_IDS;
    return measure(bench, &step,
                   jobs_before > 0 ? "tables grown, backlog" : "backlog", count,
                   err);
}

/* The server's tables grow while a backlog is added, and what they hold moves
 * on with each look-up from then on. Half as many jobs as there are in the
 * backlog look up more than that. */
static int backlogs(struct bench *bench, struct weir_error *err)
{
    static const int64_t counts[] = {1000, 1000000, 10000000};
    int64_t most = 0;
    int rc = WEIR_OK;

    for (size_t i = 0; i < 3 && rc == WEIR_OK; i++) {
        if (counts[i] > bench->options.backlog)
            break;
        most = counts[i];
        rc = backlog(bench, most, 0, err);
    }
    return rc < 0 || most == 0 ? rc : backlog(bench, most, most / 2, err);
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

/* A job for one topic, the next one for another. */
static int busy_topics(struct bench *bench, struct weir_error *err)
{
    int rc = WEIR_OK;

    for (int count = 1; count <= BUSY_MAX && rc == WEIR_OK; count *= 4) {
        struct step step = {.load = bench_load_of(bench)};
        struct bench_spread spread = {.batch = 1, .count = count};

        if (count > bench->options.topics)
            return WEIR_OK;
        for (int i = 0; i < count; i++)
            bench_topic_name(bench, spread.topics[i]);
        step.load.spread = &spread;
        step.load.batch = 1;
        step.load.in_flight = BUSY_IN_FLIGHT;
        rc = measure(bench, &step, "busy topics", count, err);
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
        if (sizes[i] > LARGE_BODY)
            step.load.in_flight = BYTES_IN_FLIGHT / sizes[i];
        rc = measure(bench, &step, "body bytes", sizes[i], err);
    }
    return rc;
}

static int run(struct bench *bench, struct weir_error *err)
{
    int rc;

    bench->progress.steps = 20 * (int)bench->options.repeat;
    rc = backlogs(bench, err);
    if (rc == WEIR_OK)
        rc = topics(bench, err);
    if (rc == WEIR_OK)
        rc = busy_topics(bench, err);
    if (rc == WEIR_OK)
        rc = workers(bench, err);
    return rc < 0 ? rc : bodies(bench, err);
}

const struct bench_case bench_case_scale = {
    .name = "scale",
    .summary = "what a job costs as backlog, topics, workers, bodies grow",
    .details =
        "One thing grows at a time: jobs scheduled in the same topic (1,000, "
        "1 and 10 million, as far as --backlog allows; the largest once more "
        "after half as many jobs went through, when the server's tables have "
        "grown to its size), topics that are served and empty (--topics), "
        "topics that are busy (1 to 64, one job a turn of the producer's loop, "
        "each for another topic, 4,096 in flight), worker processes, bytes of "
        "a body (large ones with 32 MiB in flight). Bytes/job is the server's "
        "memory for the backlog; over 5 ms counts commands in its SLOWLOG "
        "while jobs were measured; turn ms is the longest turn of a loop. 10 "
        "million jobs take about 3 GB.",
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

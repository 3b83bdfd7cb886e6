/* SPDX-License-Identifier: MIT */

/* weir-bench scattered: jobs with due times of their own, added, handled as
 * they become due, and handled when all of them are overdue. */

#include "bench/backlog.h"
#include "bench/stamps.h"

#include <stdio.h>

#define HOUR_MS   INT64_C(3600000)
#define NS_PER_MS INT64_C(1000000)

enum {
    FIRST_BACKLOG = 1000000, /* the larger one is what the options say */
    LEAD_MS = 1000,          /* from the first add to the first due time, */
    ADDS_PER_MS = 50,        /* and as long as adding takes at that rate */
    READY_MS = 300,          /* what the worker needs of it */
    STAMPS_PER_MS = 1000
};

static const enum bench_figure columns[] = {BENCH_enqueue_per_s,
                                            BENCH_enqueue_server_us,
                                            BENCH_server_bytes_per_job,
                                            BENCH_drain_per_s,
                                            BENCH_drain_server_us,
                                            BENCH_drain_client_us,
                                            BENCH_p50_ms,
                                            BENCH_p99_ms,
                                            BENCH_max_ms,
                                            BENCH_slow_commands,
                                            BENCH_slowest_ms,
                                            BENCH_early,
                                            BENCH_lost,
                                            BENCH_duplicated};

/* --- adds ------------------------------------------------------------- */

struct adds {
    struct bench_load load, backlog;
    char topic[BENCH_TOPIC_CAP];
};

static int prepare(struct bench *bench, const void *arg, struct bench_row *row,
                   struct weir_error *err)
{
    const struct adds *adds = arg;

    return bench_backlog_put(bench, &adds->backlog, adds->topic, row, err);
}

static int add(struct bench *bench, const void *arg, struct bench_row *row,
               struct weir_error *err)
{
    const struct adds *adds = arg;
    struct bench_load load = adds->load;
    int64_t due_ns;
    int rc = bench_slow_begin(bench, err);

    load.id_base = load.jobs * bench->progress.step; /* new ids each time */
    if (rc == WEIR_OK)
        rc = bench_load_fill(bench, &load, adds->topic, row, &due_ns, err);
    bench_slow_count(bench, row);
    return rc;
}

static int measure_adds(struct bench *bench, int64_t pending,
                        struct weir_error *err)
{
    struct adds adds = {.load = bench_load_of(bench)};
    struct bench_plan plan = {.fn = add, .arg = &adds, .prepare = prepare};
    struct bench_row row;

    adds.load.delay_ms = HOUR_MS;
    adds.load.spread_ms = 24 * HOUR_MS;
    adds.backlog = adds.load;
    adds.backlog.jobs = pending;
    adds.backlog.id_base = BENCH_BACKLOG_IDS;
    bench_topic_name(bench, adds.topic);
    bench_row_label(bench, &row, "scattered");
    row.backlog = pending;
    (void)snprintf(row.label, sizeof(row.label), "add, %lld pending",
                   (long long)pending);
    return bench_row_report(bench, &row, &plan, err);
}

/* --- what is due within the window ------------------------------------ */

/* Add all of it to a fresh topic before the first of it is due. `*ret_begin_ns`
 * is when that is, `load->from_ms` the same by the server's clock. Where adding
 * took too long it is done again, with twice the time. */
static int add_ahead(struct bench *bench, struct bench_load *load,
                     char topic[BENCH_TOPIC_CAP], int64_t *ret_begin_ns,
                     struct bench_row *row, struct weir_error *err)
{
    int64_t ahead_ms = bench_server_clock_ahead_us(&bench->server) / 1000;
    int64_t lead_ms = LEAD_MS + load->jobs / ADDS_PER_MS, due_ns;
    int rc;

    for (;; lead_ms *= 2) {
        *ret_begin_ns = bench_now_ns() + lead_ms * NS_PER_MS;
        load->from_ms = bench_wall_ns() / NS_PER_MS + ahead_ms + lead_ms;
        rc = bench_load_prepare(bench, load, topic, err);
        if (rc == WEIR_OK)
            rc = bench_load_fill(bench, load, topic, row, &due_ns, err);
        if (rc < 0 || bench_now_ns() + READY_MS * NS_PER_MS < *ret_begin_ns)
            return rc;
        rc = bench_server_clear(&bench->server, err);
        if (rc < 0)
            return rc;
    }
}

/* The worker waits for the first job, and runs until the last one is done. */
static int watch(struct bench *bench, struct bench_team *team,
                 const struct bench_wait *wait, int64_t begin_ns,
                 struct bench_row *row, struct weir_error *err)
{
    double before = bench_server_cpu_us(&bench->server);
    int64_t settled_ns;
    int rc;

    bench_team_order(team, 0, BENCH_GO);
    rc = bench_load_await_settled(bench, team, wait, &settled_ns, err);
    if (rc < 0)
        return rc;
    row->figure[BENCH_drain_server_us] =
        (bench_server_cpu_us(&bench->server) - before) / (double)wait->jobs;
    row->figure[BENCH_drain_per_s] =
        (double)wait->jobs * 1e9 / (double)(settled_ns - begin_ns);
    rc = bench_team_stop(team, err);
    row->figure[BENCH_drain_client_us] =
        (double)bench_team_cpu_ns(team) / 1000 / (double)wait->jobs;
    return rc;
}

static int become_due(struct bench *bench, const void *arg,
                      struct bench_row *row, struct weir_error *err)
{
    struct bench_load load = *(const struct bench_load *)arg;
    char topic[BENCH_TOPIC_CAP];
    struct bench_wait wait = {
        .topic = topic, .kind = load.kind->name, .jobs = load.jobs};
    struct bench_role role;
    struct bench_team team;
    int64_t begin_ns;
    int rc = add_ahead(bench, &load, topic, &begin_ns, row, err);

    if (rc == WEIR_OK)
        rc = bench_slow_begin(bench, err);
    if (rc == WEIR_OK)
        rc = bench_team_init(&team, load.jobs, true, err);
    if (rc < 0)
        return rc;
    role = bench_load_role(bench, &load, topic);
    role.handles = role.handles_at_once = true;
    role.stamps = BENCH_STAMP_LATE;
    role.clock_ahead_us = bench_server_clock_ahead_us(&bench->server);
    wait.due_ns = begin_ns + load.spread_ms * NS_PER_MS;
    rc = bench_team_join(&team, &role, err);
    if (rc >= 0)
        rc = watch(bench, &team, &wait, begin_ns, row, err);
    if (rc == WEIR_OK)
        rc = bench_stamps_read(&team, STAMPS_PER_MS, row, err);
    if (rc == WEIR_OK)
        bench_load_count(&team, row);
    bench_slow_count(bench, row);
    bench_team_fini(&team);
    return rc;
}

static int become_overdue(struct bench *bench, const void *arg,
                          struct bench_row *row, struct weir_error *err)
{
    struct bench_load load = *(const struct bench_load *)arg;
    char topic[BENCH_TOPIC_CAP];
    int64_t begin_ns;
    int rc = add_ahead(bench, &load, topic, &begin_ns, row, err);

    if (rc == WEIR_OK)
        rc = bench_slow_begin(bench, err);
    if (rc == WEIR_OK)
        rc = bench_load_drain(bench, &load, topic,
                              begin_ns + load.spread_ms * NS_PER_MS, row, err);
    bench_slow_count(bench, row);
    return rc;
}

static int measure_due(struct bench *bench, bench_repeat_fn fn, int64_t jobs,
                       struct weir_error *err)
{
    struct bench_load load = bench_load_of(bench);
    struct bench_plan plan = {.fn = fn, .arg = &load};
    struct bench_row row;

    load.jobs = jobs;
    load.spread_ms = bench->options.window_ms;
    bench_row_label(bench, &row, "scattered");
    row.jobs = jobs;
    if (fn == become_due)
        (void)snprintf(row.label, sizeof(row.label), "due, %lld/s for %lld ms",
                       (long long)(jobs * 1000 / load.spread_ms),
                       (long long)load.spread_ms);
    else
        (void)snprintf(row.label, sizeof(row.label),
                       "overdue, %lld within %lld ms", (long long)jobs,
                       (long long)load.spread_ms);
    return bench_row_report(bench, &row, &plan, err);
}

/* --- all of it -------------------------------------------------------- */

static int run(struct bench *bench, struct weir_error *err)
{
    static const int64_t per_ms[] = {100, 20, 2};
    int64_t most = bench->options.backlog;
    int64_t first = most < FIRST_BACKLOG ? most : FIRST_BACKLOG;
    int rc;

    bench->progress.steps = (most > first ? 6 : 5) * (int)bench->options.repeat;
    rc = measure_adds(bench, first, err);
    if (rc == WEIR_OK && most > first)
        rc = measure_adds(bench, most, err);
    for (size_t i = 0; i < 3 && rc == WEIR_OK; i++)
        rc = measure_due(bench, become_due,
                         per_ms[i] * bench->options.window_ms, err);
    return rc < 0 ? rc : measure_due(bench, become_overdue, first, err);
}

const struct bench_case bench_case_scattered = {
    .name = "scattered",
    .summary = "jobs with due times of their own",
    .details =
        "First --jobs are added, due within 24 h, where 1 million pending have "
        "theirs there too, and once more where --backlog are, if that is more. "
        "Then 100,000, 20,000 and 2,000 jobs a second become due within "
        "--window, all added before: drain/s says whether the worker kept up, "
        "p50 to max is start minus due time. Last as many jobs as were pending "
        "first, due within --window, are handled when all of them are overdue. "
        "Bytes/job is the server's memory for what is pending; over 5 ms "
        "counts commands in its SLOWLOG. 10 million jobs take about 4 GB.",
    .example = "weir-bench scattered --backlog 10000000 --repeat 3",
    .flags = BENCH_FLAG_WINDOW | BENCH_FLAG_BACKLOG,
    .fallback = {.jobs = 200000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .repeat = 3,
                 .window_ms = 10000,
                 .backlog = FIRST_BACKLOG},
    .one_server = true,
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* weir-bench lateness: jobs that are due at random times. */

#include "bench/load.h"
#include "bench/stamps.h"

#include <stdio.h>

enum { LEAD_MS = 1000, LOADED_WINDOW_MS = 1000, PER_MS = 1000 };

static const enum bench_figure columns[] = {BENCH_p50_ms,
                                            BENCH_p90_ms,
                                            BENCH_p99_ms,
                                            BENCH_max_ms,
                                            BENCH_server_us_per_job,
                                            BENCH_early,
                                            BENCH_measured,
                                            BENCH_lost,
                                            BENCH_duplicated};

struct plan {
    struct bench_load load, backlog; /* backlog.jobs is 0: unloaded */
};

/* The backlog begins to drain when the first job is due. */
static int watch(struct bench *bench, struct bench_team *team,
                 const struct plan *plan, const char *topic,
                 struct bench_row *row, struct weir_error *err)
{
    struct bench_wait wait = {
        .topic = topic, .kind = plan->load.kind->name, .jobs = plan->load.jobs};
    double before = bench_server_cpu_us(&bench->server);
    int producer = team->count - 1;
    int64_t lead_ns = plan->load.delay_ms * 1000000, settled;
    int rc;

    for (int who = 0; who < team->count; who++)
        bench_team_order(team, who, BENCH_GO);
    rc = bench_load_await_added(bench, team, producer, err);
    if (rc < 0)
        return rc;
    if (plan->backlog.jobs > 0) {
        bench_rest_ns(team->arena->member[producer].begun_ns + lead_ns -
                      bench_now_ns());
        bench_team_order(team, 0, BENCH_BACKLOG);
    }
    wait.due_ns = team->arena->member[producer].added_ns + lead_ns +
                  plan->load.spread_ms * 1000000;
    rc = bench_load_await_settled(bench, team, &wait, &settled, err);
    row->figure[BENCH_server_us_per_job] =
        (bench_server_cpu_us(&bench->server) - before) / (double)wait.jobs;
    return rc;
}

static int run_team(struct bench *bench, struct bench_team *team,
                    const struct plan *plan, const char *backlog,
                    struct bench_row *row, struct weir_error *err)
{
    char topic[BENCH_TOPIC_CAP];
    struct bench_role role;
    int rc = bench_load_prepare(bench, &plan->load, topic, err);

    if (rc < 0)
        return rc;
    role = bench_load_role(bench, &plan->load, topic);
    role.handles_at_once = true;
    role.stamps = BENCH_STAMP_LATE;
    role.clock_ahead_us = bench_server_clock_ahead_us(&bench->server);
    role.backlog_topic = backlog;
    role.backlog_jobs = plan->backlog.jobs;
    rc = bench_load_workers(bench, team, &plan->load, &role, err);
    role.handles = role.handles_at_once = false;
    role.adds = true;
    if (rc >= 0)
        rc = bench_team_join(team, &role, err);
    if (rc >= 0)
        rc = watch(bench, team, plan, topic, row, err);
    return rc < 0 ? rc : bench_team_stop(team, err);
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct plan *plan = arg;
    const char *backlog = NULL;
    char name[BENCH_TOPIC_CAP];
    struct bench_row ignored = *row;
    struct bench_team team;
    int64_t due_ns;
    int rc = WEIR_OK;

    if (plan->backlog.jobs > 0) {
        rc = bench_load_prepare(bench, &plan->backlog, name, err);
        if (rc == WEIR_OK)
            rc = bench_load_fill(bench, &plan->backlog, name, &ignored, &due_ns,
                                 err);
        backlog = name;
    }
    if (rc == WEIR_OK)
        rc = bench_team_init(&team, plan->load.jobs, true, err);
    if (rc < 0)
        return rc;
    rc = run_team(bench, &team, plan, backlog, row, err);
    if (rc == WEIR_OK)
        rc = bench_stamps_read(&team, PER_MS, row, err);
    if (rc == WEIR_OK)
        bench_load_count(&team, row);
    bench_team_fini(&team);
    return rc;
}

static int measure(struct bench *bench, const struct plan *arg,
                   const char *words, struct weir_error *err)
{
    struct bench_plan plan = {.fn = repeat, .arg = arg};
    struct bench_row row;

    bench_row_label(bench, &row, "lateness");
    row.backlog = arg->backlog.jobs;
    (void)snprintf(
        row.label, sizeof(row.label), "%.30s, due within %lld ms, workers %lld",
        words, (long long)arg->load.spread_ms, (long long)arg->load.consumers);
    return bench_row_report(bench, &row, &plan, err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    struct plan plan = {.load = bench_load_of(bench)};
    char words[40];
    int rc;

    bench->progress.steps = 2 * (int)bench->options.repeat;
    plan.load.delay_ms = LEAD_MS;
    plan.load.spread_ms = bench->options.window_ms;
    rc = measure(bench, &plan, "unloaded", err);
    if (rc < 0)
        return rc;
    plan.backlog = bench_load_of(bench);
    plan.backlog.jobs = bench->options.backlog;
    plan.backlog.delay_ms = 0;
    if (plan.load.spread_ms > LOADED_WINDOW_MS)
        plan.load.spread_ms = LOADED_WINDOW_MS;
    (void)snprintf(words, sizeof(words), "%lld ready",
                   (long long)plan.backlog.jobs);
    return measure(bench, &plan, words, err);
}

const struct bench_case bench_case_lateness = {
    .name = "lateness",
    .summary = "start minus due time of jobs due at random times",
    .details =
        "--jobs jobs are due at random within --window, for --consumers "
        "workers. The second row has --backlog ready jobs of another topic "
        "beside them, which one of the workers begins to drain when the first "
        "is due; it has jobs that started while that went on (measured), due "
        "within 1 s at most. Server us is CPU time for each of --jobs, with "
        "what else happens until all are done. Early counts starts before the "
        "due time by the clock.",
    .example = "weir-bench lateness --jobs 20000 --window 5s",
    .flags = BENCH_FLAG_KIND | BENCH_FLAG_WINDOW | BENCH_FLAG_BACKLOG |
             BENCH_FLAG_CONSUMERS,
    .fallback = {.jobs = 20000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .repeat = 5,
                 .window_ms = 5000,
                 .backlog = 1000000},
    .one_server = true,
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

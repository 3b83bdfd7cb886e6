/* SPDX-License-Identifier: MIT */

/* weir-bench wake: one job at a time for a worker that has nothing to do. */

#include "bench/load.h"
#include "bench/stamps.h"

#include <stdio.h>

enum { PAUSE_MS = 4, PER_MS = 1000000 };

static const enum bench_figure columns[] = {BENCH_p50_ms,
                                            BENCH_p90_ms,
                                            BENCH_p99_ms,
                                            BENCH_max_ms,
                                            BENCH_server_us_per_job,
                                            BENCH_client_us_per_job,
                                            BENCH_early,
                                            BENCH_lost,
                                            BENCH_duplicated};

static int watch(struct bench *bench, struct bench_team *team,
                 const struct bench_wait *wait, struct bench_row *row,
                 struct weir_error *err)
{
    double before = bench_server_cpu_us(&bench->server);
    int64_t settled;
    int rc;

    bench_team_order(team, 0, BENCH_GO);
    bench_team_order(team, 1, BENCH_GO);
    rc = bench_load_await_settled(bench, team, wait, &settled, err);
    if (rc < 0)
        return rc;
    row->figure[BENCH_server_us_per_job] =
        (bench_server_cpu_us(&bench->server) - before) / (double)wait->jobs;
    rc = bench_team_stop(team, err);
    row->figure[BENCH_client_us_per_job] =
        (double)bench_team_cpu_ns(team) / 1000 / (double)wait->jobs;
    return rc;
}

static int run_team(struct bench *bench, struct bench_team *team,
                    const struct bench_load *load, struct bench_row *row,
                    struct weir_error *err)
{
    char topic[BENCH_TOPIC_CAP];
    struct bench_wait wait = {
        .topic = topic, .kind = load->kind->name, .jobs = load->jobs};
    struct bench_role role;
    int rc = bench_load_prepare(bench, load, topic, err);

    if (rc < 0)
        return rc;
    role = bench_load_role(bench, load, topic);
    role.handles = role.handles_at_once = true;
    role.stamps = BENCH_STAMP_WAKE;
    rc = bench_team_join(team, &role, err);
    role.handles = role.handles_at_once = false;
    role.adds = true;
    role.pause_ms = PAUSE_MS;
    if (rc >= 0)
        rc = bench_team_join(team, &role, err);
    return rc < 0 ? rc : watch(bench, team, &wait, row, err);
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct bench_load *load = arg;
    struct bench_team team;
    int rc = bench_team_init(&team, load->jobs, true, err);

    if (rc < 0)
        return rc;
    rc = run_team(bench, &team, load, row, err);
    if (rc == WEIR_OK)
        rc = bench_stamps_read(&team, PER_MS, row, err);
    if (rc == WEIR_OK)
        bench_load_count(&team, row);
    bench_team_fini(&team);
    return rc;
}

static int run(struct bench *bench, struct weir_error *err)
{
    struct bench_load load = bench_load_of(bench);
    struct bench_plan plan = {.fn = repeat, .arg = &load};
    struct bench_row row;

    bench->progress.steps = (int)bench->options.repeat;
    bench_row_label(bench, &row, "wake");
    row.batch = 1;
    (void)snprintf(row.label, sizeof(row.label), "%s, %s", row.kind,
                   row.transport);
    return bench_row_report(bench, &row, &plan, err);
}

const struct bench_case bench_case_wake = {
    .name = "wake",
    .summary = "one job for an idle worker: from the add to the handler",
    .details =
        "A producer adds a job 2 to 6 ms after the one before was handled; "
        "the time is from the call that adds to the begin of the handler in "
        "another process, on the monotonic clock that both share. Server us "
        "has what happens in the pauses, too.",
    .example = "weir-bench wake --jobs 2000",
    .flags = BENCH_FLAG_KIND,
    .fallback = {.jobs = 1000,
                 .payload_bytes = 100,
                 .batch = 1,
                 .consumers = 1,
                 .repeat = 5},
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

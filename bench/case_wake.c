/* SPDX-License-Identifier: MIT */

/* weir-bench wake: one job at a time for a worker that has nothing to do. */

#include "bench/load.h"
#include "bench/stamps.h"

#include <stdio.h>

enum { SHORT_MS = 4, LONG_MS = 50, FEWER = 10, PER_MS = 1000000 };

static const enum bench_figure columns[] = {BENCH_p50_ms,
                                            BENCH_p90_ms,
                                            BENCH_p99_ms,
                                            BENCH_max_ms,
                                            BENCH_server_us_per_job,
                                            BENCH_client_us_per_job,
                                            BENCH_early,
                                            BENCH_lost,
                                            BENCH_duplicated};

struct wake {
    struct bench_load load;
    int64_t pause_ms;
};

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
                    const struct wake *wake, struct bench_row *row,
                    struct weir_error *err)
{
    const struct bench_load *load = &wake->load;
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
    role.pause_ms = wake->pause_ms;
    if (rc >= 0)
        rc = bench_team_join(team, &role, err);
    return rc < 0 ? rc : watch(bench, team, &wait, row, err);
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct wake *wake = arg;
    struct bench_team team;
    int rc = bench_team_init(&team, wake->load.jobs, true, err);

    if (rc < 0)
        return rc;
    rc = run_team(bench, &team, wake, row, err);
    if (rc == WEIR_OK)
        rc = bench_stamps_read(&team, PER_MS, row, err);
    if (rc == WEIR_OK)
        bench_load_count(&team, row);
    bench_team_fini(&team);
    return rc;
}

static int report(struct bench *bench, int64_t jobs, int64_t pause_ms,
                  struct weir_error *err)
{
    struct wake wake = {.load = bench_load_of(bench), .pause_ms = pause_ms};
    struct bench_plan plan = {.fn = repeat, .arg = &wake};
    struct bench_row row;

    wake.load.jobs = jobs;
    bench_row_label(bench, &row, "wake");
    row.batch = 1;
    row.jobs = jobs;
    (void)snprintf(row.label, sizeof(row.label), "%s, %s, each %lld ms",
                   row.kind, row.transport, (long long)pause_ms);
    return bench_row_report(bench, &row, &plan, err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    struct bench_server_options *server = &bench->options.server;
    bool has_both = server->redis == NULL && !server->tcp;
    int64_t jobs = bench->options.jobs;
    int rc;

    bench->progress.steps = (has_both ? 3 : 2) * (int)bench->options.repeat;
    rc = report(bench, jobs, SHORT_MS, err);
    if (rc == WEIR_OK)
        rc = report(bench, jobs < FEWER ? 1 : jobs / FEWER, LONG_MS, err);
    if (rc < 0 || !has_both)
        return rc;
    server->tcp = true;
    return report(bench, jobs, SHORT_MS, err);
}

const struct bench_case bench_case_wake = {
    .name = "wake",
    .summary = "one job for an idle worker: from the add to the handler",
    .details =
        "A producer adds a job 2 to 6 ms after the one before was handled, and "
        "in the second row 25 to 75 ms after that, a tenth as many. With a "
        "private server on a unix socket the third row is as the first, over "
        "TCP. The time is from the call that adds to the begin of the handler "
        "in another "
        "process, on the monotonic clock that both share. Server us has what "
        "happens in the pauses, too.",
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

/* SPDX-License-Identifier: MIT */

/* weir-bench idle: what a worker costs that has nothing to do. */

#include "bench/load.h"

#include <stdio.h>

enum { CALM_MS = 2000 };

static const enum bench_figure columns[] = {
    BENCH_commands_per_s, BENCH_server_cpu_percent, BENCH_worker_cpu_percent,
    BENCH_worker_rss_mb};

static int watch(struct bench *bench, struct bench_team *team,
                 struct bench_row *row, struct weir_error *err)
{
    int64_t span_ns = bench->options.span_ms * 1000000, begun, commands;
    const struct bench_member *member = &team->arena->member[0];
    double before;
    int rc;

    bench_rest_ns(span_ns < CALM_MS * INT64_C(1000000)
                      ? span_ns
                      : CALM_MS * INT64_C(1000000));
    before = bench_server_cpu_us(&bench->server);
    begun = bench_now_ns();
    bench_team_order(team, 0, BENCH_GO);
    bench_rest_ns(span_ns);
    row->figure[BENCH_server_cpu_percent] =
        (bench_server_cpu_us(&bench->server) - before) * 1e5 /
        (double)(bench_now_ns() - begun);
    commands = bench_server_count_commands(&bench->server, span_ns);
    row->figure[BENCH_commands_per_s] =
        (double)commands * 1e9 / (double)span_ns;
    begun = bench_now_ns() - begun;
    rc = bench_team_stop(team, err);
    row->figure[BENCH_worker_cpu_percent] =
        (double)member->cpu_ns * 100 / (double)begun;
    row->figure[BENCH_worker_rss_mb] = (double)member->rss_kib / 1024;
    return rc;
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct bench_load *load = arg;
    char topic[BENCH_TOPIC_CAP];
    struct bench_role role;
    struct bench_team team;
    int rc = bench_team_init(&team, 1, false, err);

    if (rc < 0)
        return rc;
    rc = bench_load_prepare(bench, load, topic, err);
    if (rc == WEIR_OK) {
        role = bench_load_role(bench, load, topic);
        role.handles = role.handles_at_once = true;
        rc = bench_team_join(&team, &role, err);
    }
    if (rc >= 0)
        rc = watch(bench, &team, row, err);
    bench_team_fini(&team);
    return rc;
}

static int measure(struct bench *bench, int64_t topics, struct weir_error *err)
{
    struct bench_load load = bench_load_of(bench);
    struct bench_plan plan = {.fn = repeat, .arg = &load};
    struct bench_row row;

    load.idle_topics = topics - 1;
    bench_row_label(bench, &row, "idle");
    row.jobs = 0;
    row.topics = topics;
    (void)snprintf(row.label, sizeof(row.label), "%lld idle topics",
                   (long long)topics);
    return bench_row_report(bench, &row, &plan, err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    static const int64_t counts[] = {1, 100, 10000};
    int rc = WEIR_OK;

    bench->progress.steps = 3 * (int)bench->options.repeat;
    for (size_t i = 0; i < 3 && rc == WEIR_OK; i++)
        if (counts[i] <= bench->options.topics)
            rc = measure(bench, counts[i], err);
    return rc;
}

const struct bench_case bench_case_idle = {
    .name = "idle",
    .summary = "commands and CPU time of an idle worker",
    .details =
        "A worker serves 1, 100 and 10,000 topics (as far as --topics allows) "
        "that are empty. CPU time is looked at --for so long, then commands "
        "are counted as long; commands that scripts call do not count.",
    .example = "weir-bench idle --topics 10000 --for 10s",
    .flags = BENCH_FLAG_KIND | BENCH_FLAG_TOPICS | BENCH_FLAG_SPAN,
    .fallback = {.jobs = 1,
                 .payload_bytes = 100,
                 .batch = 1,
                 .consumers = 1,
                 .repeat = 5,
                 .topics = 10000,
                 .span_ms = 10000},
    .one_server = true,
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

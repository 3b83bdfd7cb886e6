/* SPDX-License-Identifier: MIT */

/* weir-bench crash: a worker killed in mid-run, another one after it. */

#include "bench/load.h"

#include <stdio.h>

enum { LEASE_MS = 1000, GLANCE_NS = 100000, PATIENCE_S = 60, LOGICAL = 10 };

static const enum bench_figure columns[] = {
    BENCH_lost, BENCH_duplicated, BENCH_killed_at, BENCH_recovered_ms};

/* Let the first worker run until it handled so many, then kill it. */
static int strike(struct bench_team *team, int64_t at, int64_t *ret_ns,
                  struct weir_error *err)
{
    int64_t deadline = bench_now_ns() + PATIENCE_S * INT64_C(1000000000);
    int rc = WEIR_OK;

    bench_team_order(team, 0, BENCH_GO);
    while (bench_team_handled(team) < at && rc == WEIR_OK &&
           bench_now_ns() < deadline) {
        bench_rest_ns(GLANCE_NS);
        rc = bench_team_check(team, err);
    }
    bench_team_kill(team, 0);
    *ret_ns = bench_now_ns();
    return rc;
}

static int run_team(struct bench *bench, struct bench_team *team,
                    const struct bench_role *role, int64_t at,
                    struct bench_row *row, struct weir_error *err)
{
    struct bench_wait wait = {
        .topic = role->topic, .kind = role->kind, .jobs = role->jobs};
    int64_t killed, settled;
    int rc = bench_team_join(team, role, err);

    if (rc >= 0)
        rc = strike(team, at, &killed, err);
    if (rc < 0)
        return rc;
    row->figure[BENCH_killed_at] = (double)bench_team_handled(team);
    rc = bench_team_join(team, role, err);
    if (rc < 0)
        return rc;
    bench_team_order(team, rc, BENCH_GO);
    rc = bench_load_await_settled(bench, team, &wait, &settled, err);
    if (rc < 0)
        return rc;
    if (settled < killed) /* it had taken all that was left */
        settled = killed;
    row->figure[BENCH_recovered_ms] = (double)(settled - killed) / 1e6;
    rc = bench_load_balance(bench, team, &wait, row, err);
    return rc < 0 ? rc : bench_team_stop(team, err);
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct bench_load *load = arg;
    char topic[BENCH_TOPIC_CAP];
    struct bench_role role;
    struct bench_team team;
    int64_t due_ns, at;
    int rc = bench_load_prepare(bench, load, topic, err);

    if (rc == WEIR_OK)
        rc = bench_load_fill(bench, load, topic, row, &due_ns, err);
    if (rc == WEIR_OK)
        rc = bench_team_init(&team, load->jobs, false, err);
    if (rc < 0)
        return rc;
    role = bench_load_role(bench, load, topic);
    role.handles = true;
    /* Between a fifth and four fifths, elsewhere each time. */
    at = load->jobs / 5 + load->jobs * (bench->topics_made * 37 % 60) / 100;
    rc = run_team(bench, &team, &role, at, row, err);
    bench_team_fini(&team);
    return rc;
}

static int measure(struct bench *bench, const struct bench_variant *variant,
                   struct weir_error *err)
{
    struct bench_load load;
    struct bench_plan plan = {.fn = repeat, .arg = &load};
    struct bench_row row;
    int64_t consumers;

    bench_row_label(bench, &row, "crash");
    consumers = bench_kind_find(variant->kind)->has_consumers ? LOGICAL : 1;
    load = bench_load_variant(bench, variant, consumers, &row);
    load.lease_ms = LEASE_MS;
    (void)snprintf(row.label, sizeof(row.label), "%s, lease %d ms",
                   variant->words, LEASE_MS);
    return bench_row_report(bench, &row, &plan, err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    int rc = WEIR_OK;

    bench->progress.steps =
        (int)bench_variant_count * (int)bench->options.repeat;
    for (size_t i = 0; i < bench_variant_count && rc == WEIR_OK; i++)
        rc = measure(bench, &bench_variants[i], err);
    return rc;
}

const struct bench_case bench_case_crash = {
    .name = "crash",
    .summary = "what is lost and repeated when a worker is killed",
    .details =
        "A worker drains --jobs jobs and is killed with kill -9 somewhere "
        "between a fifth and four fifths of them; another one takes its "
        "place. Recovered is the time from the kill until everything is "
        "settled. Lost and duplicated are the worst repeat.",
    .example = "weir-bench crash --jobs 300000 --repeat 10",
    .fallback = {.jobs = 300000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .repeat = 5},
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

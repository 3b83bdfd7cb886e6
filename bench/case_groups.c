/* SPDX-License-Identifier: MIT */

/* weir-bench groups: events of many groups, in bounded topics. */

#include "bench/ask.h"
#include "bench/body.h"
#include "bench/kills.h"
#include "bench/load.h"
#include "bench/numbers.h"
#include "bench/source.h"
#include "bench/stamps.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>

#define NS_PER_S INT64_C(1000000000)

enum {
    PRODUCERS = 8,
    WORKERS = 4,
    GROUPS = 1000,
    LENGTH = 1000, /* of a group */
    SETTINGS = 3,
    COLD_GROUPS = 99990, /* beside ten hot ones */
    HOT_PRODUCERS = 4,
    COLD_PER_S = 5000,
    SOURCE_PER_S = 10000,
    MAX_AGE_S = 180,
    ADD_AT_ONCE = 1024,
    PATIENCE_S = 60,
    KILL_LEASE_MS = 1000,
    QUIET_S = 3, /* longer than a lease: nothing is left to be killed at */
    LOOK_AGAIN_NS = 1000000,
    NS_PER_MS = 1000000
};

static const enum bench_figure columns[] = {
    BENCH_enqueue_per_s, BENCH_end_to_end_per_s, BENCH_server_us_per_job,
    BENCH_added,         BENCH_handled,          BENCH_dropped_overflow,
    BENCH_dropped_age,   BENCH_dropped_ttl,      BENCH_lost,
    BENCH_duplicated,    BENCH_misordered,       BENCH_killed,
    BENCH_ran_dropped,   BENCH_p50_ms,           BENCH_p99_ms,
    BENCH_max_ms};

/* A topic of these settings, who works on it, and what is counted. */
struct job {
    const char *label;
    const char *settings[SETTINGS];
    int64_t jobs, per_s, groups;
    int workers, producers, hot_producers;
    bool is_killing; /* workers, and replacing them */
    enum bench_stamps stamps;
};

/* --- the team --------------------------------------------------------- */

static int gather(struct bench_team *team, const struct job *job,
                  struct bench_role role, struct weir_error *err)
{
    int rc = WEIR_OK;

    role.handles = role.handles_at_once = true;
    for (int i = 0; i < job->workers && rc >= 0; i++)
        rc = bench_team_join(team, &role, err);
    role.handles = role.handles_at_once = false;
    role.adds = true;
    for (int i = 0; i < job->producers && rc >= 0; i++) {
        role.first = job->jobs * i / job->producers;
        role.jobs = job->jobs * (i + 1) / job->producers - role.first;
        rc = bench_team_join(team, &role, err);
    }
    role.is_hot = true;
    role.per_s = 0;
    role.jobs = INT64_MAX;
    for (int i = 0; i < job->hot_producers && rc >= 0; i++)
        rc = bench_team_join(team, &role, err);
    return rc < 0 ? rc : WEIR_OK;
}

/* Hot producers never end; when the others have, what they added is awaited. */
static int await_cold(struct bench *bench, struct bench_team *team,
                      const struct job *job, struct weir_error *err)
{
    int64_t deadline = bench_now_ns() + PATIENCE_S * NS_PER_S;
    int rc = WEIR_OK;

    while (rc == WEIR_OK && bench_team_fresh(team) < job->jobs &&
           bench_now_ns() < deadline) {
        bench_progress_draw(&bench->progress, 0);
        bench_rest_ns(LOOK_AGAIN_NS);
        rc = bench_team_check(team, err);
    }
    return rc;
}

static bool is_adding(const struct bench_team *team, const struct job *job)
{
    for (int i = 0; i < job->producers; i++)
        if (bench_team_state(team, job->workers + i) < BENCH_DONE)
            return true;
    return false;
}

/* Until all are killed that are to be, or there is nothing left to handle. */
static int kill_some(struct bench *bench, struct bench_team *team,
                     const struct job *job, const struct bench_role *role,
                     struct bench_row *row, struct weir_error *err)
{
    int64_t seen = 0, since = bench_now_ns();
    struct bench_kills kills;
    int rc = WEIR_OK;

    bench_kills_init(&kills, role, job->workers, job->jobs);
    while (
        rc == WEIR_OK && kills.count < BENCH_KILLS &&
        (is_adding(team, job) || bench_now_ns() - since < QUIET_S * NS_PER_S)) {
        int64_t handled = bench_team_handled(team);

        if (handled != seen) {
            seen = handled;
            since = bench_now_ns();
        }
        rc = bench_kills_look(&kills, team, err);
        if (rc == WEIR_OK)
            rc = bench_team_check(team, err);
        bench_progress_draw(&bench->progress, 0);
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    row->figure[BENCH_killed] = (double)kills.count;
    return rc;
}

static int await_all(struct bench *bench, struct bench_team *team,
                     const struct job *job, const struct bench_wait *wait,
                     struct bench_row *row, struct weir_error *err)
{
    int64_t begun = INT64_MAX, added = 0, settled = 0;
    int rc = WEIR_OK;

    for (int i = 0; i < job->producers && rc == WEIR_OK; i++) {
        const struct bench_member *member =
            &team->arena->member[job->workers + i];

        rc = bench_load_await_added(bench, team, job->workers + i, err);
        begun = member->begun_ns < begun ? member->begun_ns : begun;
        added = member->added_ns > added ? member->added_ns : added;
    }
    if (rc < 0)
        return rc;
    row->figure[BENCH_enqueue_per_s] =
        (double)job->jobs * 1e9 / (double)(added - begun);
    if (job->hot_producers > 0)
        return await_cold(bench, team, job, err);
    rc = bench_load_await_settled(bench, team, wait, &settled, err);
    row->figure[BENCH_end_to_end_per_s] =
        (double)job->jobs * 1e9 / (double)(settled - begun);
    return rc;
}

/* --- figures ---------------------------------------------------------- */

/* Events that began before one that their producer added to the same group
 * earlier. */
static int count_misordered(const struct bench_team *team,
                            const struct job *job, struct bench_row *row,
                            struct weir_error *err)
{
    int64_t *last = calloc((size_t)job->groups, sizeof(last[0]));
    int64_t wrong = 0;

    if (last == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    for (int who = 0; who < job->producers; who++) {
        int64_t end = job->jobs * (who + 1) / job->producers;

        for (int64_t i = 0; i < job->groups; i++)
            last[i] = 0;
        for (int64_t i = job->jobs * who / job->producers; i < end; i++) {
            int64_t at = atomic_load(&team->arena->stamp[i]);
            int64_t *before = &last[bench_group_of(i, job->groups)];

            if (at == BENCH_NO_STAMP)
                continue; /* it was dropped */
            wrong += at < *before;
            *before = at;
        }
    }
    free(last);
    row->figure[BENCH_misordered] = (double)wrong;
    return WEIR_OK;
}

/* As the server counts them. What the workers that were killed last had in hand
 * ends a lease later, though each event ran by then. */
static int read_counts(const struct job *job, const struct bench_topic *topic,
                       struct bench_counts *counts, struct weir_error *err)
{
    int64_t since = bench_now_ns();
    int rc = bench_topic_counts(topic, counts, err);

    while (rc == WEIR_OK && job->is_killing &&
           counts->done + counts->dropped_overflow < job->jobs &&
           bench_now_ns() - since < QUIET_S * NS_PER_S) {
        bench_rest_ns(LOOK_AGAIN_NS);
        rc = bench_topic_counts(topic, counts, err);
    }
    return rc;
}

/* An event that ran when its worker was killed goes back to its group, and may
 * be dropped there: it is counted as handled and as dropped. So what the server
 * counts has to make up what was added, and every event that it does not count
 * as dropped has to have run. */
static void count_killed(const struct bench_team *team,
                         const struct bench_counts *counts,
                         struct bench_row *row)
{
    const struct bench_tally *tally = team->arena->tally;
    int64_t dropped =
        counts->dropped_overflow + counts->dropped_age + counts->dropped_ttl;
    int64_t handled = tally->jobs - bench_tally_lost(tally);
    int64_t unended = tally->jobs - counts->done - dropped;
    int64_t unseen = tally->jobs - handled - dropped;

    row->figure[BENCH_lost] = (double)(unended > unseen ? unended : unseen);
    row->figure[BENCH_ran_dropped] = (double)(handled - counts->done);
    row->figure[BENCH_duplicated] = (double)bench_tally_duplicated(tally);
    row->figure[BENCH_dropped_overflow] = (double)counts->dropped_overflow;
    row->figure[BENCH_dropped_age] = (double)counts->dropped_age;
    row->figure[BENCH_dropped_ttl] = (double)counts->dropped_ttl;
}

/* Every event has one end: it was handled, or dropped for a reason. Of hot
 * events, which have no numbers, only what the server counts is known. */
static int count(struct bench *bench, struct bench_team *team,
                 const struct job *job, const struct bench_wait *wait,
                 struct bench_row *row, struct weir_error *err)
{
    struct bench_topic topic = {bench->server.url, wait->topic, wait->kind};
    const struct bench_tally *tally = team->arena->tally;
    struct bench_counts counts = {0};
    int rc = read_counts(job, &topic, &counts, err);

    if (rc < 0)
        return rc;
    row->figure[BENCH_added] = (double)counts.added;
    row->figure[BENCH_handled] = (double)(job->jobs - bench_tally_lost(tally));
    if (job->stamps == BENCH_STAMP_WAKE && job->hot_producers > 0) {
        row->figure[BENCH_handled] = (double)bench_team_handled(team);
        row->figure[BENCH_dropped_overflow] = (double)counts.dropped_overflow;
        bench_load_count(team, row);
        return WEIR_OK;
    }
    if (job->is_killing) {
        count_killed(team, &counts, row);
        return WEIR_OK;
    }
    return bench_load_balance(bench, team, wait, row, err);
}

static int measure(struct bench *bench, struct bench_team *team,
                   const struct job *job, const struct bench_role *role,
                   struct bench_row *row, struct weir_error *err)
{
    struct bench_wait wait = {
        .topic = role->topic, .kind = role->kind, .jobs = job->jobs};
    double before = bench_server_cpu_us(&bench->server);
    int rc = WEIR_OK;

    for (int i = 0; i < team->count; i++)
        bench_team_order(team, i, BENCH_GO);
    if (job->is_killing)
        rc = kill_some(bench, team, job, role, row, err);
    if (rc == WEIR_OK)
        rc = await_all(bench, team, job, &wait, row, err);
    if (rc == WEIR_OK && job->hot_producers == 0)
        row->figure[BENCH_server_us_per_job] =
            (bench_server_cpu_us(&bench->server) - before) / (double)job->jobs;
    if (rc == WEIR_OK)
        rc = count(bench, team, job, &wait, row, err);
    if (rc == WEIR_OK && job->stamps == BENCH_STAMP_WAKE)
        rc = bench_stamps_read(team, NS_PER_MS, row, err);
    if (rc == WEIR_OK && job->stamps == BENCH_STAMP_ORDER)
        rc = count_misordered(team, job, row, err);
    return rc == WEIR_OK ? bench_team_stop(team, err) : rc;
}

/* --- rows ------------------------------------------------------------- */

static int prepare(const struct bench *bench, const struct bench_topic *topic,
                   const struct job *job, struct weir_error *err)
{
    const char *settings[SETTINGS + 4] = {"kind=bounded"};
    char length[24], batch[24];
    size_t count_of = 1;

    (void)snprintf(length, sizeof(length), "length=%d", LENGTH);
    (void)snprintf(batch, sizeof(batch), "batch=%lld",
                   (long long)bench->options.batch);
    settings[count_of++] = length;
    settings[count_of++] = batch;
    for (int i = 0; i < SETTINGS && job->settings[i] != NULL; i++)
        settings[count_of++] = job->settings[i];
    return bench_topic_set(topic, settings, err);
}

static int repeat(struct bench *bench, const void *arg, struct bench_row *row,
                  struct weir_error *err)
{
    const struct job *job = arg;
    struct bench_load load = bench_load_of(bench);
    char name[BENCH_TOPIC_CAP];
    struct bench_topic topic = {bench->server.url, name, "bounded"};
    struct bench_team team;
    struct bench_role role;
    int rc;

    load.kind = bench_kind_find(topic.kind);
    bench_topic_name(bench, name);
    role = bench_load_role(bench, &load, name);
    role.batch = ADD_AT_ONCE;
    role.per_s = job->per_s;
    role.groups = job->groups;
    role.stamps = job->stamps;
    if (job->is_killing)
        role.lease_ms = KILL_LEASE_MS;
    rc = bench_team_init(&team, job->jobs, true, err);
    if (rc == WEIR_OK)
        rc = prepare(bench, &topic, job, err);
    if (rc == WEIR_OK)
        rc = gather(&team, job, role, err);
    if (rc == WEIR_OK)
        rc = measure(bench, &team, job, &role, row, err);
    bench_team_fini(&team);
    return rc;
}

static int repeat_source(struct bench *bench, const void *arg,
                         struct bench_row *row, struct weir_error *err)
{
    const struct bench_source *source = arg;
    struct bench_tally *tally;
    struct bench_team team;
    int64_t dropped = 0;
    int rc = bench_team_init(&team, source->jobs, false, err);

    if (rc < 0)
        return rc;
    tally = team.arena->tally;
    rc = bench_source_run(&bench->server, source, tally,
                          &row->figure[BENCH_server_us_per_job], &dropped, err);
    row->figure[BENCH_added] = (double)source->jobs;
    row->figure[BENCH_handled] =
        (double)(source->jobs - bench_tally_lost(tally));
    row->figure[BENCH_dropped_overflow] = (double)dropped;
    row->figure[BENCH_lost] = (double)(bench_tally_lost(tally) - dropped);
    row->figure[BENCH_duplicated] = (double)bench_tally_duplicated(tally);
    bench_team_fini(&team);
    return rc;
}

static int report(struct bench *bench, const struct job *job,
                  const struct bench_plan *plan, struct weir_error *err)
{
    bool is_ours = plan->fn == repeat;
    struct bench_row row;

    bench_row_label(bench, &row, "groups");
    row.kind = is_ours ? "bounded" : "source";
    row.ids = NULL;
    row.consumers = job->workers;
    row.jobs = job->jobs;
    (void)snprintf(row.label, sizeof(row.label), "%s", job->label);
    return bench_row_report(bench, &row, plan, err);
}

/* Without `per_s` as many events as --jobs says. */
static const struct job jobs[] = {
    {.label = "1,000 groups, 8 producers",
     .groups = GROUPS,
     .workers = WORKERS,
     .producers = PRODUCERS,
     .stamps = BENCH_STAMP_ORDER},
    {.label = "the same, 20 workers killed",
     .settings = {"max_crashes=100"},
     .groups = GROUPS,
     .workers = WORKERS,
     .producers = PRODUCERS,
     .is_killing = true,
     .stamps = BENCH_STAMP_ORDER},
    {.label = "100,000 groups, 10 hot",
     .settings = {"hot=hot-*"},
     .per_s = COLD_PER_S,
     .groups = COLD_GROUPS,
     .workers = WORKERS,
     .producers = 1,
     .hot_producers = HOT_PRODUCERS,
     .stamps = BENCH_STAMP_WAKE},
    {.label = "10,000/s, 3 min of age",
     .settings = {"max_age=3m", "group_ttl=3m", "linger=1s"},
     .per_s = SOURCE_PER_S,
     .groups = GROUPS,
     .workers = 1,
     .producers = 1,
     .stamps = BENCH_STAMP_ORDER}};
enum { JOBS = sizeof(jobs) / sizeof(jobs[0]) };

static int run_source(struct bench *bench, struct weir_error *err)
{
    const struct bench_source source = {
        .jobs = (bench->options.span_ms * SOURCE_PER_S + 999) / 1000,
        .per_s = SOURCE_PER_S,
        .payload_bytes = bench->options.payload_bytes,
        .groups = GROUPS,
        .length = LENGTH,
        .batch = bench->options.batch,
        .ttl_s = MAX_AGE_S};
    struct job job = {.label = "the same, source's scripts",
                      .jobs = source.jobs,
                      .workers = 1};
    struct bench_plan plan = {.fn = repeat_source, .arg = &source};

    return report(bench, &job, &plan, err);
}

static int run(struct bench *bench, struct weir_error *err)
{
    const struct bench_options *options = &bench->options;
    int rc = WEIR_OK;

    bench->progress.steps = (JOBS + 1) * (int)options->repeat;
    for (size_t i = 0; i < JOBS && rc == WEIR_OK; i++) {
        struct job job = jobs[i];
        struct bench_plan plan = {.fn = repeat, .arg = &job};

        job.jobs = job.per_s > 0 ? (options->span_ms * job.per_s + 999) / 1000
                                 : options->jobs;
        rc = report(bench, &job, &plan, err);
    }
    return rc == WEIR_OK ? run_source(bench, err) : rc;
}

const struct bench_case bench_case_groups = {
    .name = "groups",
    .summary = "events of many groups, in bounded topics",
    .details =
        "Groups keep 1,000 events each, --batch are handled at once, by four "
        "workers. First --jobs events as fast as they go: handled and dropped "
        "make up what was added, the rest is lost; misordered ones began "
        "before one that was added to their group earlier. The same with "
        "20 kills of a worker, each replaced: what ran and was not settled "
        "runs again, or is dropped by its group then (ran, dropped). Only the "
        "first run of an event counts for the order. Then, --for so "
        "long, 5,000 events a second spread over 99,990 groups while ten hot "
        "ones are filled without end: the times are those from the add to the "
        "handler of the others. Last 10,000 events a second with one worker "
        "and a linger of 1 s, beside the published scripts whose consumer "
        "comes to each group once a second.",
    .example = "weir-bench groups --jobs 5000000 --for 60s",
    .flags = BENCH_FLAG_SPAN,
    .fallback = {.jobs = 2000000,
                 .payload_bytes = 100,
                 .batch = 128,
                 .consumers = 1,
                 .repeat = 3,
                 .span_ms = 20000},
    .one_server = true,
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};

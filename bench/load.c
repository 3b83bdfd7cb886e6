/* SPDX-License-Identifier: MIT */
#include "bench/load.h"

#include "bench/ask.h"
#include "bench/stamps.h"
#include "core/assert.h"
#include "core/error.h"

#include <math.h>
#include <stdio.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

enum { LOOK_AGAIN_NS = 1000000, QUIET_MS = 2000, STUCK_S = 120, SETTINGS = 6 };

struct bench_load bench_load_of(const struct bench *bench)
{
    const struct bench_options *options = &bench->options;

    return (struct bench_load){
        .kind = options->kind,
        .jobs = options->jobs,
        .payload_bytes = options->payload_bytes,
        .batch = options->batch,
        .consumers = options->consumers,
        .concurrency = options->concurrency,
        .delay_ms = options->delay_ms,
        .makes_ids = options->makes_ids,
        .one_process = options->one_process,
        .handler = options->handler,
    };
}

struct bench_load bench_load_variant(const struct bench *bench,
                                     const struct bench_variant *variant,
                                     int64_t consumers, struct bench_row *row)
{
    struct bench_load load = bench_load_of(bench);

    load.kind = bench_kind_find(variant->kind);
    WEIR_ASSERT(load.kind != NULL);
    load.lock = row->lock = variant->lock;
    load.parking = row->parking = variant->parking;
    load.auto_ack = row->auto_ack = variant->auto_ack;
    load.consumers = row->consumers = consumers;
    row->kind = variant->kind;
    if (load.kind->delay == BENCH_DELAY_NONE)
        load.delay_ms = 0;
    if (!load.kind->has_ids)
        row->ids = NULL;
    return load;
}

/* --- the topic -------------------------------------------------------- */

static size_t put(char buf[][40], size_t count, const char *name,
                  const char *value)
{
    if (value == NULL)
        return count;
    (void)snprintf(buf[count], sizeof(buf[count]), "%s=%s", name, value);
    return count + 1;
}

int bench_load_prepare(struct bench *bench, const struct bench_load *load,
                       char topic[BENCH_TOPIC_CAP], struct weir_error *err)
{
    struct bench_topic made = {bench->server.url, topic, load->kind->name};
    char texts[SETTINGS][40], number[24];
    const char *settings[SETTINGS + 1] = {NULL};
    size_t count = put(texts, 0, "lock", load->lock);

    bench_topic_name(bench, topic);
    count = put(texts, count, "parking", load->parking);
    count = put(texts, count, "auto_ack", load->auto_ack);
    if (load->kind->has_consumers) {
        (void)snprintf(number, sizeof(number), "%lld",
                       (long long)load->consumers);
        count = put(texts, count, "consumers", number);
    }
    if (load->kind->delay == BENCH_DELAY_OF_TOPIC) {
        (void)snprintf(number, sizeof(number), "%lldms",
                       (long long)load->delay_ms);
        count = put(texts, count, "delay", number);
    }
    if (load->kind->has_groups) /* what is dropped would be lost */
        count = put(texts, count, "length", "1000000");
    if (count == 0)
        return WEIR_OK; /* as it is without being told */
    count = put(texts, count, "kind", load->kind->name);
    for (size_t i = 0; i < count; i++)
        settings[i] = texts[i];
    return bench_topic_set(&made, settings, err);
}

struct bench_role bench_load_role(const struct bench *bench,
                                  const struct bench_load *load,
                                  const char *topic)
{
    return (struct bench_role){
        .url = bench->server.url,
        .topic = topic,
        .jobs = load->jobs,
        .payload_bytes = load->payload_bytes,
        .batch = load->batch,
        .makes_ids = load->makes_ids || !load->kind->has_ids,
        .kind = load->kind->name,
        .has_groups = load->kind->has_groups,
        .keys = load->keys,
        .has_priorities = load->has_priorities,
        .is_unique = load->is_unique,
        .delay_ms =
            load->kind->delay == BENCH_DELAY_OF_JOB ? load->delay_ms : 0,
        .from_ms = load->from_ms,
        .spread_ms = load->spread_ms,
        .id_base = load->id_base,
        .lease_ms = load->lease_ms,
        .idle_topics = load->idle_topics,
        .handler = load->handler,
        .concurrency = load->concurrency,
        .per_s = load->per_s,
        .in_flight = load->in_flight,
        .spread = load->spread,
        .stamps = load->by == NULL ? BENCH_STAMP_NONE : BENCH_STAMP_WAKE,
    };
}

int bench_load_workers(struct bench *bench, struct bench_team *team,
                       const struct bench_load *load, struct bench_role *role,
                       struct weir_error *err)
{
    int64_t workers = load->kind->has_consumers ? 1 : load->consumers;
    int rc = WEIR_OK;

    (void)bench;
    role->handles = true;
    for (int64_t i = 0; i < workers && rc >= 0; i++)
        rc = bench_team_join(team, role, err);
    return rc < 0 ? rc : WEIR_OK;
}

/* --- waiting ---------------------------------------------------------- */

int bench_load_await_added(struct bench *bench, struct bench_team *team,
                           int who, struct weir_error *err)
{
    while (bench_team_state(team, who) < BENCH_DONE) {
        int rc = bench_team_check(team, err);

        if (rc < 0)
            return rc;
        bench_progress_draw(&bench->progress, 0);
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    return bench_team_check(team, err);
}

static int count_left(struct bench *bench, const struct bench_wait *wait,
                      int64_t *ret_left, struct weir_error *err)
{
    struct bench_topic topic = {bench->server.url, wait->topic, wait->kind};
    int count = wait->spread != NULL ? wait->spread->count : 1;

    for (int i = 0; i < count; i++) {
        struct bench_counts counts;
        int rc;

        if (wait->spread != NULL)
            topic.name = wait->spread->topics[i];
        rc = bench_topic_counts(&topic, &counts, err);
        if (rc < 0)
            return rc;
        *ret_left += counts.left;
    }
    return WEIR_OK;
}

/* Nothing was handled for a while: is nothing left, or is nobody working? */
static int look_into(struct bench *bench, const struct bench_wait *wait,
                     int64_t quiet_ns, bool *ret_is_over,
                     struct weir_error *err)
{
    int64_t left = 0;
    int rc = count_left(bench, wait, &left, err);

    if (rc < 0)
        return rc;
    *ret_is_over = left == 0;
    if (left > 0 && quiet_ns > STUCK_S * NS_PER_S)
        return weir__error_set(err, WEIR_ETIMEDOUT,
                               "%lld jobs were left and nobody handled one "
                               "for %d s",
                               (long long)left, STUCK_S);
    return WEIR_OK;
}

int bench_load_await_settled(struct bench *bench, struct bench_team *team,
                             const struct bench_wait *wait, int64_t *ret_ns,
                             struct weir_error *err)
{
    int64_t seen = -1, since = 0, looked = 0;
    bool is_over = false;
    int rc;

    while ((rc = bench_team_check(team, err)) == WEIR_OK) {
        int64_t now = bench_now_ns(), handled = bench_team_handled(team);

        if (handled != seen || now < wait->due_ns) {
            seen = handled;
            since = looked = now;
        }
        is_over = is_over || bench_team_fresh(team) >= wait->jobs;
        if (is_over && bench_team_settled(team, ret_ns))
            return WEIR_OK;
        if (!is_over && now - looked > QUIET_MS * NS_PER_MS) {
            looked = now;
            rc = look_into(bench, wait, now - since, &is_over, err);
            if (rc < 0)
                return rc;
        }
        bench_progress_draw(&bench->progress,
                            (double)seen / (double)wait->jobs);
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    return rc;
}

/* Of several runs in a row the worst one counts. */
static void more(double *figure, int64_t count)
{
    if (isnan(*figure) || (double)count > *figure)
        *figure = (double)count;
}

void bench_load_count(const struct bench_team *team, struct bench_row *row)
{
    const struct bench_tally *tally = team->arena->tally;

    more(&row->figure[BENCH_lost], bench_tally_lost(tally));
    more(&row->figure[BENCH_duplicated], bench_tally_duplicated(tally));
}

int bench_load_balance(struct bench *bench, const struct bench_team *team,
                       const struct bench_wait *wait, struct bench_row *row,
                       struct weir_error *err)
{
    struct bench_topic topic = {bench->server.url, wait->topic, wait->kind};
    const struct bench_tally *tally = team->arena->tally;
    struct bench_counts counts = {0};
    double *figure = row->figure;
    int64_t dropped;
    int rc;

    if (!bench_kind_find(wait->kind)->has_groups) {
        bench_load_count(team, row);
        return WEIR_OK;
    }
    rc = bench_topic_counts(&topic, &counts, err);
    if (rc < 0)
        return rc;
    dropped = counts.dropped_overflow + counts.dropped_age + counts.dropped_ttl;
    more(&figure[BENCH_lost], bench_tally_lost(tally) - dropped);
    more(&figure[BENCH_duplicated], bench_tally_duplicated(tally));
    more(&figure[BENCH_dropped_overflow], counts.dropped_overflow);
    more(&figure[BENCH_dropped_age], counts.dropped_age);
    more(&figure[BENCH_dropped_ttl], counts.dropped_ttl);
    return WEIR_OK;
}

static double rate(int64_t jobs, int64_t ns)
{
    return ns > 0 ? (double)jobs * 1e9 / (double)ns : (double)NAN;
}

/* --- the runs --------------------------------------------------------- */

static int fill(struct bench *bench, struct bench_team *team,
                const struct bench_role *role, struct bench_row *row,
                struct weir_error *err)
{
    int who = bench_team_join(team, role, err);
    const struct bench_member *member;
    double before;
    int rc;

    if (who < 0)
        return who;
    member = &team->arena->member[who];
    before = bench_server_cpu_us(&bench->server);
    bench_team_order(team, who, BENCH_GO);
    rc = bench_load_await_added(bench, team, who, err);
    if (rc < 0)
        return rc;
    row->figure[BENCH_enqueue_server_us] =
        (bench_server_cpu_us(&bench->server) - before) / (double)role->jobs;
    row->figure[BENCH_enqueue_client_us] =
        (double)member->add_cpu_ns / 1000 / (double)role->jobs;
    row->figure[BENCH_enqueue_per_s] =
        rate(role->jobs, member->added_ns - member->begun_ns);
    return bench_team_stop(team, err);
}

int bench_load_fill(struct bench *bench, const struct bench_load *load,
                    const char *topic, struct bench_row *row,
                    int64_t *ret_due_ns, struct weir_error *err)
{
    struct bench_role role = bench_load_role(bench, load, topic);
    struct bench_team team;
    int rc = bench_team_init(&team, 0, false, err);

    if (rc < 0)
        return rc;
    role.adds = true;
    rc = fill(bench, &team, &role, row, err);
    if (rc == WEIR_OK)
        *ret_due_ns =
            team.arena->member[0].added_ns + load->delay_ms * NS_PER_MS;
    bench_team_fini(&team);
    return rc;
}

/* The whole team begins; `*ret_ns`: when. */
static void go(struct bench_team *team, int64_t *ret_ns)
{
    *ret_ns = bench_now_ns();
    for (int i = 0; i < team->count; i++)
        bench_team_order(team, i, BENCH_GO);
}

static int drain(struct bench *bench, struct bench_team *team,
                 const struct bench_wait *wait, struct bench_row *row,
                 struct weir_error *err)
{
    double before = bench_server_cpu_us(&bench->server);
    int64_t begun, settled = 0;
    int rc;

    go(team, &begun);
    rc = bench_load_await_settled(bench, team, wait, &settled, err);
    if (rc < 0)
        return rc;
    row->figure[BENCH_drain_server_us] =
        (bench_server_cpu_us(&bench->server) - before) / (double)wait->jobs;
    row->figure[BENCH_drain_per_s] = rate(wait->jobs, settled - begun);
    rc = bench_load_balance(bench, team, wait, row, err);
    if (rc < 0)
        return rc;
    rc = bench_team_stop(team, err);
    row->figure[BENCH_drain_client_us] =
        (double)bench_team_cpu_ns(team) / 1000 / (double)wait->jobs;
    return rc;
}

int bench_load_drain(struct bench *bench, const struct bench_load *load,
                     const char *topic, int64_t due_ns, struct bench_row *row,
                     struct weir_error *err)
{
    struct bench_role role = bench_load_role(bench, load, topic);
    struct bench_wait wait = {topic, load->kind->name, load->jobs, due_ns,
                              NULL};
    struct bench_team team;
    int rc = bench_team_init(&team, load->jobs, false, err);

    if (rc < 0)
        return rc;
    rc = bench_load_workers(bench, &team, load, &role, err);
    if (rc == WEIR_OK) {
        bench_rest_ns(due_ns - bench_now_ns());
        rc = drain(bench, &team, &wait, row, err);
    }
    bench_team_fini(&team);
    return rc;
}

static int64_t producers_of(const struct bench_load *load)
{
    return load->producers > 0 ? load->producers : 1;
}

/* The last members are those that add. Wait until they have added everything;
 * `*ret_begun_ns`: when the first one began, `*ret_added_ns`: the last add. */
static int await_producers(struct bench *bench, struct bench_team *team,
                           int64_t producers, int64_t *ret_begun_ns,
                           int64_t *ret_added_ns, struct weir_error *err)
{
    *ret_begun_ns = INT64_MAX;
    *ret_added_ns = 0;
    for (int who = team->count - (int)producers; who < team->count; who++) {
        const struct bench_member *member = &team->arena->member[who];
        int rc = bench_load_await_added(bench, team, who, err);

        if (rc < 0)
            return rc;
        if (member->begun_ns < *ret_begun_ns)
            *ret_begun_ns = member->begun_ns;
        if (member->added_ns > *ret_added_ns)
            *ret_added_ns = member->added_ns;
    }
    return WEIR_OK;
}

/* The CPU time of each node; returns that of all. */
static double look_at_nodes(struct bench_server *server, double *ret_us)
{
    double sum = 0;

    for (int i = 0; i < server->node_count; i++) {
        ret_us[i] = bench_server_node_cpu_us(server, i);
        sum += ret_us[i];
    }
    return sum;
}

static int flow(struct bench *bench, struct bench_team *team,
                const struct bench_load *load, struct bench_wait *wait,
                struct bench_row *row, struct weir_error *err)
{
    double before_us[BENCH_NODES_MAX], after_us[BENCH_NODES_MAX], used_us;
    int64_t begun, added, settled = 0;
    int rc;

    used_us = -look_at_nodes(&bench->server, before_us);
    go(team, &begun);
    rc = await_producers(bench, team, producers_of(load), &begun, &added, err);
    if (rc < 0)
        return rc;
    wait->due_ns += added;
    rc = bench_load_await_settled(bench, team, wait, &settled, err);
    if (rc < 0)
        return rc;
    used_us += look_at_nodes(&bench->server, after_us);
    for (int i = 0; i < bench->server.node_count && load->node_us != NULL; i++)
        load->node_us[i] = after_us[i] - before_us[i];
    row->figure[BENCH_server_us_per_job] = used_us / (double)wait->jobs;
    row->figure[BENCH_elapsed_ms] = (double)(settled - begun) / NS_PER_MS;
    row->figure[BENCH_end_to_end_per_s] = rate(wait->jobs, settled - begun);
    return bench_load_balance(bench, team, wait, row, err);
}

/* The first member works, the last one adds. */
static int end_flow(struct bench_team *team, int64_t jobs,
                    struct bench_row *row, struct weir_error *err)
{
    const struct bench_member *member = team->arena->member;
    int rc = bench_team_stop(team, err);

    row->figure[BENCH_client_us_per_job] =
        (double)bench_team_cpu_ns(team) / 1000 / (double)jobs;
    row->figure[BENCH_worker_rss_mb] = (double)member[0].rss_kib / 1024;
    row->figure[BENCH_producer_rss_mb] =
        (double)member[team->count - 1].rss_kib / 1024;
    row->figure[BENCH_turn_ms] = (double)bench_team_turn_ns(team) / NS_PER_MS;
    return rc;
}

/* Each has its part of the numbers. */
static int join_producers(struct bench_team *team,
                          const struct bench_load *load,
                          struct bench_role *role, struct weir_error *err)
{
    int64_t count = producers_of(load);
    int rc = WEIR_OK;

    role->adds = true;
    role->handles = role->handles_at_once = false;
    for (int64_t i = 0; i < count && rc >= 0; i++) {
        role->first = load->jobs * i / count;
        role->jobs = load->jobs * (i + 1) / count - role->first;
        role->id_base = load->id_base + role->first;
        rc = bench_team_join(team, role, err);
    }
    return rc < 0 ? rc : WEIR_OK;
}

static int gather(struct bench *bench, struct bench_team *team,
                  const struct bench_load *load, struct bench_role *role,
                  struct weir_error *err)
{
    int rc;

    role->handles_at_once = true;
    role->adds = load->one_process;
    rc = bench_load_workers(bench, team, load, role, err);
    if (rc < 0 || load->one_process)
        return rc;
    if (load->by != NULL) {
        role->follow_topic = role->topic;
        role->topic = load->by;
        rc = bench_team_join(team, role, err);
        if (rc < 0)
            return rc;
    }
    return join_producers(team, load, role, err);
}

int bench_load_flow(struct bench *bench, const struct bench_load *load,
                    const char *topic, struct bench_row *row,
                    struct weir_error *err)
{
    struct bench_role role = bench_load_role(bench, load, topic);
    struct bench_wait wait = {topic, load->kind->name, load->jobs,
                              load->delay_ms * NS_PER_MS, load->spread};
    struct bench_team team;
    int rc = bench_team_init(&team, load->jobs, load->by != NULL, err);

    if (rc < 0)
        return rc;
    rc = gather(bench, &team, load, &role, err);
    if (rc == WEIR_OK)
        rc = flow(bench, &team, load, &wait, row, err);
    if (rc == WEIR_OK)
        rc = end_flow(&team, load->jobs, row, err);
    if (rc == WEIR_OK && load->by != NULL)
        rc = bench_stamps_read(&team, NS_PER_MS, row, err);
    bench_team_fini(&team);
    return rc;
}

int bench_load_run(struct bench *bench, const struct bench_load *load,
                   struct bench_row *row, struct weir_error *err)
{
    char topic[BENCH_TOPIC_CAP];
    int64_t due_ns = 0;
    int rc = bench_load_prepare(bench, load, topic, err);

    if (rc == WEIR_OK)
        rc = bench_load_fill(bench, load, topic, row, &due_ns, err);
    if (rc == WEIR_OK)
        rc = bench_load_drain(bench, load, topic, due_ns, row, err);
    if (rc == WEIR_OK)
        rc = bench_load_prepare(bench, load, topic, err);
    if (rc == WEIR_OK)
        rc = bench_load_flow(bench, load, topic, row, err);
    return rc;
}

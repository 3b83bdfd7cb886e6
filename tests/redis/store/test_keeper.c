/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapters/redis/store/keeper.h"
#include "core/call.h"
#include "core/ladder.h"
#include "core/lane.h"
#include "core/text.h"
#include "tests/harness/names.h"
#include "tests/redis/store/lease_fixture.h"

/* The keeper: what happens to leases and runs while a handler holds the loop.
 * Here the test is the handler: between enter and leave it uses the other
 * worker's store only. */

static struct weir__options lane_options = {.timeout = 60000};
static struct weir__lane lane = {.options = &lane_options};

static struct weir__run *enter(struct host *host, int64_t timeout_ms)
{
    struct weir__run *run = host_take(host);

    EXPECT_INT(WEIR_OK, weir__ladder_parse(weir__slice_str("70s"),
                                           &lane_options.retry, NULL));
    run->lane = &lane;
    run->started_ns = world_clock(NULL);
    host_enter(host, host->topic, run, timeout_ms);
    return run;
}

static bool leave(struct host *host, struct weir__run *run)
{
    return host_leave(host, run);
}

/* The server has settled the run; when the keeper has heard of it the loop
 * does as well. */
static void leave_overdue(struct host *host, struct weir__run *run)
{
    struct weir__redis *base =
        (struct weir__redis *)host->store; /* its begin */

    AWAIT(weir__keeper_has_taken(base->keeper));
    EXPECT_TRUE(leave(host, run));
    host_settle(host, run, WEIR__OUTCOME_TAKEN);
}

TEST(a_lease_outlives_a_handler_that_holds_the_loop)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    struct weir__run *run;

    lease_look(one);
    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    run = enter(one, 60000);
    lease_hold(lease_name(run), 2, other);
    EXPECT_TRUE(one->store->ops->kept_ns(one->topic) > 0);
    EXPECT_TRUE(!leave(one, run));
    host_settle(one, run, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(WEIR_OK, host_stats(one));
    EXPECT_INT(1, one->stats.done_total);
    EXPECT_INT(0, one->stats.crashed_total);
}

/* What came before in the same turn. */
TEST(a_lease_whose_verdicts_wait_outlives_it_too)
{
    struct host *one = host_open("w1");
    const char *spent;
    struct weir__run *run;

    lease_look(one);
    for (int i = 0; i < 2; i++) {
        host_add(one, NULL, 0);
        AWAIT(one->added == i + 1);
        EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    }
    spent = lease_name(one->runs);
    host_settle(one, host_take(one), WEIR__OUTCOME_DONE);
    run = enter(one, 60000);
    lease_hold(spent, 1, NULL); /* nothing is flushed meanwhile */
    EXPECT_TRUE(!leave(one, run));
    host_settle(one, run, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(2, one->settled);
    EXPECT_INT(0, one->refused);
}

TEST(a_lease_that_is_lost_is_not_called_kept)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    struct weir__run *run;

    lease_look(one);
    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    lease_outlive(one, 1);
    AWAIT(host_claim(other, 1, 60000) == 1);
    EXPECT_STR("OK", redis_text(proc, "CONFIG RESETSTAT"));
    run = enter(one, 60000);
    AWAIT(redis_calls(proc, "zmscore") >= 3);
    EXPECT_INT(0, one->store->ops->kept_ns(one->topic));
    EXPECT_TRUE(!leave(one, run));
    host_settle(one, run, WEIR__OUTCOME_TAKEN);
    host_settle_all(other, WEIR__OUTCOME_DONE);
    host_await_settled(other);
}

TEST(an_overdue_run_is_settled_while_its_handler_holds_the_loop)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    struct weir__run *run;

    host_add(one, "a", 0);
    host_add(one, "b", 0);
    AWAIT(one->added == 2);
    EXPECT_INT(2, host_claim(one, 2, 5000));
    run = enter(one, 100);
    AWAIT(host_show(other, "a") == WEIR_OK &&
          other->info.counters.timeouts == 1);
    EXPECT_INT(WEIR_JOB_SCHEDULED, other->info.state);
    EXPECT_INT(1, other->info.counters.attempt);
    EXPECT_INT(1, other->info.counters.failures);
    EXPECT_STR("timeout", other->text[1]);
    AWAIT(other->info.due_ms > 0);
    EXPECT_INT(WEIR_OK, host_show(other, "b"));
    EXPECT_INT(WEIR_JOB_RUNNING, other->info.state);
    leave_overdue(one, run);
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(WEIR_OK, host_stats(one));
    EXPECT_INT(1, one->stats.done_total);
    EXPECT_INT(1, one->stats.retried_total);
    EXPECT_INT(1, one->stats.scheduled);
    EXPECT_INT(0, one->stats.running);
}

TEST(the_last_retry_times_out_into_the_dead)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    struct weir__record record = {.retry = weir__slice_str("none")};
    struct weir__run *run;

    host_add_record(one, "a", &record, 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, 5000));
    run = enter(one, 50);
    AWAIT(host_show(other, "a") == WEIR_OK &&
          other->info.state == WEIR_JOB_DEAD);
    EXPECT_STR("exhausted", other->text[2]);
    leave_overdue(one, run);
}

static void name_packs_alike(struct host *host)
{
    AWAIT(host->is_up);
    host->topic->store->seqs.producer = 7;
    host->topic->store->seqs.last = UINT64_C(1) << 46; /* beyond all clocks */
}

/* The other worker's retry has the name that the keeper gives its own. */
TEST(a_timeout_whose_pack_has_the_name_of_another_one_loses_no_job)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    struct weir__run *run;
    long long tries;

    host_add(one, "a", 0);
    host_add(other, "b", 0);
    AWAIT(one->added + other->added == 2);
    EXPECT_INT(1, host_claim(one, 1, 60000));
    EXPECT_INT(1, host_claim(other, 1, 60000));
    name_packs_alike(one);
    name_packs_alike(other);
    host_settle_all(other, WEIR__OUTCOME_RETRY);
    host_await_settled(other);
    EXPECT_INT(0, other->refused);
    tries = redis_calls(proc, "pttl");
    run = enter(one, 50);
    AWAIT(redis_calls(proc, "pttl") > tries);
    EXPECT_TRUE(!leave(one, run));
    host_settle(one, run, WEIR__OUTCOME_DONE); /* it counts after all */
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_INT(WEIR_OK, host_stats(other));
    EXPECT_INT(1, other->stats.done_total);
    EXPECT_INT(1, other->stats.retried_total);
    EXPECT_INT(1, other->stats.running);
}

/* A node of a cluster takes no script that names two topics. */
TEST(what_times_out_moves_on_a_node_of_a_cluster_too)
{
    static const char *const args[] = {"--cluster-enabled", "yes", NULL};
    /* Its bus has a port, which follows from its own. */
    static const struct redis_options cluster = {.args = args, .tcp = true};
    struct weir__record record = {.retry = weir__slice_str("none")};
    struct host *one;
    struct weir__run *run;

    (void)world_open(&cluster);
    for (int at = 0; at < 16384; at += 8)
        EXPECT_STR("OK",
                   redis_text(proc, "CLUSTER ADDSLOTS %d %d %d %d %d %d %d %d",
                              at, at + 1, at + 2, at + 3, at + 4, at + 5,
                              at + 6, at + 7));
    while (strstr(redis_text(proc, "CLUSTER INFO"), "state:ok") == NULL)
        continue;
    one = host_open("w1");
    host_serve(one, "on_dead=graves");
    host_add_record(one, "b", &record, 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, 5000));
    run = enter(one, 50);
    AWAIT(redis_int(proc, "HLEN weir:{t}:relay") == 1);
    leave_overdue(one, run);
    /* The keeper's verdict was read by nobody who sends: a look finds it. */
    AWAIT(host_claim(one, 1, 5000) == 0 &&
          redis_int(proc, "HLEN weir:{t}:relay") == 0);
    EXPECT_INT(1, redis_int(proc, "HEXISTS weir:{graves}:ids b"));
    EXPECT_INT(1, redis_int(proc, "SISMEMBER weir:topics graves"));
}

TEST(a_verdict_that_comes_after_the_timeout_is_refused)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    struct weir__run *run;

    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, 5000));
    run = enter(one, 50);
    AWAIT(host_show(other, "a") == WEIR_OK &&
          other->info.counters.timeouts == 1);
    (void)leave(one, run);
    host_settle(one, run, WEIR__OUTCOME_DONE); /* as if it had not heard */
    host_await_settled(one);
    EXPECT_INT(1, one->refused);
    EXPECT_INT(WEIR_OK, host_show(other, "a"));
    EXPECT_INT(WEIR_JOB_SCHEDULED, other->info.state);
}

static double first_end(void)
{
    return strtod(redis_text(proc, "EVAL %s 1 weir:{t}:lease",
                             "return redis.call('ZRANGE', KEYS[1], 0, 0, "
                             "'WITHSCORES')[2]"),
                  NULL);
}

/* More than one call renews. */
TEST(leases_beyond_a_thousand_are_kept)
{
    enum { LEASES = 1100 };
    struct host *one = host_open("w1");
    struct weir__run *run;
    double end;

    lease_look(one);
    host_add_numbered(one, 0, LEASES, 0);
    AWAIT(one->added == LEASES);
    for (int i = 0; i < LEASES; i++)
        EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    end = first_end();
    run = enter(one, 60000);
    while (first_end() <= end)
        EXPECT_TRUE(end > ev_time() * 1000.);
    while (one->store->ops->kept_ns(one->topic) == 0) /* after all calls */
        EXPECT_TRUE(end > ev_time() * 1000.);
    EXPECT_TRUE(!leave(one, run));
    host_settle(one, run, WEIR__OUTCOME_DONE);
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
}

TEST(the_keeper_knows_no_scripts_and_loads_them)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    struct weir__run *run;

    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    run = enter(one, 200);
    EXPECT_STR("OK", redis_text(proc, "SCRIPT FLUSH"));
    AWAIT(host_show(other, "a") == WEIR_OK &&
          other->info.counters.timeouts == 1);
    leave_overdue(one, run);
}

TEST(the_keeper_goes_on_when_its_connection_was_cut)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    int64_t kept_ns;
    struct weir__run *run;

    lease_look(one);
    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    run = enter(one, 60000);
    AWAIT(one->store->ops->kept_ns(one->topic) > 0);
    EXPECT_TRUE(redis_int(proc, "CLIENT KILL TYPE normal") > 0);
    kept_ns = one->store->ops->kept_ns(one->topic);
    AWAIT(one->store->ops->kept_ns(one->topic) > kept_ns);
    AWAIT(other->is_up);
    EXPECT_INT(0, host_claim(other, 1, 60000));
    EXPECT_TRUE(!leave(one, run));
    AWAIT(one->is_up);
    host_settle(one, run, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
}

/* --- a server with a name ------------------------------------------------- */

/* The linker leads weir's calls of clock_gettime through here: its clock is so
 * far behind. */
static atomic_int behind_s;

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int rc = __real_clock_gettime(clock, ret_time);

    if (clock == CLOCK_MONOTONIC)
        ret_time->tv_sec -= behind_s;
    return rc;
}

/* The name may lead to another server by then, while the old one lives on. */
TEST(the_keeper_asks_where_a_name_leads_each_5_s)
{
    static const struct redis_options options = {.tcp = true};
    char url[64];
    struct host *one;
    struct weir__run *run;
    size_t asked;

    names_set("cache 127.0.0.1\n");
    proc = redis_start(&options);
    (void)snprintf(url, sizeof(url), "redis://cache:%d", redis_port(proc));
    world_open_at(url);
    one = host_open("w1");
    lease_look(one);
    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    behind_s = 5;
    run = enter(one, 60000);
    lease_hold(lease_name(run), 1, NULL);
    asked = names_asked();
    behind_s = 0;
    lease_hold(lease_name(run), 2, NULL);
    EXPECT_INT(asked + 1, names_asked());
    EXPECT_TRUE(!leave(one, run));
    host_settle(one, run, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
}

/* --- what holds the loop and is no run ------------------------------------ */

TEST(a_lease_outlives_every_call_that_holds_the_loop)
{
    struct weir__call call = {.what = "the flush"}, inner = {.what = "a timer"};
    struct host *one = host_open("w1"), *other = host_open("w2");

    lease_look(one);
    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    weir__call_begin(one->store, &call);
    lease_hold(lease_name(one->runs), 2, other);
    weir__call_begin(one->store, &inner);
    lease_hold(lease_name(one->runs), 2, other);
    EXPECT_TRUE(!weir__call_end(one->store, &inner));
    lease_hold(lease_name(one->runs), 2, other);
    EXPECT_TRUE(!weir__call_end(one->store, &call));
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
}

/* One job, of a topic whose runs may take so long. */
static void claim_for(struct host *host, int64_t timeout_ms)
{
    const struct weir__claim claim = {
        .room = 1, .lease_ms = LEASE_LONG_MS, .timeout_ms = timeout_ms};

    lease_look(host);
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    AWAIT(host->arrived == 1);
}

/* A watcher of the program, say: the loop does not turn for half an hour. */
TEST(a_lease_outlives_what_holds_the_loop_and_is_no_call_of_weir)
{
    struct host *one = host_open("w1");
    const char *name;
    int64_t end;

    behind_s = 4000;
    claim_for(one, 7200000);
    name = lease_name(one->runs);
    end = lease_end(name);
    while (lease_end(name) <= end) /* the keeper spins: it has its time */
        EXPECT_TRUE(--behind_s >= 0);
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
}

/* A sixth of the lease passes between two turns. The keeper has to look between
 * them, which a sanitized build is too slow for. */
TIME_TEST(a_loop_that_turns_renews_by_itself)
{
    struct host *one = host_open("w1");

    behind_s = 6000;
    lease_look(one);
    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, LEASE_LONG_MS));
    while (behind_s > 0) {
        for (int i = 0; i < 50; i++) /* meanwhile the keeper looks */
            EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:lease"));
        one->store->ops->flush(one->store);
        behind_s -= 600;
    }
    EXPECT_INT(0, one->store->ops->kept_ns(one->topic));
}

/* Then the jobs are for other workers. */
TEST(a_call_without_an_end_loses_its_leases_at_last)
{
    struct weir__call call = {.what = "the flush"};
    struct host *one = host_open("w1"), *other = host_open("w2");
    int64_t kept_ns;

    behind_s = 7200;
    claim_for(one, 1800000);
    weir__call_begin(one->store, &call);
    lease_hold(lease_name(one->runs), 1, NULL);
    behind_s -= 3600;
    do { /* what was under way */
        kept_ns = one->store->ops->kept_ns(one->topic);
        for (int i = 0; i < 500; i++)
            EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:lease"));
    } while (one->store->ops->kept_ns(one->topic) > kept_ns);
    leases_pass();
    AWAIT(host_claim(other, 1, 60000) == 1);
    EXPECT_TRUE(!weir__call_end(one->store, &call));
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(1, one->refused);
}

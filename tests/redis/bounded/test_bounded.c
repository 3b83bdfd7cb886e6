/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "adapters/redis/script.h"
#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/lease_fixture.h"

/* The store of bounded topics: groups, batches, what is dropped, leases. */

static struct weir__options options;

static struct host *open_one(void)
{
    (void)world_open(NULL);
    options = weir__options_default;
    return bounded_open("one", &options);
}

static void settle_all(struct host *host, enum weir__outcome outcome)
{
    host_settle_all(host, outcome);
    host_await_settled(host);
}

TEST(a_batch_holds_the_events_of_one_group_in_their_order)
{
    struct host *host = open_one();

    events_add(host, "a", 1, 5);
    events_add(host, "b", 1, 3);
    events_add(host, "a", 6, 7);
    EXPECT_INT(10, host_claim(host, 300, 3600000));
    EXPECT_STR("a:1-7 b:1-3 ", events_text(host));
    EXPECT_TRUE(host->runs->late_us >= 0);
    EXPECT_INT(0, host->runs->record.counters.attempt);
    bounded_walk();
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    EXPECT_INT(-1, host->claimed.next_due_us);
    EXPECT_INT(10, bounded_count("done"));
    bounded_walk();
}

TEST(made_ids_are_told_and_come_back_as_ids_that_were_given)
{
    struct host *host = open_one();
    struct weir__record record = {.body = {(const uint8_t *)"\x07", 1}};
    struct weir__new_job job = {.id = weir__slice_str("mine"),
                                .group = weir__slice_str("a"),
                                .record = &record};

    event_add(host, "a", 1);
    EXPECT_INT('@', host->last_id[0]);
    EXPECT_INT(1, host_claim(host, 300, 3600000));
    EXPECT_STR(host->last_id, run_id(host->runs));
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(WEIR_OK,
               host->store->ops->add(host->topic, &job, host_added, host));
    AWAIT(host->added == 2);
    EXPECT_STR("mine", host->last_id);
    EXPECT_INT(1, host_claim(host, 300, 3600000));
    EXPECT_STR("mine", run_id(host->runs));
}

TEST(no_more_than_a_batch_is_taken_of_a_group_at_its_turn)
{
    struct host *host = open_one();

    options.batch = 4;
    host_serve_with(host, &options);
    events_add(host, "a", 1, 10);
    events_add(host, "b", 1, 2);
    EXPECT_INT(6, host_claim(host, 300, 3600000));
    EXPECT_STR("a:1-4 b:1-2 ", events_text(host));
    EXPECT_INT(0, host_claim(host, 300, 3600000)); /* both are leased */
    bounded_walk();
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(4, host_claim(host, 300, 3600000));
    EXPECT_STR("a:5-8 ", events_text(host));
}

TEST(a_full_group_drops_its_oldest_events)
{
    struct host *host = open_one();

    options.length = 3;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 10, 3600000)); /* tells the bounds */
    events_add(host, "a", 1, 2);
    EXPECT_INT(0, host->dropped[WEIR_DROP_OVERFLOW]);
    events_add(host, "a", 3, 5);
    EXPECT_INT(5, host->added);
    EXPECT_INT(2, host->dropped[WEIR_DROP_OVERFLOW]);
    EXPECT_INT(2, bounded_count("overflow"));
    EXPECT_INT(3, host_claim(host, 300, 3600000));
    EXPECT_STR("a:3-5 ", events_text(host));
    bounded_walk();
}

TEST(what_is_leased_is_not_dropped)
{
    struct host *host = open_one();

    options.length = 3;
    host_serve_with(host, &options);
    events_add(host, "a", 1, 3);
    EXPECT_INT(3, host_claim(host, 300, 3600000));
    events_add(host, "a", 4, 8);
    EXPECT_INT(2, host->dropped[WEIR_DROP_OVERFLOW]);
    bounded_walk();
    settle_all(host, WEIR__OUTCOME_RETURN); /* there is no room for it now */
    EXPECT_INT(5, host->dropped[WEIR_DROP_OVERFLOW]);
    EXPECT_INT(3, host_claim(host, 300, 3600000));
    EXPECT_STR("a:6-8 ", events_text(host));
    bounded_walk();
}

TEST(a_full_group_drops_new_events_or_refuses_them)
{
    struct host *host = open_one();

    options.length = 3;
    options.overflow = WEIR__DROP_NEW;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 10, 3600000));
    events_add(host, "a", 1, 5);
    EXPECT_INT(3, host->added);
    EXPECT_INT(WEIR_EDROPPED, host->last_code);
    EXPECT_INT(2, host->dropped[WEIR_DROP_OVERFLOW]);
    EXPECT_INT(5, bounded_count("added"));
    bounded_walk();
    options.overflow = WEIR__REJECT;
    host_serve_with(host, &options);
    EXPECT_INT(3, host_claim(host, 10, 3600000));
    EXPECT_STR("a:1-3 ", events_text(host));
    events_add(host, "a", 6, 9);
    EXPECT_INT(6, host->added);
    EXPECT_INT(WEIR_EFULL, host->last_code);
    EXPECT_INT(2, host->dropped[WEIR_DROP_OVERFLOW]);
    EXPECT_INT(8, bounded_count("added"));
    settle_all(host, WEIR__OUTCOME_RETURN); /* what was taken is not dropped */
    EXPECT_INT(6, host_claim(host, 10, 3600000));
    EXPECT_STR("a:1-3 a:6-8 ", events_text(host));
    bounded_walk();
}

TEST(what_is_stored_with_the_topic_beats_its_worker)
{
    struct host *host = open_one();

    (void)redis_int(proc,
                    "HSET weir:{t}:options length 2 overflow drop-oldest");
    events_add(host, "a", 1, 5);
    EXPECT_INT(3, host->dropped[WEIR_DROP_OVERFLOW]);
    EXPECT_INT(2, host_claim(host, 300, 3600000));
}

TEST(a_retried_batch_goes_back_to_the_head_and_waits)
{
    struct host *host = open_one();
    struct weir__run *run;

    options.batch = 3;
    host_serve_with(host, &options);
    events_add(host, "a", 1, 5);
    EXPECT_INT(3, host_claim(host, 300, 3600000));
    host_settle(host, host_take(host), WEIR__OUTCOME_DONE);
    for (int i = 0; i < 2; i++) {
        run = host_take(host);
        run->delay_ms = 60000;
        run->record.counters.attempt = 1;
        host_settle(host, run, WEIR__OUTCOME_RETRY);
    }
    host_await_settled(host);
    bounded_walk();
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    EXPECT_TRUE(host->claimed.next_due_us > 0 &&
                host->claimed.next_due_us <= 60000000);
    event_add(host, "a", 6); /* does not shorten it */
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    (void)redis_int(proc, "HSET weir:{t}:out a %s", "~ 0 0 0");
    due_now("rot", "a");
    AWAIT(host_claim(host, 300, 3600000) > 0);
    EXPECT_STR("a:2-4 ", events_text(host));
    EXPECT_INT(1, host->runs->record.counters.attempt);
    EXPECT_INT(2, bounded_count("retried"));
    bounded_walk();
}

static void settle_dead(struct host *host, const char *reason)
{
    struct weir__run *run = host_take(host);

    run->record.reason = weir__slice_str(reason);
    host_settle(host, run, WEIR__OUTCOME_DEAD);
}

TEST(dead_events_are_counted_and_gone)
{
    struct host *host = open_one();

    events_add(host, "a", 1, 3);
    EXPECT_INT(3, host_claim(host, 300, 3600000));
    settle_dead(host, "failed");
    settle_dead(host, "expired");
    settle_dead(host, "exhausted");
    host_await_settled(host);
    EXPECT_INT(2, bounded_count("failed"));
    EXPECT_INT(1, bounded_count("age"));
    EXPECT_INT(1, host->dropped[WEIR_DROP_AGE]);
    bounded_walk();
}

TEST(a_group_is_served_again_only_when_its_batch_is_settled)
{
    struct host *host = open_one();
    struct weir__run *last;

    events_add(host, "a", 1, 2);
    EXPECT_INT(2, host_claim(host, 300, 3600000));
    event_add(host, "a", 3);
    host_settle(host, host_take(host), WEIR__OUTCOME_DONE);
    last = host_take(host);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    host_settle(host, last, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(1, host_claim(host, 300, 3600000));
    EXPECT_STR("a:3 ", events_text(host));
}

TEST(a_dead_workers_batch_returns_to_its_head_one_by_one)
{
    struct host *host = open_one(), *other = bounded_open("two", &options);

    events_add(host, "a", 1, 3);
    EXPECT_INT(3, host_claim(host, 300, 60000));
    host_close(host);
    event_add(other, "a", 4);
    EXPECT_INT(0, host_claim(other, 300, 60000));
    EXPECT_TRUE(other->claimed.next_due_us > 0);
    leases_pass();
    AWAIT(host_claim(other, 300, 60000) > 0);
    EXPECT_STR("a:1 ", events_text(other));
    EXPECT_TRUE(other->runs->is_suspect);
    EXPECT_INT(0, other->runs->blamed);
    EXPECT_INT(3, bounded_count("crashed"));
    bounded_walk();
    EXPECT_INT(WEIR_OK, host_start(other, other->runs));
    bounded_walk();
    settle_all(other, WEIR__OUTCOME_DONE);
    EXPECT_INT(1, host_claim(other, 300, 60000));
    EXPECT_STR("a:2 ", events_text(other));
    settle_all(other, WEIR__OUTCOME_DONE);
    EXPECT_INT(1, host_claim(other, 300, 60000));
    settle_all(other, WEIR__OUTCOME_DONE);
    EXPECT_INT(1, host_claim(other, 300, 60000)); /* no suspect any more */
    EXPECT_STR("a:4 ", events_text(other));
    EXPECT_TRUE(!other->runs->is_suspect);
}

/* The lease of the first run ends; returns what it is blamed for then. */
static uint32_t die_once(struct host *host, bool is_started)
{
    if (is_started)
        EXPECT_INT(WEIR_OK, host_start(host, host->runs));
    while (host->runs != NULL) /* it forgets them */
        (void)host_take(host);
    leases_pass();
    AWAIT(host_claim(host, 300, 60000) > 0);
    return host->runs->blamed;
}

TEST(only_noted_starts_are_blamed)
{
    struct host *host = open_one();

    events_add(host, "a", 1, 2);
    EXPECT_INT(2, host_claim(host, 300, 60000));
    EXPECT_INT(0, die_once(host, false));
    EXPECT_INT(1, die_once(host, true));
    EXPECT_INT(1, die_once(host, false));
    EXPECT_INT(2, die_once(host, true));
    EXPECT_STR("a:1 ", events_text(host));
    bounded_walk();
}

TEST(a_verdict_after_the_lease_ended_is_refused)
{
    struct host *host = open_one(), *other = bounded_open("two", &options);

    events_add(host, "a", 1, 2);
    lease_outlive(host, 2);
    AWAIT(host_claim(other, 300, 3600000) > 0);
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(2, host->refused);
    EXPECT_INT(0, bounded_count("done"));
    bounded_walk();
    settle_all(other, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, other->refused);
    bounded_walk();
}

TEST(a_lease_that_is_renewed_does_not_end)
{
    struct host *host = open_one(), *other = bounded_open("two", &options);

    event_add(host, "a", 1);
    EXPECT_INT(1, host_claim(host, 300, 20000));
    for (int lease_ms = 40000; lease_ms <= 80000; lease_ms += 20000) {
        int64_t end = lease_end("a");

        host->store->ops->renew(host->topic, lease_ms);
        AWAIT(lease_end("a") >= end + 20000);
        EXPECT_INT(0, host_claim(other, 300, 3600000));
    }
    EXPECT_INT(0, host->lost_token);
    leases_pass(); /* not renewed any more */
    AWAIT(host_claim(other, 300, 3600000) > 0);
    host->store->ops->renew(host->topic, 300);
    AWAIT(host->lost_token == host->runs->token);
    settle_all(host, WEIR__OUTCOME_TAKEN);
    bounded_walk();
}

TEST(without_leases_what_is_taken_is_gone)
{
    struct host *host = open_one();

    options.lease = WEIR__OPTION_NONE;
    options.batch = 2;
    host_serve_with(host, &options);
    events_add(host, "a", 1, 3);
    EXPECT_INT(2, host_claim(host, 2, 3600000));
    EXPECT_INT(1, host_claim(host, 300, 3600000)); /* nothing holds its group */
    EXPECT_STR("a:1-3 ", events_text(host));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:l:a"));
    host_settle(host, host_take(host), WEIR__OUTCOME_DONE);
    settle_all(host, WEIR__OUTCOME_RETURN); /* but may be given back */
    AWAIT(host_claim(host, 300, 3600000) > 0);
    settle_all(host, WEIR__OUTCOME_DONE);
    bounded_walk();
}

TEST(hot_groups_take_no_more_than_their_share)
{
    struct host *host = open_one();
    char group[8];

    options.batch = 2;
    (void)snprintf(options.hot, sizeof(options.hot), "hot-*:2 other");
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    for (int i = 0; i < 4; i++) {
        (void)snprintf(group, sizeof(group), "hot-%d", i);
        events_add(host, group, 1, 6);
    }
    for (int i = 0; i < 4; i++) {
        (void)snprintf(group, sizeof(group), "cold-%d", i);
        event_add(host, group, 1);
    }
    EXPECT_INT(4, redis_int(proc, "ZCARD weir:{t}:hot"));
    EXPECT_INT(10, host_claim(host, 10, 3600000)); /* by turns, 4 at a turn */
    EXPECT_TRUE(strstr(events_text(host), "cold-0:1 hot-0:1-4 cold-1:1") !=
                NULL);
    bounded_walk();
}

/* Claim while the server is stopped. False: it left too late to take what the
 * one before it was offered, which is its worker's for 45 ms only. */
static bool claim_late(struct host *host, size_t room)
{
    const struct weir__bounded_topic *topic =
        weir__bounded_topic_of(host->topic);
    struct weir__claim claim = {.room = room, .lease_ms = 3600000};
    bool is_soon, has_offers = topic->offer_count > 0;
    int64_t offered_ns = topic->offered_ns;
    int claims = host->claims;

    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    redis_kill(proc, SIGSTOP);
    host->store->ops->flush(host->store);
    is_soon = has_offers && world_clock(NULL) - offered_ns < 45000000;
    world_pass(20);
    redis_kill(proc, SIGCONT);
    AWAIT(host->claims > claims);
    settle_all(host, WEIR__OUTCOME_DONE);
    return is_soon;
}

/* Before a round: nothing waits, and nobody has anything. */
static void begin_round(struct host *host)
{
    static int rounds;

    if (rounds++ == 200)
        EXPECT_STR("a claim within 45 ms", "200 that left later than that");
    while (bounded_count("waiting") > 0) {
        (void)host_claim(host, 300, 3600000);
        settle_all(host, WEIR__OUTCOME_DONE);
    }
}

/* In one call, which is over soon. */
static void add_to_groups(struct host *host, int count)
{
    int added = host->added;
    char group[16];

    for (int i = 0; i < count; i++) {
        (void)snprintf(group, sizeof(group), "g%d", i);
        events_send(host, group, 1, 1);
    }
    AWAIT(host->added == added + count);
}

/* In us, after a claim of groups that the one before it was offered, while
 * `more` events are added. */
static int64_t rest_us(struct host *host, int more, size_t room)
{
    do {
        begin_round(host);
        add_to_groups(host, 40);
        (void)host_claim(host, 10, 3600000);
        add_to_groups(host, more);
    } while (!claim_late(host, room));
    EXPECT_TRUE(host->claimed.count > 0);
    return host->claimed.rest_us;
}

TEST(a_busy_server_rests_between_claims_of_few_events_while_more_are_added)
{
    struct host *host = open_one();

    EXPECT_INT(10000, rest_us(host, 40, 300));
    EXPECT_INT(0, rest_us(host, 0, 300)); /* a backlog: nothing was added */
    EXPECT_INT(0, rest_us(host, 40, 1));  /* all it has room for */
    bounded_walk();
}

TEST(a_busy_server_has_no_rest_from_claims_of_many_events)
{
    struct host *host = open_one();

    do {
        begin_round(host);
        events_add(host, "a", 1, 20);
        events_add(host, "b", 1, 20);
        EXPECT_INT(20, host_claim(host, 20, 3600000));
        events_add(host, "a", 1, 20);
        events_add(host, "b", 21, 40);
    } while (!claim_late(host, 300));
    EXPECT_INT(0, host->claimed.rest_us);
    EXPECT_INT(40, host->claimed.count); /* of b, and 40 were added */
}

TEST(a_sleeping_worker_is_woken_by_an_event)
{
    struct host *host = open_one(), *other = bounded_open("two", &options);

    AWAIT(host->wakes > 0);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    host->wakes = 0;
    event_add(other, "a", 1);
    AWAIT(host->wakes > 0);
    EXPECT_INT(1, host_claim(host, 300, 3600000));
}

TEST(a_topic_of_another_kind_is_left_alone)
{
    struct host *host = open_one();

    (void)redis_int(proc, "HSET weir:{t}:meta kind delay");
    events_add(host, "a", 1, 1);
    EXPECT_INT(WEIR_EKIND, host->last_code);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    EXPECT_INT(WEIR_EKIND, host->claimed.code);
}

TEST(a_paused_topic_gives_nothing_out)
{
    struct host *host = open_one();

    event_add(host, "a", 1);
    (void)redis_int(proc, "HSET weir:{t}:meta paused 1");
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    EXPECT_TRUE(host->claimed.is_paused);
    (void)redis_int(proc, "HDEL weir:{t}:meta paused");
    EXPECT_INT(1, host_claim(host, 300, 3600000));
}

TEST(a_purge_deletes_every_group)
{
    struct host *host = open_one();
    char group[8];

    for (int i = 0; i < 30; i++) {
        (void)snprintf(group, sizeof(group), "g%d", i);
        events_add(host, group, 1, 2);
    }
    EXPECT_TRUE(host_claim(host, 10, 3600000) > 0);
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(60, host->count);
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(host->settled, host->refused);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:rot weir:{t}:out "
                                  "weir:{t}:lease weir:{t}:g:g1"));
    EXPECT_INT(0, bounded_count("waiting"));
    EXPECT_INT(0, bounded_count("running"));
}

TEST(statistics_count_drops_by_reason)
{
    struct host *host = open_one();

    options.length = 2;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 10, 3600000));
    events_add(host, "a", 1, 5);
    events_add(host, "b", 1, 2);
    EXPECT_INT(2, host_claim(host, 2, 3600000));
    settle_dead(host, "expired");
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_STR("bounded", host->kind);
    EXPECT_INT(2, host->stats.ready);
    EXPECT_INT(0, host->stats.running);
    EXPECT_INT(7, host->stats.added_total);
    EXPECT_INT(1, host->stats.done_total);
    EXPECT_INT(3, host->stats.dropped_overflow);
    EXPECT_INT(1, host->stats.dropped_age);
    EXPECT_INT(0, host->stats.dropped_ttl);
    EXPECT_INT(4, host->stats.dropped_total);
}

/* The call as a connection that was lost repeats it; the reply. */
static const char *add_again(int number)
{
    const struct weir__script *add = &weir__script_bounded_add;

    EXPECT_STR(add->sha1,
               redis_text(proc, "SCRIPT LOAD %b", add->text, add->len));
    return redis_text(proc,
                      "EVALSHA %s 9 weir:{t}:rot weir:{t}:hot weir:{t}:out "
                      "weir:{t}:meta weir:{t}:idle weir:{t}:options "
                      "weir:{t}:seen weir:{t}:ttl weir:{t}:g:a "
                      "t bounded call_slot %d a 3 x y z",
                      add->sha1, number);
}

TEST(an_add_that_comes_again_changes_nothing)
{
    struct host *host = open_one();

    options.length = 2;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 10, 3600000));
    EXPECT_STR("0 0 1", add_again(7));  /* one of the group 0 was dropped */
    EXPECT_STR("0 0 1 ", add_again(7)); /* a repeat: "" comes last */
    EXPECT_STR("-4 ", add_again(6));    /* of an earlier connection */
    EXPECT_INT(2, redis_int(proc, "LLEN weir:{t}:g:a"));
    EXPECT_INT(3, bounded_count("added"));
    EXPECT_STR("0 0 3", add_again(8));
    EXPECT_INT(6, bounded_count("added"));
    bounded_walk();
}

TEST(a_server_that_dies_loses_nothing_and_no_add_counts_twice)
{
    const struct redis_options durable = {.appendonly = true};
    (void)world_open(&durable);
    struct host *host;

    options = weir__options_default;
    host = bounded_open("one", &options);
    events_add(host, "a", 1, 50);
    EXPECT_INT(50, host_claim(host, 300, 3600000));
    for (int i = 0; i < 3; i++) {
        int answers = host->added + host->failed, ups = host->ups;

        events_send(host, "b", 10 * i + 1, 10 * i + 10);
        world_turn();
        redis_restart(proc);
        AWAIT(host->ups > ups && host->added + host->failed == answers + 10);
    }
    EXPECT_INT(80, host->added);
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(30, host_claim(host, 300, 3600000));
    EXPECT_STR("b:1-30 ", events_text(host));
    EXPECT_INT(80, bounded_count("added"));
    bounded_walk();
}

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/store/keeper.h"
#include "core/ladder.h"
#include "core/lane.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"
#include "tests/redis/store/spread_fixture.h"

/* The keeper where topics lie on several servers: one handler holds the loop,
 * and leases are out at all of them. The test is the handler: between enter and
 * leave no turn of the loop passes. */

enum {
    TOPICS = SPREAD_NODES,  /* the nth is at the nth server */
    REPLICAS = SPREAD_NODES /* the first replica */
};

static struct host *host;
static struct weir__store_topic *topics[TOPICS];
static struct weir__run *runs[TOPICS];

static struct weir__options lane_options = {.timeout = 60000};
static struct weir__lane lane = {.options = &lane_options};

/* One job of each of so many topics runs, and leases are renewed each
 * 100 ms. */
static void begin_with(int count, int replicas)
{
    const struct cluster_options options = {.replicas = replicas};

    spread_start(&options);
    host = host_open("w1");
    for (int i = 0; i < count; i++) {
        topics[i] = spread_open(host, i, 0);
        lease_look(host);
        host_add(host, NULL, 0);
        AWAIT(host->added == i + 1);
        EXPECT_INT(1, host_claim(host, 1, LEASE_LONG_MS));
        runs[i] = host_take(host);
    }
}

static void begin(int replicas)
{
    begin_with(TOPICS, replicas);
}

static void enter_for(int node, int64_t timeout_ms)
{
    runs[node]->lane = &lane;
    runs[node]->started_ns = world_clock(NULL);
    host_enter(host, topics[node], runs[node], timeout_ms);
}

static void enter(int node)
{
    enter_for(node, 60000);
}

static void leave(int node)
{
    EXPECT_TRUE(!host_leave(host, runs[node]));
}

static int64_t kept_ns(int node)
{
    return host->store->ops->kept_ns(topics[node]);
}

/* Of the claim, before its primary is killed. */
static void replica_hears(int node)
{
    (void)spread_text(node, "SET weir:{%s}:x 1", topics[node]->name);
    EXPECT_INT(1, spread_int(node, "WAIT 1 60000"));
}

/* When the lease ends by the clock of the server that has it. */
static int64_t end_at(int topic, int node)
{
    const char *text =
        spread_text(node, "ZSCORE weir:{%s}:lease %s", topics[topic]->name,
                    lease_name(runs[topic]));

    EXPECT_TRUE(text != NULL);
    return strtoll(text, NULL, 10);
}

/* It is renewed so often, and called kept. */
static void hold(int topic, int node, int times)
{
    int64_t before_ns = world_clock(NULL), end = end_at(topic, node);

    while (times > 0) {
        int64_t next = end_at(topic, node);

        EXPECT_TRUE((double)next > ev_time() * 1000.);
        times -= next > end;
        end = next;
    }
    while (kept_ns(topic) < before_ns)
        EXPECT_TRUE((double)end_at(topic, node) > ev_time() * 1000.);
}

static void settle_all(void)
{
    for (int i = 0; i < TOPICS; i++) {
        host->topic = topics[i];
        host_settle(host, runs[i], WEIR__OUTCOME_DONE);
        host_await_settled(host);
    }
    EXPECT_INT(TOPICS, host->settled);
    EXPECT_INT(0, host->refused);
}

/* The last topic is the first one that the keeper looks at. */
TEST(a_server_that_does_not_answer_costs_the_others_no_lease)
{
    int64_t before_ns;

    begin(0);
    enter(0);
    for (int i = 0; i < TOPICS; i++)
        hold(i, i, 1);
    cluster_pause(spread, 2);
    before_ns = world_clock(NULL); /* an answer may be on its way */
    hold(0, 0, 3);
    hold(1, 1, 3);
    EXPECT_TRUE(kept_ns(2) <= before_ns);
    cluster_resume(spread, 2);
    hold(2, 2, 1);
    leave(0);
    settle_all();
}

TEST(leases_of_a_server_that_is_gone_are_not_called_kept)
{
    int64_t gone_ns;

    begin(0);
    enter(1);
    hold(2, 2, 1);
    cluster_kill(spread, 2);
    gone_ns = world_clock(NULL);
    hold(0, 0, 3);
    hold(1, 1, 3);
    EXPECT_TRUE(kept_ns(2) < gone_ns);
    EXPECT_TRUE(kept_ns(0) > gone_ns);
    leave(1);
}

/* The loop cannot hear of it. */
TEST(leases_are_kept_where_their_slot_goes_while_the_loop_is_held)
{
    begin(1);
    enter(0);
    hold(0, 0, 1);
    cluster_move_slot(spread, topics[0]->place->slot, 1);
    hold(0, 1, 2);
    hold(1, 1, 1);
    replica_hears(2);
    cluster_kill(spread, 2);
    cluster_take_over(spread, REPLICAS + 2);
    hold(2, REPLICAS + 2, 2);
    leave(0);
    settle_all();
}

/* Who has one topic knows the other nodes by the map alone. */
TEST(the_lease_of_a_lone_topic_is_kept_where_its_slot_goes)
{
    begin_with(1, 1);
    enter(0);
    hold(0, 0, 1);
    replica_hears(0);
    cluster_kill(spread, 0);
    cluster_take_over(spread, REPLICAS);
    hold(0, REPLICAS, 2);
    leave(0);
    host_settle(host, runs[0], WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
}

static void enter_overdue(void)
{
    EXPECT_INT(WEIR_OK, weir__ladder_parse(weir__slice_str("70s"),
                                           &lane_options.retry, NULL));
    enter_for(0, 100);
}

/* The keeper settled the first topic's run there, and the loop hears of it. */
static void leave_overdue(int node)
{
    struct weir__redis *store =
        (struct weir__redis *)host->store; /* its begin */
    struct patience patience = patience_start(30.);

    while (!weir__keeper_has_taken(store->keeper))
        EXPECT_TRUE(!patience_ended(&patience));
    EXPECT_STR(
        "1", spread_text(node, "HGET weir:{%s}:meta retried", topics[0]->name));
    EXPECT_TRUE(host_leave(host, runs[0]));
    host_settle(host, runs[0], WEIR__OUTCOME_TAKEN);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.scheduled);
    EXPECT_INT(0, host->stats.running);
}

TEST(an_overdue_run_is_settled_at_the_server_that_took_over)
{
    begin_with(1, 1);
    replica_hears(0);
    cluster_kill(spread, 0);
    enter_overdue();
    cluster_take_over(spread, REPLICAS);
    leave_overdue(REPLICAS);
}

TEST(an_overdue_run_whose_slot_is_at_no_server_is_settled_when_it_is)
{
    uint16_t slot;

    begin_with(1, 0);
    slot = topics[0]->place->slot;
    cluster_open_slot(spread, slot, 1);
    enter_overdue();
    while (strstr(spread_text(0, "INFO errorstats"), "_ASK") == NULL)
        EXPECT_INT(0, host->refused); /* its keeper asks */
    cluster_move_keys(spread, slot, 1);
    cluster_close_slot(spread, slot, 1);
    leave_overdue(1);
}

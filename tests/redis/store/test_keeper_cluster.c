/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/lane.h"
#include "tests/redis/store/lease_fixture.h"
#include "tests/redis/store/spread_fixture.h"

/* The keeper where topics lie on several servers: one handler holds the loop,
 * and leases are out at all of them. The test is the handler: between enter and
 * leave no turn of the loop passes. */

enum { TOPICS = SPREAD_NODES }; /* the nth is at the nth server */

static struct host *host;
static struct weir__store_topic *topics[TOPICS];
static struct weir__run *runs[TOPICS];

static struct weir__options lane_options = {.timeout = 60000};
static struct weir__lane lane = {.options = &lane_options};

/* One job of each topic runs, and leases are renewed each 100 ms. */
static void begin(int replicas)
{
    const struct cluster_options options = {.replicas = replicas};

    spread_start(&options);
    host = host_open("w1");
    for (int i = 0; i < TOPICS; i++) {
        topics[i] = spread_open(host, i, 0);
        lease_look(host);
        host_add(host, NULL, 0);
        AWAIT(host->added == i + 1);
        EXPECT_INT(1, host_claim(host, 1, LEASE_LONG_MS));
        runs[i] = host_take(host);
    }
}

static void enter(int node)
{
    runs[node]->lane = &lane;
    runs[node]->started_ns = world_clock(NULL);
    host->store->ops->enter(topics[node], runs[node],
                            runs[node]->started_ns + INT64_C(60000000000));
}

static void leave(int node)
{
    EXPECT_TRUE(!host->store->ops->leave(topics[node], runs[node]));
}

static int64_t kept_ns(int node)
{
    return host->store->ops->kept_ns(topics[node]);
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
    uint16_t slot;
    int now;

    begin(1);
    enter(0);
    hold(0, 0, 1);
    cluster_move_slot(spread, topics[0]->place->slot, 1);
    hold(0, 1, 2);
    hold(1, 1, 1);
    slot = topics[2]->place->slot;
    cluster_kill(spread, 2);
    now = cluster_await_promoted(spread, 2, slot);
    hold(2, now, 2);
    leave(0);
    settle_all();
}

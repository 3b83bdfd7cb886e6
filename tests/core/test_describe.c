/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/core/reactor_fixture.h"

/* What a reactor tells of itself. */

static struct weir_worker worker;

static bool describe(void)
{
    worker = (struct weir_worker){0};
    return weir__reactor_describe(reactor, &worker);
}

static void serve(const char *topic)
{
    struct weir__lane_options lane = lane_options("1s");

    lane.name = weir__slice_str(topic);
    EXPECT_INT(WEIR_OK, weir__reactor_serve(reactor, &lane));
}

static enum weir_verdict pend(struct weir_job *job)
{
    (void)weir_job_handle(job);
    return WEIR_PENDING;
}

/* A copy of it; without a name where it is not told. */
static struct weir_worker_topic topic_of(const char *name)
{
    struct weir_worker_topic topic = {0};
    size_t count;
    const struct weir_worker_topic *topics =
        weir__reactor_topics(reactor, &count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(topics[i].name, name) == 0)
            topic = topics[i];
    return topic;
}

TEST(each_topic_is_told_once)
{
    size_t count;

    open_with_ladder("1s");
    serve("z");
    serve("a");
    EXPECT_TRUE(describe());
    EXPECT_INT(3, worker.topics_total);
    (void)weir__reactor_topics(reactor, &count);
    EXPECT_INT(3, count);
    EXPECT_STR("a", topic_of("a").name);
    EXPECT_STR("orders", topic_of("orders").name);
    EXPECT_INT(256, topic_of("z").concurrency);
    EXPECT_INT(0, topic_of("z").held);
}

TEST(what_is_in_hand_is_told)
{
    open_with_ladder("1s");
    behaviour = pend;
    add_many(3);
    (void)settle_down();
    EXPECT_TRUE(describe());
    EXPECT_INT(3, worker.held);
    EXPECT_INT(3, worker.running);
    EXPECT_INT(3, topic_of("orders").held);
    EXPECT_INT(3, topic_of("orders").running);
    EXPECT_INT(1, worker.connections);
    EXPECT_TRUE(!worker.is_stopping);
}

TEST(who_stops_is_there_until_it_has_stopped)
{
    open_with_ladder("1s");
    behaviour = pend;
    add_many(1);
    (void)settle_down();
    weir__reactor_stop(reactor, on_stopped, NULL);
    (void)settle_down();
    EXPECT_TRUE(describe());
    EXPECT_TRUE(worker.is_stopping);
    weir__reactor_abort(reactor);
    (void)settle_down();
    EXPECT_INT(1, stops);
    EXPECT_TRUE(!describe());
}

/* A handler that holds the loop, then one that was late by that. */
TEST(the_lag_is_the_longest_of_the_last_seconds)
{
    open_with_ladder("1s");
    pass(10000);
    EXPECT_TRUE(describe());
    EXPECT_TRUE(worker.lag_us <= 2000);
    cost_ms = 300;
    add_many(1);
    (void)settle_down();
    cost_ms = 0;
    EXPECT_TRUE(describe());
    EXPECT_TRUE(worker.lag_us >= 300000 && worker.lag_us < 310000);
    pass(4000);
    EXPECT_TRUE(describe());
    EXPECT_TRUE(worker.lag_us >= 300000);
    pass(11000);
    EXPECT_TRUE(describe());
    EXPECT_TRUE(worker.lag_us <= 2000);
}

TEST(a_loop_that_stood_still_lags)
{
    open_with_ladder("1s");
    pass(10000);
    mem_store_advance(store, 20000);
    (void)settle_down();
    EXPECT_TRUE(describe());
    EXPECT_TRUE(worker.lag_us > 10000000 && worker.lag_us <= 20000000);
}

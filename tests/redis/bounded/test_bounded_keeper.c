/* SPDX-License-Identifier: MIT */
#include "core/lane.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/lease_fixture.h"

/* What happens to batches while a handler holds the loop. The test is the
 * handler: between enter and leave it uses the other worker's store only. */

static struct weir__options options;

/* Two workers; the first has claimed what was added. */
static struct host *open_two(struct host **ret_other, int64_t lease_ms)
{
    struct host *one;

    (void)world_open(NULL);
    options = weir__options_default;
    one = bounded_open("one", &options);
    *ret_other = bounded_open("two", &options);
    lease_look(one);
    events_add(one, "a", 1, 3);
    event_add(one, "b", 1);
    AWAIT(host_claim(one, 300, lease_ms) > 0);
    EXPECT_STR("a:1-3 b:1 ", events_text(one));
    return one;
}

static struct weir__run *enter(struct host *host, int64_t timeout_ms)
{
    struct weir__run *run = host->runs;

    run->started_ns = world_clock(NULL);
    host_enter(host, host->topic, run, timeout_ms);
    return run;
}

static void expect_all_done(struct host *one)
{
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(4, bounded_count("done"));
    EXPECT_INT(0, bounded_count("crashed"));
    bounded_walk();
}

TEST(leases_outlive_a_handler_that_holds_the_loop)
{
    struct host *other, *one = open_two(&other, LEASE_LONG_MS);
    struct weir__run *run = enter(one, 60000);

    lease_hold("a", 2, other);
    lease_hold("b", 1, other);
    EXPECT_TRUE(one->store->ops->kept_ns(one->topic) > run->started_ns);
    EXPECT_TRUE(!host_leave(one, run));
    expect_all_done(one);
}

TEST(a_batch_whose_verdict_has_not_left_is_kept_as_well)
{
    struct host *other, *one = open_two(&other, LEASE_LONG_MS);
    struct weir__run *run;

    for (int i = 0; i < 3; i++) /* all of `a` */
        host_settle(one, host_take(one), WEIR__OUTCOME_DONE);
    run = enter(one, 60000);
    lease_hold("a", 2, NULL); /* nothing is flushed meanwhile */
    lease_hold("b", 1, NULL);
    EXPECT_TRUE(!host_leave(one, run));
    expect_all_done(one);
}

TEST(a_handler_beyond_its_timeout_loses_its_batches)
{
    struct host *other, *one = open_two(&other, LEASE_SHORT_MS);
    struct weir__run *run = enter(one, 50);

    AWAIT(host_claim(other, 300, 60000) > 0);
    EXPECT_TRUE(!host_leave(one, run));
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(4, one->refused);
    EXPECT_INT(0, bounded_count("done"));
    EXPECT_INT(4, bounded_count("crashed"));
    host_settle_all(other, WEIR__OUTCOME_TAKEN);
}

TEST(what_has_no_lease_is_not_called_lost)
{
    struct host *one;

    options = weir__options_default;
    options.lease = WEIR__OPTION_NONE;
    one = bounded_open("one", &options);
    EXPECT_TRUE(one->store->ops->kept_ns(one->topic) > 0);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/kind.h"
#include "core/lane.h"
#include "tests/redis/store/lease_fixture.h"

/* What happens to entries of lists and streams while a handler holds the loop.
 * The test is the handler: between enter and leave it uses the other worker's
 * store only. */

static struct weir__run *enter(struct host *host, int64_t timeout_ms)
{
    struct weir__run *run = host->runs;

    run->started_ns = world_clock(NULL);
    host_enter(host, host->topic, run, timeout_ms);
    return run;
}

static void outlive(struct host *one, struct host *other)
{
    struct weir__run *run;

    EXPECT_INT(2, host_claim(one, 10, LEASE_LONG_MS));
    run = enter(one, 60000);
    lease_hold(lease_name(run), 2, other);
    EXPECT_TRUE(one->store->ops->kept_ns(one->topic) > run->started_ns);
    EXPECT_TRUE(!host_leave(one, run));
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
}

TEST(entries_of_a_list_outlive_a_handler_that_holds_the_loop)
{
    struct host *one = host_open_kind("w1", "list");
    struct host *other = host_open_kind("w2", "list");

    lease_look(one);
    EXPECT_INT(2, redis_int(proc, "RPUSH t 1 2"));
    outlive(one, other);
}

TEST(entries_of_a_stream_outlive_a_handler_that_holds_the_loop)
{
    struct host *one = host_open_kind("w1", "stream");
    struct host *other = host_open_kind("w2", "stream");

    lease_look(one);
    EXPECT_STR("5-1", redis_text(proc, "XADD t 5-1 body 7"));
    EXPECT_STR("5-2", redis_text(proc, "XADD t 5-2 body 7"));
    outlive(one, other);
}

TEST(a_handler_beyond_its_timeout_loses_its_entries)
{
    struct host *one = host_open_kind("w1", "list");
    struct host *other = host_open_kind("w2", "list");
    struct weir__run *run;

    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    EXPECT_INT(1, host_claim(one, 10, LEASE_SHORT_MS));
    run = enter(one, 50);
    AWAIT(host_claim(other, 10, 60000) == 1);
    EXPECT_TRUE(!host_leave(one, run));
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(1, one->refused);
    host_settle_all(other, WEIR__OUTCOME_DONE);
    host_await_settled(other);
    EXPECT_INT(0, other->refused);
}

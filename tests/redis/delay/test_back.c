/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "adapters/redis/store/keeper.h"
#include "core/lane.h"
#include "tests/redis/store/lease_fixture.h"

/* Runs that go back unstarted, beside verdicts of the same claim. */

static struct host *open_with(int jobs)
{
    struct host *host;

    (void)world_open(NULL);
    host = host_open("w");
    for (int i = 0; i < jobs; i++) {
        char id[2] = {(char)('a' + i), '\0'};

        host_add(host, id, 0);
    }
    AWAIT(host->added == jobs);
    EXPECT_INT(jobs, host_claim(host, 10, LEASE_LONG_MS));
    return host;
}

static void fill(bool is_full)
{
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory %d", is_full));
}

/* The first is to be tried again in an hour, the others were not started. */
static void retry_first_return_others(struct host *host)
{
    struct weir__run *first = host_take(host);

    first->delay_ms = 3600000;
    first->record.counters.attempt = 1;
    host_settle(host, first, WEIR__OUTCOME_RETRY);
    host_settle_all(host, WEIR__OUTCOME_RETURN);
}

static void expect_retried(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_show(host, "a"));
    EXPECT_INT(WEIR_JOB_SCHEDULED, host->info.state);
    EXPECT_INT(1, host->info.counters.attempt);
    EXPECT_INT(0, host->refused);
    EXPECT_TRUE(strstr(world_log, "too late") == NULL);
}

TEST(a_verdict_that_waits_stays_where_its_neighbour_goes_back)
{
    struct host *host = open_with(2), *other = host_open("other");

    fill(true);
    retry_first_return_others(host);
    AWAIT(host_claim(other, 10, LEASE_LONG_MS) == 1);
    EXPECT_STR("b", run_id(other->runs));
    fill(false);
    host_await_settled(host);
    expect_retried(host);
    EXPECT_INT(0, host_claim(other, 10, LEASE_LONG_MS));
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:lease"));
    world_close();
}

TEST(what_goes_back_does_not_overtake_a_verdict_when_scripts_are_forgotten)
{
    struct host *host = open_with(3);

    EXPECT_STR("OK", redis_text(proc, "SCRIPT FLUSH"));
    retry_first_return_others(host);
    host_await_settled(host);
    expect_retried(host);
    EXPECT_INT(2, host_claim(host, 10, LEASE_LONG_MS));
    world_close();
}

TEST(a_lease_ends_with_the_verdict_that_waited)
{
    struct host *host = open_with(1);

    fill(true);
    retry_first_return_others(host);
    AWAIT(strstr(world_log, "is it full?") != NULL);
    fill(false);
    host_await_settled(host);
    AWAIT(redis_int(proc, "EXISTS weir:{t}:lease") == 0);
    AWAIT(host->topic->leases == NULL);
    world_close();
}

TEST(what_goes_back_keeps_its_due_time)
{
    struct host *host;
    long long due;

    host = host_open("w");
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    due = redis_int(proc, "EVAL %s 1 weir:{t}:wait",
                    "return tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, "
                    "'WITHSCORES')[2])");
    EXPECT_INT(1, host_claim(host, 1, LEASE_LONG_MS));
    host_settle_all(host, WEIR__OUTCOME_RETURN);
    host_await_settled(host);
    EXPECT_INT(1, host_claim(host, 1, LEASE_LONG_MS));
    EXPECT_INT(due, host->runs->due_ms);
    EXPECT_TRUE(host->runs->late_us > 0);
    world_close();
}

TEST(what_a_dead_worker_held_keeps_its_due_time)
{
    struct host *host, *other;
    int64_t due_ms;

    host = host_open("w");
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 1, LEASE_LONG_MS));
    due_ms = host->runs->due_ms;
    EXPECT_INT(0, redis_int(proc, "EVAL %s 1 weir:{t}:lease",
                            "return redis.call('ZADD', KEYS[1], 1, "
                            "redis.call('ZRANGE', KEYS[1], 0, 0)[1])"));
    other = host_open("other");
    AWAIT(host_claim(other, 1, LEASE_LONG_MS) == 1);
    EXPECT_INT(due_ms, other->runs->due_ms);
    EXPECT_TRUE(other->runs->late_us > 0);
    world_close();
}

/* The next handler holds the loop. */
TEST(the_keeper_renews_what_waits_for_room)
{
    static struct weir__options lane_options = {.timeout = 60000};
    static struct weir__lane lane = {.options = &lane_options};
    struct host *host = open_with(1), *other = host_open("other");
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)host->topic; /* its first member */
    struct weir__run next = {.lane = &lane};
    char held[24];

    (void)snprintf(held, sizeof(held), "%s", lease_name(host->runs));
    lease_look(host);
    EXPECT_INT(0, host_claim(host, 1, LEASE_LONG_MS)); /* renewals are long */
    fill(true);
    retry_first_return_others(host);
    AWAIT(topic->backlog != NULL);
    next.started_ns = world_clock(NULL);
    host_enter(host, host->topic, &next, 60000);
    lease_hold(held, 2, NULL); /* no turn of the loop meanwhile */
    EXPECT_TRUE(!host_leave(host, &next));
    EXPECT_INT(0, host_claim(other, 10, LEASE_LONG_MS));
    fill(false);
    host_await_settled(host);
    expect_retried(host);
    world_close();
}

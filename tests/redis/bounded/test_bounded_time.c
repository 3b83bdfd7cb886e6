/* SPDX-License-Identifier: MIT */
#include "adapters/redis/node.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/lease_fixture.h"

/* Bounded topics: groups that linger, and groups that are idle. Their times are
 * moved on the server, nobody waits for them. */

static struct weir__options options;

static struct host *open_one(void)
{
    (void)world_open(NULL);
    options = weir__options_default;
    return bounded_open("one", &options);
}

static void settle_all(struct host *host)
{
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

TEST(a_group_lingers_until_its_batch_is_full)
{
    struct host *host = open_one();

    options.linger = 60000;
    options.batch = 3;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    event_add(host, "a", 1);
    events_add(host, "b", 1, 2);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    EXPECT_TRUE(host->claimed.next_due_us > 0 &&
                host->claimed.next_due_us <= 60000000);
    event_add(host, "b", 3);
    EXPECT_INT(3, host_claim(host, 300, 3600000));
    EXPECT_STR("b:1-3 ", events_text(host));
    settle_all(host);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    due_now("rot", "a");
    AWAIT(host_claim(host, 300, 3600000) > 0);
    EXPECT_STR("a:1 ", events_text(host));
    bounded_walk();
}

/* The turn of `a` is now, of `b` and `c` later. */
static const char turns[] =
    "local time = redis.call('TIME') "
    "local now = time[1] * 1000 + math.floor(time[2] / 1000) "
    "local function turn(group, by) "
    "  local at = string.format('%.0f', now + by) "
    "  return redis.call('ZADD', KEYS[1], 'XX', 'CH', at, group) end "
    "return turn('a', 0) + turn('b', 200) + turn('c', 30000)";

TEST(a_group_comes_along_when_its_linger_is_nearly_over)
{
    struct host *host = open_one();

    options.linger = 60000;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    event_add(host, "a", 1);
    event_add(host, "b", 1);
    event_add(host, "c", 1);
    EXPECT_INT(3, redis_int(proc, "EVAL %s 1 weir:{t}:rot", turns));
    AWAIT(host_claim(host, 300, 3600000) > 0);
    EXPECT_STR("a:1 b:1 ", events_text(host));
    settle_all(host);
    bounded_walk();
}

TEST(a_group_that_events_are_added_to_is_not_idle)
{
    struct host *host = open_one();

    options.group_ttl = 60000;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    events_add(host, "a", 1, 2); /* and the first of them seems old */
    EXPECT_INT(0, redis_int(proc, "ZADD weir:{t}:ttl 1000 a"));
    AWAIT(host_claim(host, 300, 3600000) > 0);
    EXPECT_STR("a:1-2 ", events_text(host));
    settle_all(host);
    EXPECT_INT(0, bounded_count("ttl"));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:ttl"));
    bounded_walk();
}

/* The last event of `a` was added long ago. */
static const char ageing[] =
    "local event = redis.call('LINDEX', KEYS[1], -1) "
    "redis.call('ZADD', KEYS[2], 'XX', 1, 'a') "
    "return redis.call('LSET', KEYS[1], -1, string.sub(event, 1, 1) .. "
    "  string.rep('-', 8) .. string.sub(event, 10))";

TEST(an_idle_group_is_dropped_as_a_whole)
{
    struct host *host = open_one();

    options.group_ttl = 60000;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    events_add(host, "a", 1, 5);
    EXPECT_STR("OK",
               redis_text(proc, "EVAL %s 2 weir:{t}:g:a weir:{t}:ttl", ageing));
    events_add(host, "b", 1, 2);
    EXPECT_INT(2, host_claim(host, 300, 3600000));
    EXPECT_STR("b:1-2 ", events_text(host));
    EXPECT_INT(5, host->dropped[WEIR_DROP_TTL]);
    EXPECT_INT(5, bounded_count("ttl"));
    bounded_walk();
}

TEST(an_idle_group_whose_retry_is_far_away_is_gone)
{
    struct host *host = open_one();

    options.group_ttl = 60000;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    event_add(host, "a", 1);
    AWAIT(host_claim(host, 300, 3600000) > 0);
    host->runs->delay_ms = 3600000;
    host_settle(host, host_take(host), WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_STR("OK",
               redis_text(proc, "EVAL %s 2 weir:{t}:g:a weir:{t}:ttl", ageing));
    event_add(host, "b", 1);
    AWAIT(host_claim(host, 300, 3600000) > 0);
    EXPECT_INT(1, bounded_count("ttl"));
    bounded_walk();
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:out a"));
}

/* The retry of `a` is in a minute. */
static const char later[] = "local now = redis.call('TIME')[1] * 1000 "
                            "return redis.call('HSET', KEYS[1], 'a', "
                            "  string.format('~ 0 0 %.0f', now + 60000))";

TEST(a_retry_waits_for_its_time_though_its_group_has_its_turn)
{
    struct host *host = open_one();

    EXPECT_INT(0, host_claim(host, 300, 5000));
    event_add(host, "a", 1);
    EXPECT_INT(1, redis_int(proc, "EVAL %s 1 weir:{t}:out", later));
    EXPECT_INT(0, host_claim(host, 300, 5000));
    EXPECT_TRUE(host->claimed.next_due_us > 50000000 &&
                host->claimed.next_due_us <= 60000000);
    bounded_walk();
}

/* --- how long the first event has been ready ------------------------------ */

/* The first event of the group was added so long ago. */
static void age(const char *group, int64_t ago_ms)
{
    struct weir__seq_maker seqs = {0};
    char seq[WEIR__SEQ_LEN + 1] = "";
    long long now_s =
        redis_int(proc, "EVAL %s 0", "return tonumber(redis.call('TIME')[1])");

    weir__seq_next(&seqs, now_s * 1000 - ago_ms, seq);
    seq[8] = '\0'; /* the time alone */
    EXPECT_STR("OK", redis_text(proc, "EVAL %s 1 weir:{t}:g:%s %s",
                                "local event = redis.call('LINDEX', KEYS[1], 0)"
                                " return redis.call('LSET', KEYS[1], 0, "
                                "event:sub(1, 1) .. ARGV[1] .. event:sub(10))",
                                group, seq));
}

static int64_t oldest_s(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_stats(host));
    return host->stats.oldest_us < 0 ? -1
                                     : host->stats.oldest_us / 600000000 * 600;
}

TEST(statistics_tell_for_how_long_the_first_event_has_been_ready)
{
    struct host *host = open_one();

    EXPECT_INT(0, host_claim(host, 300, 3600000));
    EXPECT_INT(-1, oldest_s(host));
    event_add(host, "a", 1);
    event_add(host, "b", 1);
    EXPECT_INT(0, oldest_s(host));
    age("b", 3600000);
    EXPECT_INT(3600, oldest_s(host));
    options.linger = 1800000;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 0, 3600000));
    EXPECT_INT(1800, oldest_s(host)); /* it was ready when it had lingered */
    age("b", 900000);
    EXPECT_INT(0, oldest_s(host));
    (void)redis_text(proc, "LSET weir:{t}:g:b 0 nonsense");
    (void)redis_text(proc, "LSET weir:{t}:g:a 0 %s", "x\x01\x02 nonsense");
    EXPECT_INT(-1, oldest_s(host));
}

TEST(events_behind_a_batch_that_runs_are_ready_and_those_of_a_retry_are_not)
{
    struct host *host = open_one();
    struct weir__run *run;

    options.batch = 1;
    host_serve_with(host, &options);
    EXPECT_INT(0, host_claim(host, 300, 3600000));
    events_add(host, "a", 1, 2);
    EXPECT_INT(1, host_claim(host, 1, 3600000));
    age("a", 3600000);
    EXPECT_INT(3600, oldest_s(host));
    run = host_take(host);
    run->delay_ms = 7200000;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(-1, oldest_s(host));
    bounded_walk();
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/lane.h"
#include "core/text.h"
#include "tests/core/reactor_fixture.h"

/* What the log says of jobs that are retried or end otherwise than done. */

static enum weir_verdict refused(struct weir_job *job)
{
    return weir_retry(job, "connection refused");
}

static enum weir_verdict failed(struct weir_job *job)
{
    return weir_fail(job, "no such order");
}

static enum weir_verdict pends(struct weir_job *job)
{
    (void)weir_job_handle(job);
    return WEIR_PENDING;
}

static void open_lane(const struct weir__lane_options *lane)
{
    logs_outcomes = true;
    open_reactor(lane);
}

static void open_ladder(const char *ladder)
{
    struct weir__lane_options lane = lane_options(ladder);

    open_lane(&lane);
}

static void add(const char *id)
{
    mem_store_add(store, id, 0, NULL, true);
}

static void put(struct weir__lane_options *lane, enum weir__topic_option option,
                const char *value)
{
    EXPECT_INT(WEIR_OK, weir__options_put(&lane->options, "orders", option,
                                          value, NULL));
}

/* Its lines since the last call. */
static void expect_log(const char *expected)
{
    EXPECT_STR(expected, logged);
    logged[0] = '\0';
}

TEST(each_retry_is_a_line_and_so_is_the_end)
{
    behaviour = refused;
    open_ladder("15s 3m");
    add("a");
    (void)settle_down();
    expect_log("info orders a: retry 1 of 2 in 15s: connection refused\n");
    pass(15001);
    expect_log("info orders a: retry 2 of 2 in 3m: connection refused\n");
    pass(180001);
    expect_log("warn orders a: dead: exhausted at attempt 3: "
               "connection refused\n");
}

TEST(a_ladder_without_an_end_has_no_total)
{
    behaviour = refused;
    open_ladder("1500ms ...");
    add("a");
    (void)settle_down();
    expect_log("info orders a: retry 1 in 1500ms: connection refused\n");
}

TEST(a_jobs_own_ladder_counts)
{
    behaviour = refused;
    open_ladder("1h");
    mem_store_add(store, "a", 0, "2s 2s 2s", true);
    (void)settle_down();
    expect_log("info orders a: retry 1 of 3 in 2s: connection refused\n");
}

TEST(a_job_that_is_done_is_no_line)
{
    open_ladder("1s");
    add_many(100);
    pass(2000);
    EXPECT_INT(100, runs);
    expect_log("");
}

TEST(a_failure_is_the_end)
{
    struct weir__lane_options lane = lane_options("1s");

    behaviour = failed;
    put(&lane, WEIR__TOPIC_on_dead, "lost");
    open_lane(&lane);
    add("a");
    (void)settle_down();
    expect_log("warn orders a: dead, goes to lost: failed at attempt 1: "
               "no such order\n");
}

TEST(a_job_that_came_too_late_is_a_line)
{
    open_ladder("1s");
    (void)settle_down();
    mem_store_add(store, "a", 0, NULL, false);
    mem_store_ttl(store, 100);
    mem_store_advance(store, 3000);
    pass(5000);
    EXPECT_INT(0, runs);
    EXPECT_CONTAINS("info orders a: expired, ", logged);
}

TEST(a_timeout_is_a_line)
{
    struct weir__lane_options lane = lane_options("1s");

    behaviour = pends;
    put(&lane, WEIR__TOPIC_timeout, "2s");
    open_lane(&lane);
    add("a");
    (void)settle_down();
    behaviour = NULL;
    pass(2001);
    expect_log("info orders a: retry 1 of 1 in 1s: timeout\n");
}

TEST(a_crash_is_a_line_and_so_is_the_last_one)
{
    open_ladder("1s");
    (void)settle_down();
    add("a");
    mem_store_suspect(store, 0);
    (void)settle_down();
    expect_log("");
    add("b");
    mem_store_suspect(store, 1);
    (void)settle_down();
    expect_log(
        "warn orders b: a worker ended or stalled while it ran (1 of 3)\n");
    add("c");
    mem_store_suspect(store, 3);
    (void)settle_down();
    expect_log(
        "warn orders c: dead: 3 workers ended or stalled while it ran\n");
}

/* --- many of them --------------------------------------------------------- */

static size_t count(const char *part)
{
    size_t found = 0;

    for (const char *at = strstr(logged, part); at != NULL;
         at = strstr(at + 1, part))
        found++;
    return found;
}

TEST(ten_lines_of_a_kind_come_in_a_second_and_then_their_number)
{
    behaviour = refused;
    open_ladder("1h");
    add_many(40);
    (void)settle_down();
    EXPECT_INT(10, count("retry 1 of 1 in 1h"));
    EXPECT_INT(0, count(" more "));
    behaviour = failed;
    add("x"); /* another kind */
    (void)settle_down();
    EXPECT_INT(1, count("orders x: dead"));
    logged[0] = '\0';
    pass(1001);
    expect_log("info orders: 30 more retries within a second\n");
    pass(10000);
    expect_log("");
}

TEST(timeouts_and_retries_are_counted_apart)
{
    struct weir__lane_options lane = lane_options("1h");

    behaviour = pends;
    put(&lane, WEIR__TOPIC_timeout, "2s");
    open_lane(&lane);
    add_many(12);
    pass(3002);
    EXPECT_CONTAINS("info orders: 2 more timeouts within a second", logged);
}

TEST(the_next_second_has_lines_of_its_own)
{
    behaviour = refused;
    open_ladder("1h");
    add_many(10);
    pass(1001);
    EXPECT_INT(10, count("retry 1"));
    logged[0] = '\0';
    add("x");
    (void)settle_down();
    expect_log("info orders x: retry 1 of 1 in 1h: connection refused\n");
}

TEST(at_the_end_the_number_of_the_last_second_is_told)
{
    behaviour = refused;
    open_ladder("1h");
    add_many(13);
    (void)settle_down();
    logged[0] = '\0';
    close_reactor();
    expect_log("info orders: 3 more retries within a second\n");
}

TEST(a_log_of_warnings_has_no_retries)
{
    behaviour = refused;
    log_level = WEIR_LEVEL_WARN;
    open_ladder("1s");
    add_many(20);
    (void)settle_down();
    pass(1002);
    EXPECT_INT(10, count("warn orders j"));
    EXPECT_INT(0, count("info"));
    logged[0] = '\0';
    pass(1001);
    expect_log("warn orders: 10 more deaths within a second\n");
}

static void evict(size_t count)
{
    weir__lane_events().evicted(reactor->lanes, count);
}

TEST(an_eviction_of_dead_jobs_is_a_line)
{
    struct weir__lane_options lane = lane_options("1s");

    put(&lane, WEIR__TOPIC_max_dead, "5");
    open_lane(&lane);
    evict(2);
    expect_log("warn orders: 2 dead evicted: no more than max_dead (5) are "
               "kept\n");
}

TEST(jobs_that_no_line_told_of_are_counted_and_not_lines)
{
    open_ladder("1s");
    for (int i = 0; i < 12; i++)
        evict(7);
    EXPECT_INT(10, count("warn orders: 7 dead evicted"));
    logged[0] = '\0';
    pass(1001);
    expect_log("warn orders: 14 more evicted dead jobs within a second\n");
}

static void drop(const char *topic, enum weir_drop reason)
{
    const struct weir__dropped dropped = {
        .topic = weir__slice_str(topic),
        .group = weir__slice_str("g1"),
        .reason = reason,
        .count = 3,
    };

    weir__reactor_dropped(reactor, &dropped);
}

TEST(events_dropped_from_a_group_are_a_line)
{
    open_ladder("1s");
    drop("orders", WEIR_DROP_OVERFLOW);
    expect_log("info orders: group g1: 3 dropped: overflow\n");
    drop("orders", WEIR_DROP_TTL);
    expect_log("info orders: group g1: 3 dropped: ttl\n");
}

TEST(those_that_were_too_old_were_lines_before)
{
    open_ladder("1s");
    drop("orders", WEIR_DROP_AGE);
    expect_log("");
}

TEST(drops_of_topics_that_others_serve_are_no_lines)
{
    open_ladder("1s");
    drop("others", WEIR_DROP_OVERFLOW);
    expect_log("");
}

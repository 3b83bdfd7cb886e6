/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"

/* Entries and events of any size that somebody else wrote: one that is larger
 * than what an answer may have dies, and the one beside it runs; many that are
 * large come in several answers. */

/* In Lua: ARGV[1] MiB of '1', the whole ARGV[2] times. APPEND makes a hundred
 * MiB in a tenth of the time that string.rep takes. */
static const char ones[] =
    "local mib = string.rep('1', 2 ^ 20) "
    "for i = 1, ARGV[1] do redis.call('APPEND', 'ones', mib) end "
    "local ones = redis.call('GET', 'ones') redis.call('DEL', 'ones') ";

static void put(const char *into, const char *mib, const char *times)
{
    EXPECT_STR("OK",
               redis_text(proc, "EVAL %s%s 0 %s %s", ones, into, mib, times));
}

static const char into_list[] =
    "for i = 1, ARGV[2] do redis.call('RPUSH', 't', ones) end return 'OK'";
static const char into_stream[] =
    "for i = 1, ARGV[2] do "
    "  redis.call('XADD', 't', '5-' .. i, 'body', ones) end return 'OK'";
static const char into_group[] =
    "local head = redis.call('LINDEX', 'weir:{t}:g:g', 0) "
    "for i = 1, ARGV[2] do "
    "  redis.call('RPUSH', 'weir:{t}:g:g', head .. ones) end "
    "redis.call('HINCRBY', 'weir:{t}:meta', 'waiting', ARGV[2]) "
    "redis.call('HINCRBY', 'weir:{t}:meta', 'added', ARGV[2]) "
    "return 'OK'";
static const char into_held[] =
    "redis.call('ZADD', 'weir:{t}:wait', 1, 'a') "
    "redis.call('HSET', 'weir:{t}:held', 'a', ones) return 'OK'";

static struct host *open_of(const char *kind)
{
    return host_open_kind("w1", kind);
}

static struct host *open_bounded(void)
{
    return bounded_open("one", &weir__options_default);
}

/* What core does with them, without handlers. Returns how many were sound. */
static int settle_claimed(struct host *host)
{
    int sound = 0;

    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);

        EXPECT_INT(0, run->record.counters.crashes);
        sound += !run->is_malformed;
        run->record.reason = weir__slice_str("malformed");
        host_settle(host, run,
                    run->is_malformed ? WEIR__OUTCOME_DEAD
                                      : WEIR__OUTCOME_DONE);
    }
    host_await_settled(host);
    return sound;
}

/* Of two that wait one is sound; the connection stays. */
static void expect_one_runs(struct host *host)
{
    EXPECT_INT(0, host_claim(host, 0, 60000)); /* makes the topic known */
    EXPECT_INT(2, host_list(host, WEIR_JOB_READY, 2));
    EXPECT_INT(2, host_claim(host, 2, 60000));
    EXPECT_INT(1, settle_claimed(host));
    EXPECT_INT(1, host->ups);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:wait"));
}

static void expect_one_dead(struct host *host)
{
    EXPECT_INT(1, host_dead(host, 1));
    EXPECT_STR("malformed", host->text[2]);
    EXPECT_INT(1, host->ups);
}

TEST(an_entry_of_a_list_too_large_for_an_answer_dies)
{
    struct host *host = open_of("list");

    put(into_list, "100", "1");
    EXPECT_INT(2, redis_int(proc, "RPUSH t 7"));
    expect_one_runs(host);
    expect_one_dead(host);
    EXPECT_INT(100 << 20, redis_int(proc, "HSTRLEN weir:{t}:held "
                                          "@0000000000000001"));
    EXPECT_INT(WEIR_OK, host_requeue(host, NULL));
    EXPECT_INT(1, host_claim(host, 1, 60000));
    EXPECT_INT(0, settle_claimed(host));
    expect_one_dead(host);
}

TEST(an_entry_too_large_for_an_answer_dies_and_is_kept_with_auto_ack)
{
    struct host *host = open_of("list");

    host_serve(host, "auto_ack=yes");
    put(into_list, "100", "1");
    EXPECT_INT(2, redis_int(proc, "RPUSH t 7"));
    expect_one_runs(host);
    expect_one_dead(host);
    EXPECT_INT(100 << 20, redis_int(proc, "HSTRLEN weir:{t}:held "
                                          "@0000000000000001"));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:auto weir:{t}:lease"));
}

TEST(a_waiting_entry_of_a_list_too_large_for_an_answer_dies)
{
    struct host *host = open_of("list");

    put(into_held, "100", "1");
    EXPECT_INT(1, redis_int(proc, "RPUSH t 7"));
    expect_one_runs(host);
    expect_one_dead(host);
}

TEST(an_entry_of_a_stream_too_large_for_an_answer_dies)
{
    struct host *host = open_of("stream");

    put(into_stream, "100", "1");
    EXPECT_STR("5-2", redis_text(proc, "XADD t 5-2 body 7"));
    expect_one_runs(host);
    expect_one_dead(host);
    EXPECT_INT(2, redis_int(proc, "XLEN t"));
    EXPECT_INT(WEIR_OK, host_requeue(host, NULL));
    EXPECT_INT(1, host_claim(host, 1, 60000));
    EXPECT_INT(0, settle_claimed(host));
    expect_one_dead(host);
}

TEST(an_event_too_large_for_an_answer_dies)
{
    struct host *host = open_bounded();

    event_add(host, "g", 1);
    put(into_group, "100", "1");
    expect_one_runs(host);
    EXPECT_INT(1, bounded_count("done"));
    EXPECT_INT(1, bounded_count("failed"));
    bounded_walk();
}

TEST(an_entry_too_large_for_an_answer_wakes_who_waits_for_one)
{
    struct host *host = open_of("list");

    EXPECT_INT(0, host_claim(host, 1, 60000));
    put(into_list, "100", "1");
    AWAIT(host->wakes > 0);
    EXPECT_INT(1, host_claim(host, 1, 60000));
    EXPECT_INT(0, settle_claimed(host));
    expect_one_dead(host);
}

/* Each is no more than a body may be, all are more than fits. */
static void expect_in_parts(struct host *host, size_t count)
{
    size_t came = host_claim(host, 1000, 60000);

    EXPECT_TRUE(came > 1 && came < count);
    (void)settle_claimed(host);
    EXPECT_INT(count - came, host_claim(host, 1000, 60000));
    (void)settle_claimed(host);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:wait"));
    EXPECT_INT(1, host->ups);
}

TEST(large_entries_of_a_list_come_in_parts)
{
    struct host *host = open_of("list");

    put(into_list, "16", "4");
    expect_in_parts(host, 4);
    EXPECT_INT(0, redis_int(proc, "EXISTS t"));
}

TEST(large_entries_come_in_parts_from_the_right_as_well)
{
    struct host *host = open_of("list");

    host_serve(host, "end=right");
    put(into_list, "16", "4");
    expect_in_parts(host, 4);
    EXPECT_INT(0, redis_int(proc, "EXISTS t"));
}

TEST(large_entries_of_a_stream_come_in_parts)
{
    struct host *host = open_of("stream");

    put(into_stream, "16", "4");
    expect_in_parts(host, 4);
}

TEST(large_events_come_in_parts)
{
    struct host *host = open_bounded();

    event_add(host, "g", 1);
    put(into_group, "16", "4");
    expect_in_parts(host, 5);
    bounded_walk();
}

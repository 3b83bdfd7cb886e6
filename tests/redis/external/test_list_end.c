/* SPDX-License-Identifier: MIT */

#include "adapters/redis/store/kind.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"

/* Which end of a list its entries are taken from. */

static struct host *open_right(const char *name)
{
    struct host *host = host_open_kind(name, "list");

    host_serve(host, "end=right");
    return host;
}

static void expect_runs(struct host *host, int first, int last)
{
    for (; first <= last; first++) {
        struct weir__run *run = host_take(host);

        EXPECT_INT(first, run->record.body.ptr[0]);
        host_settle(host, run, WEIR__OUTCOME_DONE);
    }
    host_await_settled(host);
}

TEST(what_was_pushed_on_the_left_runs_in_order_from_the_right)
{
    struct host *host = open_right("w1");

    EXPECT_INT(3, redis_int(proc, "LPUSH t 1 2 3"));
    EXPECT_INT(2, host_claim(host, 2, 60000));
    EXPECT_STR("3", redis_text(proc, "LRANGE t 0 -1"));
    EXPECT_INT(2, redis_int(proc, "LPUSH t 4"));
    EXPECT_INT(2, host_claim(host, 10, 60000));
    expect_runs(host, 1, 4);
    EXPECT_INT(0, redis_int(proc, "EXISTS t"));
}

TEST(what_a_dead_worker_took_from_the_right_comes_back_in_order_and_first)
{
    struct host *dead = open_right("w1");
    struct host *host = open_right("w2");

    EXPECT_INT(3, redis_int(proc, "LPUSH t 1 2 3"));
    lease_outlive(dead, 2);
    host_close(dead);
    AWAIT(host_claim(host, 0, 60000) == 0 &&
          redis_int(proc, "ZCARD weir:{t}:wait") == 2);
    EXPECT_INT(3, host_claim(host, 10, 60000));
    expect_runs(host, 1, 3);
}

TEST(more_than_one_reading_from_the_right_keeps_the_order)
{
    struct host *host = open_right("w1");

    for (int i = 0; i < 300; i++)
        EXPECT_INT(i + 1, redis_int(proc, "LPUSH t %d", i % 100));
    EXPECT_INT(290, host_claim(host, 290, 60000));
    EXPECT_INT(10, host_claim(host, 290, 60000));
    for (int i = 0; i < 3; i++)
        expect_runs(host, 0, 99);
}

TEST(with_auto_ack_what_is_taken_from_the_right_is_gone)
{
    struct host *host = host_open_kind("w1", "list");

    host_serve(host, "end=right", "auto_ack=yes");
    EXPECT_INT(3, redis_int(proc, "LPUSH t 1 2 3"));
    EXPECT_INT(2, host_claim(host, 2, 60000));
    EXPECT_STR("3", redis_text(proc, "LRANGE t 0 -1"));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:held"));
    expect_runs(host, 1, 2);
}

TEST(adds_go_to_the_end_that_is_not_taken_from)
{
    struct host *host = open_right("w1");
    struct host *adds = host_open_kind("w2", "list");

    EXPECT_INT(1, redis_int(proc, "LPUSH t 1"));
    host_add(host, NULL, 0);
    AWAIT(host->added == 1);
    EXPECT_STR("7", redis_text(proc, "LINDEX t 0"));
    EXPECT_INT(1, host_claim(host, 1, 60000)); /* says so to others */
    EXPECT_INT(2, redis_int(proc, "LPUSH t 2"));
    host_add(adds, NULL, 0);
    AWAIT(adds->added == 1);
    EXPECT_STR("7", redis_text(proc, "LINDEX t 0"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{u}:options end right"));
    EXPECT_INT(1, redis_int(proc, "RPUSH u 1"));
    host_use(adds, "u");
    host_add(adds, NULL, 0);
    AWAIT(adds->added == 2);
    EXPECT_STR("7", redis_text(proc, "LINDEX u 0"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{v}:options end left"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{v}:meta end right"));
    EXPECT_INT(1, redis_int(proc, "RPUSH v 1"));
    host_use(adds, "v");
    host_add(adds, NULL, 0);
    AWAIT(adds->added == 3);
    EXPECT_STR("7", redis_text(proc, "LINDEX v -1"));
}

TEST(what_is_ready_is_listed_in_the_order_in_which_it_will_run)
{
    struct host *host = open_right("w1");

    EXPECT_INT(WEIR_ENOTFOUND, host_stats(host));
    EXPECT_INT(0, host_claim(host, 0, 60000));
    EXPECT_INT(4, redis_int(proc, "LPUSH t 1 2 3 4"));
    EXPECT_INT(1, host_list(host, WEIR_JOB_READY, 1));
    EXPECT_STR("\x01", host->text[3]);
    EXPECT_INT(4, host_list(host, WEIR_JOB_READY, 10));
    EXPECT_STR("\x04", host->text[3]); /* the last of them */
}

TEST(a_worker_that_waits_at_the_right_is_woken_by_a_push)
{
    struct host *host = open_right("w1");

    EXPECT_INT(0, host_claim(host, 10, 60000));
    AWAIT(redis_int(proc, "LPUSH t 1") == 1 && redis_int(proc, "DEL t") == 1 &&
          host->wakes > 0);
}

TEST(the_other_end_is_taken_from_once_it_is_served)
{
    struct host *host = host_open_kind("w1", "list");

    EXPECT_INT(3, redis_int(proc, "RPUSH t 2 3 1"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:options end right"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:meta revision 4"));
    EXPECT_INT(0, host_claim(host, 1, 60000));
    EXPECT_STR("end=right ", host->options);
    host_serve(host, "end=right");
    EXPECT_INT(1, host_claim(host, 1, 60000));
    expect_runs(host, 1, 1);
    EXPECT_STR("right", redis_text(proc, "HGET weir:{t}:meta end"));
    host_serve(host, "end=left");
    EXPECT_INT(2, host_claim(host, 2, 60000));
    expect_runs(host, 2, 3);
    EXPECT_STR("", redis_text(proc, "HGET weir:{t}:meta end"));
}

/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>

/* The scripts for a job that comes alone and for a run that is done alone. What
 * add and settle do the random model compares as well. */

/* --- add_one -------------------------------------------------------------- */

TEST(a_lone_job_waits_in_the_pack_that_came_with_it)
{
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    EXPECT_STR("aaaaaaaaaaaa", script_text("HGET weir:{t}:ids x"));
    EXPECT_INT(-1, redis_int(script_proc, "PTTL weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_STR("delay", script_text("HGET weir:{t}:meta kind"));
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    EXPECT_INT(1, script_stat("added"));
}

TEST(a_lone_job_without_an_id_is_in_no_index)
{
    EXPECT_STR("1", script_add_one('a', "", "a2000009999999"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:ids"));
    EXPECT_STR("aaaaaaaaaaaa0000 2000009999999",
               script_text("ZPOPMAX weir:{t}:wait"));
}

TEST(a_repeat_of_a_lone_add_changes_nothing_and_says_the_same)
{
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    script_number--;
    EXPECT_STR("0", script_add_one('a', "x", "r0"));
    (void)script_text("HSET weir:{t}:meta revision 7");
    EXPECT_STR("0 0 0 7", script_add_one('b', "x", "r0"));
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    EXPECT_STR("1", script_settle_all("a0000"));
    script_number--;
    EXPECT_STR("0 0 0 7", script_add_one('b', "x", "r0"));
    script_number -= 2;
    EXPECT_STR("0 0 -4 7", script_add_one('c', "y", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
    EXPECT_INT(1, script_stat("added"));
}

/* Whoever added it last time may not know this script, or that one. */
TEST(a_repeat_by_the_other_script_is_a_repeat)
{
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    script_number--;
    EXPECT_STR("0", script_add('a', "x", "r0"));
    EXPECT_STR("1", script_add('b', "y", "r0"));
    script_number--;
    EXPECT_STR("0", script_add_one('b', "y", "r0"));
    EXPECT_INT(2, script_stat("added"));
}

TEST(a_lone_job_that_may_not_wait_leaves_its_id_free)
{
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    (void)script_text("HSET weir:{t}:meta max_pending 1");
    EXPECT_STR("0 0 256", script_add_one('b', "y", "r0"));
    EXPECT_STR("0 0 256", script_add_one('b', "", "r0"));
    EXPECT_STR("0 0 0", script_add_one('b', "x", "r0"));
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    EXPECT_STR("1", script_add_one('b', "y", "r0"));
    EXPECT_INT(2, script_stat("added"));
}

TEST(a_name_that_is_in_use_refuses_a_lone_job)
{
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    EXPECT_STR("0 0 -1", script_add_one('a', "y", "r0"));
    EXPECT_STR("1", script_add_one('b', "y", "r0"));
    EXPECT_STR("a0000+0 b0000+0", script_claim("9", "9000"));
}

TEST(a_lone_job_for_a_topic_of_another_kind_is_left_out)
{
    (void)script_text("HSET weir:{t}:meta kind list");
    EXPECT_STR("-1 list", script_add_one('a', "x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait weir:{t}:seen "
                                         "weir:{t}:ids"));
}

TEST(a_lone_job_is_taken_where_counters_are_no_numbers)
{
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    (void)script_text("HSET weir:{t}:meta added x revision 1e300");
    EXPECT_STR("1 0", script_add_one('b', "y", "r0"));
    EXPECT_STR("1", script_text("HGET weir:{t}:meta added"));
    (void)script_text("HSET weir:{t}:meta added 40000000000000 revision nan");
    EXPECT_STR("1 0", script_add_one('c', "z", "r0"));
    EXPECT_STR("1", script_text("HGET weir:{t}:meta added"));
}

static const char *add_alone(void)
{
    return script_add_one('a', "x", "r0");
}

static void make_topic(void)
{
    (void)script_text("HSET weir:{t}:meta kind delay");
}

TEST(a_lone_add_that_ends_with_an_error_leaves_no_job)
{
    script_expect_untouched("wait ids meta seen", make_topic, add_alone);
}

TEST(a_lone_job_wakes_whoever_would_sleep_longest)
{
    redisContext *heard = redisConnectUnix(redis_socket(script_proc));
    void *reply;

    EXPECT_TRUE(heard != NULL && heard->err == 0);
    freeReplyObject(redisCommand(heard, "SUBSCRIBE weir:wake:w1"));
    (void)script_text("ZADD weir:{t}:idle 1 w0 2000000000000 w1 "
                      "2000000000001 gone inf lost");
    EXPECT_STR("1", script_add_one('a', "x", "a2000000000000"));
    EXPECT_STR("w0 w1", script_text("ZRANGE weir:{t}:idle 0 -1"));
    EXPECT_STR("1", script_add_one('b', "y", "r0"));
    EXPECT_STR("w0", script_text("ZRANGE weir:{t}:idle 0 -1"));
    EXPECT_INT(REDIS_OK, redisGetReply(heard, &reply));
    EXPECT_STR("t bbbbbbbbbbbb", ((redisReply *)reply)->element[2]->str);
    freeReplyObject(reply);
    redisFree(heard);
}

/* --- settle_one ----------------------------------------------------------- */

TEST(a_run_that_is_done_alone_leaves_nothing_behind)
{
    (void)script_add_one('a', "x", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    EXPECT_STR("1", script_settle_one("a0000", "x", "1"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa "
                                         "weir:{t}:run weir:{t}:lease"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:ids"));
    EXPECT_INT(1, script_stat("done"));
    EXPECT_STR("0 0 0", script_settle_one("a0000", "x", "1"));
    EXPECT_INT(1, script_stat("done"));
}

TEST(a_pack_goes_with_the_last_of_its_slots_that_is_done_alone)
{
    script_stage('a', "x y z");
    EXPECT_STR("3", script_add_staged('a', "p\x93\x00\x00\x00", 5));
    EXPECT_STR("a0000+0 a0101+0 a0202+0", script_claim("9", "9000"));
    EXPECT_STR("1", script_settle_one("a0101", "y", "3"));
    EXPECT_STR("1", script_settle_one("a0000", "x", "3"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:lease"));
    EXPECT_STR("\x02", script_text("GETRANGE weir:{t}:p:aaaaaaaaaaaa 3 3"));
    EXPECT_STR("1", script_settle_one("a0202", "z", "3"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa "
                                         "weir:{t}:run weir:{t}:lease"));
}

TEST(a_verdict_without_its_token_is_refused_alone_too)
{
    char stale[24];

    (void)script_add_one('a', "x", "r0");
    (void)script_crash("9");
    (void)snprintf(stale, sizeof(stale), "%s", script_token);
    EXPECT_STR("a0000+1", script_claim("9", "9000"));
    EXPECT_STR("1", script_text("ZCARD weir:{t}:run"));
    (void)snprintf(script_token, sizeof(script_token), "%s", stale);
    EXPECT_STR("0 0 0", script_settle_one("a0000", "x", "1"));
    EXPECT_STR("1", script_text("ZCARD weir:{t}:run"));
    EXPECT_STR("1", script_text("ZCARD weir:{t}:lease"));
}

TEST(a_suspect_that_is_done_alone_is_settled)
{
    (void)script_add_one('a', "x", "r0");
    (void)script_crash("9");
    EXPECT_STR("a0000+1", script_claim("9", "9000"));
    EXPECT_STR("1", script_settle_one("a0000", "x", "1"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:run weir:{t}:lease"));
}

TEST(a_run_is_done_alone_where_the_counter_is_no_number)
{
    (void)script_add_one('a', "x", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    (void)script_text("HSET weir:{t}:meta settled x");
    EXPECT_STR("1", script_settle_one("a0000", "x", "1"));
    EXPECT_STR("1", script_text("HGET weir:{t}:meta settled"));
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis/scripts/lane_fixture.h"
#include "tests/redis/scripts/script_fixture.h"

/* A job that was claimed and did not start gives its token back. */

static const char pull_keys[] = "wait run lease ids meta idle held due dead "
                                "rec options started absent";

static void set(const char *name, const char *value)
{
    const char *words[] = {"delay", name, value, NULL};

    (void)script_run(&weir__script_store_set, "options ids meta wait run dead",
                     words);
}

static long long claim(const char *room)
{
    (void)script_claim(room, "9000");
    return script_reply->element[3]->integer;
}

/* The server's clock says so much more from here on, as the topic sees it. */
static void pass_ms(long long ms)
{
    static const char move[] =
        "local bucket = redis.call('HGET', 'weir:{t}:meta', 'bucket') "
        "local us = ARGV[1] * 1000 "
        "redis.call('HSET', 'weir:{t}:meta', 'bucket', (bucket:gsub('%d+', "
        "  function(at) return string.format('%.0f', math.max(at - us, 0)) "
        "  end))) "
        "for _, token in ipairs(redis.call('HKEYS', 'weir:{t}:held')) do "
        "  local held = cmsgpack.unpack(redis.call('HGET', 'weir:{t}:held', "
        "    token)) "
        "  for i = 1, #held do if held[i] == '@w1' then "
        "    held[i + 1] = held[i + 1] - ARGV[1] end end "
        "  redis.call('HSET', 'weir:{t}:held', token, cmsgpack.pack(held)) "
        "end return 1";

    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 0 %lld", move, ms));
}

/* The first `count` slots of this node go back unstarted; then its claim ends
 * if nothing is left. */
static void give_back(const char *node, unsigned count)
{
    unsigned lo = (unsigned)(node[1] - '0') * 16 + (unsigned)(node[2] - '0');
    unsigned char slots[256];

    script_settle_begin();
    for (unsigned i = 0; i < count; i++) {
        slots[i] = (unsigned char)(lo + i);
        script_settle_unstarted(SCRIPT_BACK + lo + i);
    }
    script_settle_back(node, slots, count, 1);
    script_settle_close();
    (void)script_settle(node[0], 0, "10");
}

TEST(what_goes_back_unstarted_gives_its_tokens_back)
{
    set("rate", "4/h burst 4");
    (void)script_add('a', "4", "r0");
    (void)script_add('b', "4", "r0");
    EXPECT_INT(4, claim("9"));
    give_back("a0003", 3);
    EXPECT_INT(3, claim("9"));
    EXPECT_INT(0, claim("9"));
}

TEST(what_was_claimed_under_another_rate_gives_no_token_back)
{
    set("rate", "4/h burst 4");
    (void)script_add('a', "4", "r0");
    (void)script_add('b', "4", "r0");
    EXPECT_INT(2, claim("2"));
    set("rate", "2/h burst 2");
    EXPECT_INT(1, claim("9"));
    give_back("a0001", 2);
    EXPECT_INT(0, claim("9"));
}

TEST(what_was_claimed_without_a_rate_gives_no_token_back)
{
    (void)script_add('a', "4", "r0");
    (void)script_add('b', "4", "r0");
    EXPECT_INT(2, claim("2"));
    set("rate", "1/h burst 1");
    EXPECT_INT(1, claim("9"));
    give_back("a0001", 2);
    EXPECT_INT(0, claim("9"));
}

TEST(what_was_claimed_gives_its_token_back_if_the_rate_is_said_again)
{
    set("rate", "4/h burst 4");
    (void)script_add('a', "4", "r0");
    EXPECT_INT(2, claim("2"));
    set("rate", "4/h burst 4");
    set("parallel", "9");
    give_back("a0001", 2);
    EXPECT_INT(4, claim("9"));
}

TEST(tokens_of_another_rate_come_from_its_first_moment)
{
    set("rate", "1/h burst 2");
    (void)script_add('a', "2", "r0");
    (void)script_add('b', "2", "r0");
    EXPECT_INT(2, claim("9"));
    set("rate", "10/h burst 2");
    pass_ms(6 * 60 * 1000);
    EXPECT_INT(1, claim("9"));
}

TEST(what_goes_back_after_its_start_has_used_its_token)
{
    set("rate", "4/h burst 4");
    (void)script_add('a', "4", "r0");
    EXPECT_INT(4, claim("9"));
    script_settle_begin();
    script_settle_back("a0003", NULL, 0, 1);
    (void)script_settle('a', 0, "10");
    EXPECT_INT(0, claim("9"));
    EXPECT_INT(4, script_stat("waiting"));
}

TEST(what_expires_gives_its_token_back_once)
{
    set("rate", "2/h burst 2");
    (void)script_add('a', "2", "r0");
    (void)script_add('b', "2", "r0");
    EXPECT_INT(2, claim("2"));
    for (int i = 0; i < 2; i++) { /* the call, and its repeat */
        script_settle_begin();
        script_settle_node("a0001", NULL, 0);
        script_settle_end(0, "x", "");
        script_settle_unstarted(0);
        (void)script_settle('a', 0, "10");
    }
    EXPECT_INT(1, script_stat("expired"));
    EXPECT_INT(1, claim("9"));
    EXPECT_INT(0, claim("9"));
}

TEST(a_bucket_that_was_full_in_between_is_not_fuller)
{
    char first[24];

    set("rate", "10/h burst 10");
    (void)script_add('a', "10", "r0");
    (void)script_add('b', "99", "r0");
    EXPECT_INT(10, claim("10"));
    (void)snprintf(first, sizeof(first), "%s", script_token);
    pass_ms(3600000);
    EXPECT_INT(10, claim("99"));
    (void)snprintf(script_token, sizeof(script_token), "%s", first);
    give_back("a0009", 10);
    EXPECT_INT(0, claim("99"));
}

TEST(tokens_that_come_back_late_count_where_none_were_left)
{
    char first[24];

    set("rate", "10/h burst 20");
    (void)script_add('a', "5", "r0");
    for (char letter = 'b'; letter <= 'z'; letter++)
        (void)script_add(letter, "1", "r0");
    EXPECT_INT(20, claim("20"));
    pass_ms(1800000);
    EXPECT_INT(5, claim("99"));
    (void)snprintf(first, sizeof(first), "%s", script_token);
    pass_ms(1800000);
    EXPECT_INT(5, claim("99"));
    (void)snprintf(script_token, sizeof(script_token), "%s", first);
    give_back("q0000", 1);
    EXPECT_INT(1, claim("99"));
    EXPECT_INT(0, claim("99"));
}

TEST(a_suspect_whose_worker_died_before_its_start_gives_its_token_back)
{
    set("rate", "2/h burst 2");
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_crash("1"));
    EXPECT_STR("a0000+1", script_crash("1")); /* nothing says that it started */
    EXPECT_STR("a0000+1", script_claim("1", "0"));
}

TEST(what_is_deleted_in_hand_and_does_not_start_gives_its_token_back)
{
    set("rate", "2/h burst 2");
    (void)script_add('a', "x", "r0");
    (void)script_add('b', "9", "r0");
    EXPECT_INT(1, claim("1"));
    EXPECT_STR("running", script_slot("delete", "x", "aaaaaaaaaaaa", ""));
    for (int i = 0; i < 2; i++) { /* the call, and its repeat */
        script_settle_begin();
        script_settle_back("a0000", NULL, 0, 1);
        script_settle_unstarted(SCRIPT_BACK);
        (void)script_settle('a', 0, "10");
    }
    EXPECT_INT(2, claim("9"));
    EXPECT_INT(0, claim("9"));
}

TEST(what_is_deleted_while_it_runs_has_used_its_token)
{
    set("rate", "2/h burst 2");
    (void)script_add('a', "x", "r0");
    (void)script_add('b', "9", "r0");
    EXPECT_INT(1, claim("1"));
    EXPECT_STR("running", script_slot("delete", "x", "aaaaaaaaaaaa", ""));
    EXPECT_CONTAINS("0", script_settle_all("a0000"));
    EXPECT_INT(1, claim("9"));
    EXPECT_INT(0, claim("9"));
}

TEST(who_waits_for_a_token_is_woken_by_one_that_comes_back)
{
    char first[24];

    set("rate", "1/h");
    (void)script_add('a', "1", "r0");
    (void)script_add('b', "1", "r0");
    EXPECT_INT(1, claim("1"));
    (void)snprintf(first, sizeof(first), "%s", script_token);
    EXPECT_INT(0, claim("1"));
    EXPECT_STR("-inf", script_text("ZSCORE weir:{t}:idle w1"));
    (void)snprintf(script_token, sizeof(script_token), "%s", first);
    give_back("a0000", 1);
    EXPECT_TRUE(script_text("ZSCORE weir:{t}:idle w1") == NULL);
}

/* --- keys ----------------------------------------------------------------- */

TEST(a_job_with_a_key_gives_the_token_of_its_key_back)
{
    EXPECT_STR("1", lane_add(1, "l2r0 a"));
    EXPECT_STR("1", lane_add(2, "l2r0 a"));
    (void)lane_claim("1", "||1/h||");
    EXPECT_INT(1, lane_claimed_count);
    (void)lane_claim("9", "||1/h||");
    EXPECT_INT(0, lane_claimed_count);
    EXPECT_STR("0", lane_settle(1, "spare"));
    (void)lane_claim("9", "||1/h||");
    EXPECT_INT(1, lane_claimed_count);
    (void)lane_claim("9", "||1/h||");
    EXPECT_INT(0, lane_claimed_count);
}

TEST(what_is_deleted_in_hand_gives_the_token_of_its_key_back)
{
    static const int purged[] = {2};

    for (int job = 1; job <= 3; job++)
        EXPECT_STR("1", lane_add(job, "l2r0 a"));
    (void)lane_claim("1", "||1/h||");
    EXPECT_STR("running", lane_slot("delete", 1, ""));
    EXPECT_STR("0", lane_settle(1, "spare"));
    EXPECT_STR("2", lane_claim("9", "||1/h||"));
    EXPECT_STR("1", lane_purge(purged, 1));
    EXPECT_STR("0", lane_settle(2, "spare"));
    EXPECT_STR("3", lane_claim("9", "||1/h||"));
}

/* --- clients -------------------------------------------------------------- */

static void push(const char *id, const char *when)
{
    script_begin(&weir__script_delay_push, "wait ids meta idle options absent");
    script_arg("t");
    script_arg(id);
    script_arg("\x07");
    script_arg(when);
    EXPECT_CONTAINS("added", script_call());
}

/* How many jobs came. */
static size_t pull(void)
{
    script_begin(&weir__script_delay_pull, pull_keys);
    script_arg("10");
    script_arg("w1");
    script_arg("0");
    script_arg("");
    (void)script_call();
    EXPECT_INT(9, script_reply->elements);
    return script_reply->element[8]->elements;
}

/* Finish the first job that came; `second` is its next verdict in the call. */
static const char *finish_twice(const char *verdict, const char *second)
{
    const char *verdicts[] = {verdict, second};
    char handle[256];

    (void)snprintf(handle, sizeof(handle), "%s",
                   script_reply->element[8]->element[0]->element[0]->str);
    script_begin(&weir__script_delay_finish, pull_keys);
    script_arg("w1");
    for (int i = 0; i < 2 && verdicts[i] != NULL; i++) {
        script_arg(handle);
        script_arg(verdicts[i]);
        script_arg("");
        script_arg("");
    }
    return script_call();
}

static const char *finish(const char *verdict)
{
    return finish_twice(verdict, NULL);
}

TEST(what_expires_in_a_pull_uses_no_token)
{
    set("ttl", "1m");
    set("rate", "2/h burst 2");
    push("old1", "a1000");
    push("old2", "a1000");
    EXPECT_INT(2, redis_int(script_proc, "EVAL %s 0",
                            "local all = redis.call('ZRANGE', 'weir:{t}:wait', "
                            "0, -1) for _, node in ipairs(all) do redis.call("
                            "'ZADD', 'weir:{t}:wait', 1000, node) end "
                            "return #all"));
    push("new1", "r0");
    push("new2", "r0");
    push("new3", "r0");
    EXPECT_INT(0, pull()); /* both expired */
    EXPECT_INT(0,
               script_reply->element[2]->integer); /* it asks again at once */
    EXPECT_INT(2, pull());
    EXPECT_INT(2, script_stat("expired"));
    EXPECT_INT(0, pull());
}

TEST(what_a_client_gives_back_or_cannot_read_uses_no_token)
{
    set("rate", "1/h");
    push("a", "r0");
    push("b", "r0");
    EXPECT_INT(1, pull());
    EXPECT_STR("1", finish("back"));
    EXPECT_INT(1, pull());
    EXPECT_STR("1", finish("malformed"));
    EXPECT_INT(1, pull());
    EXPECT_STR("1", finish("fail"));
    push("c", "r0");
    EXPECT_INT(0, pull());
}

TEST(what_a_client_gives_back_in_vain_has_used_its_token)
{
    set("rate", "1/h");
    push("a", "r0");
    push("b", "r0");
    EXPECT_INT(1, pull());
    EXPECT_STR("1 0", finish_twice("done", "back"));
    EXPECT_INT(0, pull());
}

/* --- schedules ------------------------------------------------------------ */

TEST(a_tick_comes_though_no_token_is_left)
{
    set("rate", "1/h");
    (void)script_add('a', "2", "r0");
    EXPECT_INT(1, claim("1"));
    (void)script_add('b', "s@next", "r0");
    EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:cron s A"));
    EXPECT_STR("b0000+0", script_claim("9", "9000"));
    EXPECT_INT(1, script_stat("ready"));
    script_settle_begin();
    script_settle_node("b0000", NULL, 0);
    script_settle_unstarted(0);
    script_settle_close();
    (void)script_settle('b', 0, "10");
    EXPECT_INT(0, claim("9")); /* it used none, so none came back */
}

TEST(who_waits_for_a_token_comes_for_the_next_tick)
{
    set("rate", "1/h");
    (void)script_add('a', "2", "r0");
    EXPECT_INT(1, claim("1"));
    (void)script_settle_all("a0000");
    (void)script_add('b', "s@next", "r60000");
    EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:cron s A"));
    EXPECT_INT(0, claim("9"));
    EXPECT_TRUE(script_reply->element[2]->integer > 0);
    EXPECT_TRUE(script_reply->element[2]->integer <= 60000000);
}

/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A worker offers itself with its claim, and a lone job is handed to it. What
 * becomes of both the random model compares as well. */

static redisContext *heard;

static void hear(const char *worker)
{
    heard = redisConnectUnix(redis_socket(script_proc));
    EXPECT_TRUE(heard != NULL && heard->err == 0);
    freeReplyObject(redisCommand(heard, "SUBSCRIBE weir:wake:%s", worker));
}

/* What came first; its bytes. */
static redisReply *first_message(void)
{
    void *reply = NULL;

    EXPECT_INT(REDIS_OK, redisGetReply(heard, &reply));
    return reply;
}

static const char *claim_as(const char *worker, const char *flags,
                            const char *number)
{
    const char *words[] = {
        "9",    "9000", "1000", worker, flags, "delay", "0123456789abcdef",
        number, NULL};

    return script_run(&weir__script_delay_claim,
                      "wait run lease ids meta idle held due", words);
}

/* w1 has offered itself, and somebody hears what it is told. */
static void offer(void)
{
    script_server = "0123456789abcdef";
    (void)claim_as("w1", "0", "77");
    (void)script_text("HSET weir:{t}:meta claimed 41 returned 41");
}

static const char *stored_offer(void)
{
    const char *text = script_text("HGET weir:{t}:meta offer");

    return text == NULL ? "none" : text;
}

static bool is_handed(char letter)
{
    char id[2] = {letter, '\0'};

    EXPECT_STR("1", script_add_one(letter, id, "r0"));
    return redis_int(script_proc, "ZCARD weir:{t}:run") == 1;
}

TEST(a_lone_job_is_handed_to_who_offered_itself)
{
    redisReply *reply;
    char node[20], server[20];
    long long token, due, time_us, age_us, number, revision;
    int len = 0;

    offer();
    hear("w1");
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    reply = first_message();
    EXPECT_INT(8, sscanf(reply->element[2]->str,
                         "t %16s %lld %lld %lld %lld %lld %lld %16s W1%n", node,
                         &token, &due, &time_us, &age_us, &number, &revision,
                         server, &len));
    EXPECT_STR("aaaaaaaaaaaa0000", node);
    EXPECT_INT(42, token);
    EXPECT_INT(due, time_us / 1000);
    EXPECT_TRUE(age_us > 0 && age_us < 30000000);
    EXPECT_INT(77, number);
    EXPECT_INT(0, revision);
    EXPECT_STR("0123456789abcdef", server);
    EXPECT_INT(redis_int(script_proc, "STRLEN weir:{t}:p:aaaaaaaaaaaa"),
               (long long)reply->element[2]->len - len + 2);
    freeReplyObject(reply);
    EXPECT_STR("aaaaaaaaaaaa0000 42",
               script_text("ZRANGE weir:{t}:run 0 -1 WITHSCORES"));
    EXPECT_STR("42", script_text("ZRANGE weir:{t}:lease 0 -1"));
    EXPECT_STR("42", script_text("HKEYS weir:{t}:held"));
    EXPECT_STR("none", stored_offer());
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait weir:{t}:idle"));
    EXPECT_INT(1, script_stat("added"));
    EXPECT_INT(1, script_stat("running"));
    redisFree(heard);
}

TEST(a_repeat_of_an_add_hands_nothing_over)
{
    offer();
    hear("w1");
    EXPECT_TRUE(is_handed('a'));
    (void)claim_as("w1", "0", "78");
    script_number--;
    EXPECT_STR("0", script_add_one('a', "a", "r0"));
    EXPECT_STR("0 0 0", script_add_one('b', "a", "r0"));
    EXPECT_CONTAINS(" 78 ", stored_offer());
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:run"));
    redisFree(heard);
}

TEST(who_does_not_hear_of_a_job_is_not_handed_it)
{
    offer();
    EXPECT_TRUE(!is_handed('a'));
    EXPECT_STR("none", stored_offer());
    EXPECT_STR("42 42", script_text("HMGET weir:{t}:meta claimed returned"));
    EXPECT_STR("aaaaaaaaaaaa0000", script_text("ZRANGE weir:{t}:wait 0 -1"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:run weir:{t}:lease "
                                         "weir:{t}:held"));
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    EXPECT_STR("43", script_text("ZRANGE weir:{t}:lease 0 -1"));
}

TEST(nothing_overtakes_a_job_that_is_due)
{
    offer();
    hear("w1");
    EXPECT_STR("1", script_text("ZADD weir:{t}:wait 5 bbbbbbbbbbbb0000"));
    EXPECT_TRUE(!is_handed('c'));
    EXPECT_CONTAINS(" 77 ", stored_offer());
    (void)script_text("DEL weir:{t}:wait");
    EXPECT_TRUE(is_handed('d'));
    redisFree(heard);
}

TEST(nothing_overtakes_a_job_of_a_mixed_pack_that_is_due)
{
    offer();
    hear("w1");
    (void)script_text("HSET weir:{t}:meta mixed 2");
    (void)script_text("ZADD weir:{t}:wait 35184372088837 bbbbbbbbbbbb0001");
    EXPECT_TRUE(!is_handed('a'));
    (void)script_text("DEL weir:{t}:wait");
    (void)script_text("ZADD weir:{t}:wait 50184372088837 bbbbbbbbbbbb0001");
    EXPECT_TRUE(is_handed('c'));
    redisFree(heard);
}

TEST(a_job_is_handed_over_only_where_a_claim_would_be_given_it)
{
    offer();
    hear("w1");
    script_server = "";
    EXPECT_TRUE(!is_handed('a'));
    (void)script_text("DEL weir:{t}:wait");
    script_server = "1123456789abcdef";
    EXPECT_TRUE(!is_handed('b'));
    (void)script_text("DEL weir:{t}:wait");
    script_server = "0123456789abcdef";
    (void)script_text("HSET weir:{t}:meta paused 1");
    EXPECT_TRUE(!is_handed('c'));
    (void)script_text("DEL weir:{t}:wait");
    (void)script_text("HDEL weir:{t}:meta paused");
    EXPECT_STR("1", script_add_one('d', "d", "r50000"));
    EXPECT_CONTAINS(" 77 ", stored_offer());
    EXPECT_TRUE(is_handed('e'));
    redisFree(heard);
}

TEST(a_job_waits_where_a_claim_would_mend_what_is_stored)
{
    static const char *const counts[] = {"x", "007", "-1", "1.5",
                                         "40000000000000000"};
    static const char *const offers[] = {"x", "9 9 w1", "1 2 3 ", "a b c d"};

    offer();
    hear("w1");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        (void)redis_int(script_proc, "HSET weir:{t}:meta claimed %s",
                        counts[i]);
        EXPECT_TRUE(!is_handed((char)('a' + i)));
        (void)script_text("DEL weir:{t}:wait");
    }
    (void)script_text("HSET weir:{t}:meta claimed 41");
    for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++) {
        (void)redis_int(script_proc, "HSET weir:{t}:meta offer %s", offers[i]);
        EXPECT_TRUE(!is_handed((char)('h' + i)));
        (void)script_text("DEL weir:{t}:wait");
    }
    redisFree(heard);
}

TEST(a_job_waits_where_runs_or_leases_cannot_be_kept)
{
    offer();
    hear("w1");
    script_poison("lease");
    EXPECT_STR("1", script_add_one('a', "a", "r0"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    (void)script_text("DEL weir:{t}:lease");
    (void)script_text("DEL weir:{t}:wait");
    script_poison("run");
    EXPECT_STR("1", script_add_one('b', "b", "r0"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    (void)script_text("DEL weir:{t}:run");
    (void)script_text("DEL weir:{t}:wait");
    script_poison("held");
    EXPECT_TRUE(is_handed('c'));
    redisFree(heard);
}

/* --- offers -------------------------------------------------------------- */

TEST(the_last_offer_counts_until_its_worker_claims_otherwise)
{
    offer();
    EXPECT_CONTAINS("9000 77 ", stored_offer());
    (void)claim_as("w2", "0", "5");
    EXPECT_CONTAINS("9000 5 ", stored_offer());
    (void)claim_as("w1", "0", NULL);
    EXPECT_CONTAINS(" w2", stored_offer());
    (void)claim_as("", "0", NULL);
    EXPECT_CONTAINS(" w2", stored_offer());
    (void)claim_as("w2", "2", NULL);
    EXPECT_STR("none", stored_offer());
}

TEST(who_is_given_jobs_withdraws_its_offer)
{
    offer();
    EXPECT_STR("1", script_add('a', "x", "r0"));
    (void)claim_as("w1", "0", "78");
    EXPECT_STR("none", stored_offer());
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:run"));
}

TEST(nobody_offers_itself_while_the_topic_is_paused)
{
    offer();
    (void)script_text("HSET weir:{t}:meta paused 1");
    (void)claim_as("w1", "0", "78");
    EXPECT_STR("none", stored_offer());
}

TEST(a_worker_offers_itself_on_a_full_server)
{
    offer();
    EXPECT_STR("OK", script_text("CONFIG SET maxmemory 1"));
    (void)claim_as("w1", "0", "78");
    EXPECT_STR("OK", script_text("CONFIG SET maxmemory 0"));
    EXPECT_CONTAINS(" 78 ", stored_offer());
}

/* --- offers that come with a verdict -------------------------------------- */

/* The job `letter` is done that was handed to w1, under this token; it offers
 * itself as number 79. */
static const char *done_as(char letter, const char *token, const char *own)
{
    char node[17] = {0};

    memset(node, letter, 12);
    memcpy(node + 12, "0000", 4);
    script_begin(&weir__script_delay_settle_one, "run lease ids meta held");
    script_pack_key(letter);
    script_key("wait");
    script_key("idle");
    script_arg(node);
    script_arg(token);
    script_arg("0");
    script_arg("");
    script_arg("1");
    script_arg("9000");
    script_arg("79");
    script_arg("w1");
    script_arg(own);
    script_arg("2");
    return script_call();
}

static const char *done(char letter, const char *token)
{
    return done_as(letter, token, "0123456789abcdef");
}

/* `a` is handed to w1, under the token 42. */
static void hand_over(void)
{
    offer();
    hear("w1");
    EXPECT_TRUE(is_handed('a'));
}

static void expect_nothing_runs(void)
{
    EXPECT_INT(0,
               redis_int(script_proc, "EXISTS weir:{t}:run weir:{t}:lease "
                                      "weir:{t}:held weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(1, script_stat("done"));
    redisFree(heard);
}

TEST(who_is_done_with_a_job_offers_itself_again)
{
    hand_over();
    EXPECT_STR("1 -1", done('a', "42"));
    EXPECT_CONTAINS("9000 79 ", stored_offer());
    EXPECT_STR("w1 inf", script_text("ZRANGE weir:{t}:idle 0 -1 WITHSCORES"));
    expect_nothing_runs();
    hear("w1");
    EXPECT_TRUE(is_handed('b'));
    EXPECT_STR("none", stored_offer());
    redisFree(heard);
}

TEST(an_offer_with_a_verdict_tells_when_more_is_due)
{
    long long left_us = 0, due_ms;

    hand_over();
    EXPECT_STR("1", script_add_one('b', "b", "r50000"));
    EXPECT_INT(1, sscanf(done('a', "42"), "1 %lld", &left_us));
    EXPECT_TRUE(left_us > 20000000 && left_us <= 50000000);
    due_ms = redis_int(script_proc, "EVAL %s 1 weir:{t}:wait",
                       "return tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, "
                       "'WITHSCORES')[2])");
    EXPECT_INT(due_ms,
               strtoll(script_text("ZSCORE weir:{t}:idle w1"), NULL, 10));
    EXPECT_CONTAINS(" 79 ", stored_offer());
    expect_nothing_runs();
}

TEST(an_offer_with_a_verdict_tells_when_a_lease_ends)
{
    long long left_us = 0;

    hand_over();
    (void)script_text("ZADD weir:{t}:lease 9999999999999 7");
    EXPECT_INT(1, sscanf(done('a', "42"), "1 %lld", &left_us));
    EXPECT_TRUE(left_us > 1000000000);
    EXPECT_STR("w1 10000000000000",
               script_text("ZRANGE weir:{t}:idle 0 -1 WITHSCORES"));
    redisFree(heard);
}

/* What a claim would do first, a claim does. */
TEST(who_has_something_to_claim_offers_itself_with_no_verdict)
{
    static const char *const before[] = {
        "ZADD weir:{t}:wait 5 bbbbbbbbbbbb0000",
        "ZADD weir:{t}:lease 5 7",
        "HSET weir:{t}:meta paused 1",
        "HSET weir:{t}:meta server 1123456789abcdef",
        "HDEL weir:{t}:meta server",
        "SET weir:{t}:wait x",
        "SET weir:{t}:idle x"};
    static const char *const after[] = {
        "DEL weir:{t}:wait",
        "DEL weir:{t}:lease",
        "HDEL weir:{t}:meta paused",
        "HSET weir:{t}:meta server 0123456789abcdef",
        "HSET weir:{t}:meta server 0123456789abcdef",
        "DEL weir:{t}:wait",
        "DEL weir:{t}:idle"};
    char token[8];

    hand_over();
    for (int i = 0; i < 7; i++) {
        (void)script_text(before[i]);
        (void)snprintf(token, sizeof(token), "%d", 42 + i);
        EXPECT_STR("1 0", done((char)('a' + i), token));
        EXPECT_STR("none", stored_offer());
        (void)script_text(after[i]);
        EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:idle"));
        (void)claim_as("w1", "0", "78");
        EXPECT_TRUE(is_handed((char)('b' + i)));
    }
    EXPECT_STR("1 -1", done('h', "49"));
    redisFree(heard);
}

TEST(who_has_something_of_a_mixed_pack_to_claim_claims_it)
{
    hand_over();
    (void)script_text("HSET weir:{t}:meta mixed 2");
    (void)script_text("ZADD weir:{t}:wait 35184372088837 bbbbbbbbbbbb0001");
    EXPECT_STR("1 0", done('a', "42"));
    EXPECT_STR("none", stored_offer());
    (void)script_text("DEL weir:{t}:wait");
    (void)claim_as("w1", "0", "78");
    EXPECT_TRUE(is_handed('c'));
    (void)script_text("ZADD weir:{t}:wait 45184372088832 bbbbbbbbbbbb0001");
    EXPECT_CONTAINS("1 ", done('c', "43"));
    EXPECT_STR("w1 10000000000000",
               script_text("ZRANGE weir:{t}:idle 0 -1 WITHSCORES"));
    EXPECT_CONTAINS(" 79 ", stored_offer());
    redisFree(heard);
}

/* As of a call that is sent again: the worker may have a job by now. */
TEST(a_verdict_that_is_refused_offers_nobody)
{
    hand_over();
    EXPECT_STR("0 0 0", done('a', "41"));
    EXPECT_STR("none", stored_offer());
    EXPECT_STR("1 -1", done('a', "42"));
    (void)script_text("HDEL weir:{t}:meta offer");
    EXPECT_STR("0 0 0", done('a', "42"));
    EXPECT_STR("none", stored_offer());
    expect_nothing_runs();
}

TEST(a_verdict_adds_nobody_to_a_thousand_sleepers)
{
    hand_over();
    (void)redis_int(script_proc, "EVAL %s 1 weir:{t}:idle",
                    "for i = 1, 1000 do redis.call('ZADD', KEYS[1], 1, i) end "
                    "return 1");
    EXPECT_STR("1 0", done('a', "42"));
    EXPECT_STR("none", stored_offer());
    redisFree(heard);
}

TEST(a_worker_offers_itself_with_a_verdict_on_a_full_server)
{
    hand_over();
    EXPECT_STR("OK", script_text("CONFIG SET maxmemory 1"));
    EXPECT_STR("1 -1", done('a', "42"));
    EXPECT_STR("OK", script_text("CONFIG SET maxmemory 0"));
    EXPECT_CONTAINS(" 79 ", stored_offer());
    redisFree(heard);
}

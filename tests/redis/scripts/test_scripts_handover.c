/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
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

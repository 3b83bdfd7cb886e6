/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `rate` and `parallel` of a topic: how many jobs a claim gets, and when the
 * next one is worth while. */

static long long reply_int(size_t at)
{
    return script_reply->element[at]->integer;
}

static const char *call_as(const char *worker, const char *room,
                           const char *limits, const char *revision)
{
    const char *words[] = {room, "9000", "1000", worker, "1",      "delay",
                           "",   "",     "",     limits, revision, NULL};

    return script_run(&weir__script_delay_claim,
                      "wait run lease ids meta idle held due", words);
}

/* Jobs that came to this worker, which says these limits (NULL: nothing). */
static long long claim_as(const char *worker, const char *room,
                          const char *limits, const char *revision)
{
    (void)call_as(worker, room, limits, revision);
    EXPECT_INT(REDIS_REPLY_ARRAY, script_reply->type);
    (void)snprintf(script_token, sizeof(script_token), "%lld", reply_int(1));
    return reply_int(3);
}

static long long claim(const char *room, const char *limits)
{
    return claim_as("w1", room, limits, "0");
}

static void set(const char *name, const char *value)
{
    const char *words[] = {"delay", name, value, NULL};

    (void)script_run(&weir__script_store_set, "options ids meta wait run dead",
                     words);
}

static const char *limits_stored(void)
{
    const char *text = script_text("HGET weir:{t}:meta limits");

    return text == NULL ? "none" : text;
}

/* Somebody may wake it. */
static bool is_idle(const char *worker)
{
    const char *score = script_text("ZSCORE weir:{t}:idle w1");

    EXPECT_STR("w1", worker);
    return score != NULL && strcmp(score, "-inf") != 0;
}

/* The server's clock says so much more from here on, as the topic sees it. */
static void pass_us(long long us)
{
    long long full = 0, visit = 0;
    const char *text = script_text("HGET weir:{t}:meta bucket");
    char earlier[64];

    EXPECT_INT(2, sscanf(text, "%lld %lld", &full, &visit));
    (void)snprintf(earlier, sizeof(earlier), "%lld %lld", full - us,
                   visit > us ? visit - us : 0);
    (void)redis_int(script_proc, "HSET weir:{t}:meta bucket %s", earlier);
}

TEST(a_burst_is_claimed_and_then_a_token_at_a_time)
{
    (void)script_add('a', "50", "r0");
    EXPECT_INT(20, claim("256", "1/h burst 20|"));
    EXPECT_INT(0, claim("256", "1/h burst 20|"));
    EXPECT_TRUE(reply_int(2) > 0);
    pass_us(INT64_C(3600000000));
    EXPECT_INT(1, claim("256", "1/h burst 20|"));
    EXPECT_INT(29, script_stat("ready"));
}

TEST(who_waits_for_a_token_is_told_when_it_comes_and_is_not_woken)
{
    (void)script_add('a', "5", "r0");
    EXPECT_INT(1, claim("256", "1/h|"));
    EXPECT_TRUE(reply_int(2) > 0 && reply_int(2) <= 9001000); /* the lease */
    EXPECT_TRUE(!is_idle("w1"));
    (void)script_settle_all("a0000");
    (void)script_text("DEL weir:{t}:lease");
    EXPECT_INT(0, claim("256", "1/h|"));
    EXPECT_TRUE(reply_int(2) > 3590000000 && reply_int(2) <= 3600000000);
    EXPECT_TRUE(!is_idle("w1"));
}

TEST(tokens_gather_up_to_the_burst)
{
    (void)script_add('a', "50", "r0");
    EXPECT_INT(3, claim("256", "1/h burst 3|"));
    pass_us(INT64_C(36000000000) * 10);
    EXPECT_INT(3, claim("256", "1/h burst 3|"));
    EXPECT_INT(0, claim("256", "1/h burst 3|"));
}

TEST(without_a_burst_as_many_gather_as_come_in_a_tenth_of_a_second)
{
    (void)script_add('a', "200", "r0");
    EXPECT_INT(100, claim("256", "1000/s|"));
}

TEST(a_clock_that_goes_back_stops_nothing_for_long)
{
    (void)script_add('a', "50", "r0");
    EXPECT_INT(2, claim("256", "1/h burst 2|"));
    pass_us(INT64_C(-100000000000));
    EXPECT_INT(0, claim("256", "1/h burst 2|"));
    pass_us(INT64_C(3600000000));
    EXPECT_INT(1, claim("256", "1/h burst 2|"));
}

TEST(no_more_run_than_may)
{
    (void)script_add('a', "50", "r0");
    EXPECT_INT(4, claim("256", "|4"));
    EXPECT_INT(0, claim("256", "|4"));
    EXPECT_TRUE(is_idle("w1"));
    EXPECT_INT(0, claim_as("w2", "1", "|4", "0"));
    EXPECT_INT(1, claim_as("w2", "1", "|5", "0"));
}

TEST(a_counter_that_somebody_spoiled_stops_nothing_for_ever)
{
    (void)script_add('a', "50", "r0");
    (void)script_text("HINCRBY weir:{t}:meta claimed 1000");
    EXPECT_INT(4, claim("256", "|4"));
    (void)script_text("HINCRBY weir:{t}:meta settled 1000000");
    EXPECT_INT(1, claim("256", "|2")); /* one node runs at least */
}

TEST(who_waits_for_others_to_end_is_woken_when_one_does)
{
    char token[24];

    (void)script_add('a', "1", "r0");
    EXPECT_INT(1, claim("1", "|1"));
    (void)snprintf(token, sizeof(token), "%s", script_token);
    (void)script_add('b', "1", "r0");
    EXPECT_INT(0, claim("1", "|1"));
    (void)snprintf(script_token, sizeof(script_token), "%s", token);
    script_settle_begin();
    script_settle_node("a0000", NULL, 0);
    script_settle_wakes();
    (void)script_settle('a', 0, "10");
    EXPECT_TRUE(!is_idle("w1"));
}

TEST(who_waits_for_others_to_end_is_woken_when_one_is_deleted)
{
    (void)script_add('a', "x", "r0");
    EXPECT_INT(1, claim("1", "|1"));
    (void)script_add('b', "1", "r0");
    EXPECT_INT(0, claim("1", "|1"));
    script_begin(&weir__script_delay_slot, "wait run ids meta");
    script_pack_key('a');
    script_key("dead");
    script_key("rec");
    script_key("idle");
    script_arg("delete");
    script_arg("x");
    script_arg("aaaaaaaaaaaa");
    script_arg("");
    EXPECT_CONTAINS("running", script_call());
    EXPECT_TRUE(!is_idle("w1"));
}

TEST(what_a_lease_gives_back_makes_room_and_brings_no_token)
{
    (void)script_add('a', "8", "r0");
    set("parallel", "2");
    set("rate", "4/h burst 4");
    EXPECT_STR("a0001+0", script_crash("9"));
    EXPECT_STR("a0203+0", script_claim("9", "9000"));
    (void)script_settle_all("a0203");
    EXPECT_STR("", script_claim("9", "9000"));
    EXPECT_INT(6, script_stat("waiting"));
}

TEST(what_is_stored_holds_for_who_says_nothing)
{
    set("rate", "1/h");
    EXPECT_STR("1/h|", limits_stored());
    (void)script_add('a', "8", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    EXPECT_STR("", script_claim("9", "9000"));
    set("rate", "none");
    EXPECT_STR("none", limits_stored());
    EXPECT_STR("a0101+0 a0203+0 a0407+0", script_claim("9", "9000"));
}

TEST(what_a_worker_says_gives_way_to_what_is_stored_and_it_does_not_know)
{
    (void)script_add('a', "8", "r0");
    EXPECT_INT(2, claim_as("w1", "9", "|2", "0"));
    set("parallel", "3");
    EXPECT_INT(1, claim_as("w1", "9", "|2", "0"));
    EXPECT_STR("|3", limits_stored());
    EXPECT_INT(1, claim_as("w1", "9", "1/s burst 9|4", "1"));
    EXPECT_STR("1/s burst 9|4", limits_stored());
    set("parallel", "");
    EXPECT_STR("1/s burst 9|", limits_stored());
}

TEST(what_was_taken_away_is_not_written_by_who_does_not_know_yet)
{
    (void)script_add('a', "8", "r0");
    EXPECT_INT(2, claim_as("w1", "9", "|2", "0"));
    set("parallel", "none");
    EXPECT_STR("none", limits_stored());
    EXPECT_INT(0, claim_as("w1", "9", "|2", "0"));
    EXPECT_STR("none", limits_stored());
    EXPECT_INT(6, claim_as("w1", "9", "", "1"));
}

TEST(who_has_no_limits_ends_those_that_others_left)
{
    (void)script_add('a', "8", "r0");
    EXPECT_INT(2, claim_as("w1", "9", "|2", "0"));
    EXPECT_STR("|2", limits_stored());
    EXPECT_INT(6, claim_as("w2", "9", "", "0"));
    EXPECT_STR("none", limits_stored());
}

TEST(a_topic_with_limits_hands_nothing_over)
{
    const char *words[] = {
        "9",  "9000", "1000", "w1", "0", "delay", "0123456789abcdef",
        "77", NULL};

    (void)script_run(&weir__script_delay_claim,
                     "wait run lease ids meta idle held due", words);
    EXPECT_TRUE(script_text("HGET weir:{t}:meta offer") != NULL);
    set("parallel", "2");
    EXPECT_TRUE(script_text("HGET weir:{t}:meta offer") == NULL);
    (void)script_run(&weir__script_delay_claim,
                     "wait run lease ids meta idle held due", words);
    EXPECT_TRUE(script_text("HGET weir:{t}:meta offer") == NULL);
}

static long long limited(void)
{
    script_begin(&weir__script_delay_stats, "wait meta dead relay due lease");
    script_arg("1000");
    (void)script_call();
    for (size_t i = 0; i + 1 < script_reply->elements; i += 2)
        if (strcmp(script_reply->element[i]->str, "limited") == 0)
            return reply_int(i + 1);
    return 0;
}

TEST(stats_say_for_what_ready_jobs_wait)
{
    (void)script_add('a', "8", "r0");
    EXPECT_INT(0, limited());
    EXPECT_INT(2, claim("9", "2/h burst 2|"));
    while (script_stat("ready") < 6)
        continue;
    EXPECT_INT(1, limited());
    EXPECT_INT(0, claim("9", "|2"));
    EXPECT_INT(2, limited());
    EXPECT_INT(6, claim("9", "|9"));
    EXPECT_INT(0, limited());
}

TEST(what_is_no_rate_is_no_limit)
{
    static const char *const texts[] = {"x|", "1/|", "/s|", "1/y|", "0/s|",
                                        "|x", "|0",  "|",   "x"};

    (void)script_add('a', "200", "r0");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)redis_int(script_proc, "HSET weir:{t}:meta limits %s", texts[i]);
        EXPECT_INT(2, claim("2", NULL));
    }
}

TEST(limits_that_are_none_are_refused)
{
    static const char *const texts[] = {"x|",    "1/|", "0/s|",      "|x",
                                        "|1|x|", "x",   "1/s|1||1|x"};

    (void)script_add('a', "1", "r0");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        EXPECT_CONTAINS("ERR the limits are not",
                        call_as("w1", "1", texts[i], "0"));
}

TEST(limits_hold_on_a_server_that_is_full)
{
    (void)script_add('a', "8", "r0");
    EXPECT_STR("OK", script_text("CONFIG SET maxmemory 1"));
    EXPECT_INT(2, claim("9", "2/h burst 2|5"));
    EXPECT_INT(0, claim("9", "2/h burst 2|5"));
    EXPECT_INT(0, claim("9", "2/h burst 2|1"));
    EXPECT_STR("OK", script_text("CONFIG SET maxmemory 0"));
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/redis/scripts/script_fixture.h"

/* Who has a job, and who tells that he is there. */

/* --- show of a running job ------------------------------------------------ */

static void show(char letter, const char *verb)
{
    char seq[13] = {letter, letter, letter, letter, letter, letter,
                    letter, letter, letter, letter, letter, letter};

    script_begin(&weir__script_delay_slot, "wait run ids meta");
    script_pack_key(letter);
    script_key("dead");
    script_key("rec");
    script_key("idle");
    script_key("due");
    script_key("absent");
    script_key("lease");
    script_key("held");
    script_arg(verb);
    script_arg("x");
    script_arg(seq);
    script_arg("");
    (void)script_call();
    EXPECT_INT(REDIS_REPLY_ARRAY, script_reply->type);
}

static long long number_at(size_t i)
{
    EXPECT_TRUE(i < script_reply->elements);
    return script_reply->element[i]->integer;
}

/* By the server's clock. */
static long long now_ms(void)
{
    return redis_int(script_proc, "EVAL %s 0",
                     "return redis.call('TIME')[1] * 1000");
}

static void expect_shown(const char *worker)
{
    long long off_ms = now_ms() - number_at(5);

    EXPECT_STR("running", script_reply->element[0]->str);
    EXPECT_TRUE(number_at(4) > 0 && number_at(4) <= 3000000);
    EXPECT_TRUE(off_ms > -1100 && off_ms < 60000);
    EXPECT_STR(worker, script_reply->element[6]->str);
}

TEST(a_running_job_is_shown_with_its_worker_and_lease)
{
    (void)script_add('a', "x", "r0");
    show('a', "show");
    EXPECT_STR("ready", script_reply->element[0]->str);
    EXPECT_INT(4, script_reply->elements);
    EXPECT_STR("a0000+0", script_claim("9", "3000000"));
    show('a', "show");
    EXPECT_INT(7, script_reply->elements);
    expect_shown("w1");
    show('a', "delete");
    EXPECT_INT(4, script_reply->elements);
}

/* A lease of state 1 and more, of a suspect. */
TEST(a_suspect_is_shown_with_its_worker_as_well)
{
    (void)script_add('a', "x", "r0");
    EXPECT_STR("a0000+0", script_crash("9"));
    EXPECT_STR("a0000+1", script_claim("9", "3000000"));
    show('a', "show");
    expect_shown("w1");
}

TEST(a_job_that_was_handed_over_is_shown_with_its_worker)
{
    redisContext *heard = redisConnectUnix(redis_socket(script_proc));

    EXPECT_TRUE(heard != NULL && heard->err == 0);
    freeReplyObject(redisCommand(heard, "SUBSCRIBE weir:wake:w2@01234567"));
    script_server = "0123456789abcdef";
    script_begin(&weir__script_delay_claim,
                 "wait run lease ids meta idle held due");
    script_arg("9");
    script_arg("3000000");
    script_arg("1000");
    script_arg("w2@01234567");
    script_arg("0");
    script_arg("delay");
    script_arg(script_server);
    script_arg("77");
    (void)script_call();
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    show('a', "show");
    expect_shown("w2@01234567");
    redisFree(heard);
}

/* What an earlier version, or somebody else, wrote there, or nothing. */
TEST(a_job_whose_worker_is_not_known_is_shown_without)
{
    static const char *const spoils[] = {
        "DEL weir:{t}:held",
        "SET weir:{t}:held x",
        "EVAL %s 1 weir:{t}:held",
    };

    for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
        (void)script_text("FLUSHALL");
        (void)script_add('a', "x", "r0");
        EXPECT_STR("a0000+0", script_claim("9", "3000000"));
        (void)redis_text(script_proc, spoils[i],
                         "local t = redis.call('HKEYS', KEYS[1])[1] "
                         "return redis.call('HSET', KEYS[1], t, "
                         "cmsgpack.pack({ 'aaaaaaaaaaaa0000', 5 }))");
        show('a', "show");
        EXPECT_STR("running", script_reply->element[0]->str);
        EXPECT_TRUE(number_at(4) > 0);
        EXPECT_INT(0, number_at(5));
        EXPECT_STR("", script_reply->element[6]->str);
    }
}

/* --- workers -------------------------------------------------------------- */

static const char *beat(const char *worker)
{
    const char *words[] = {worker, "what", NULL};

    return script_run(&weir__script_store_beat, "workers", words);
}

/* Who is there; each is told with the time and "what". */
static size_t there(void)
{
    const char *none[] = {NULL};

    (void)script_run(&weir__script_store_workers, "workers", none);
    EXPECT_INT(REDIS_REPLY_ARRAY, script_reply->type);
    EXPECT_INT(0, script_reply->elements % 3);
    return script_reply->elements / 3;
}

/* A worker that told something so long ago; in the future where below 0. */
static void told(const char *worker, long long ago_ms)
{
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:workers %s %lld",
                            "local t = redis.call('TIME') "
                            "return redis.call('HSET', KEYS[1], ARGV[1], "
                            "string.format('%013.0f what', t[1] * 1000 + "
                            "math.floor(t[2] / 1000) - ARGV[2]))",
                            worker, ago_ms));
}

TEST(who_told_something_is_there)
{
    EXPECT_INT(0, there());
    EXPECT_STR("1", beat("w1 0001"));
    EXPECT_STR("1", beat("w1 0001"));
    EXPECT_INT(1, there());
    EXPECT_STR("w1 0001", script_reply->element[0]->str);
    EXPECT_TRUE(now_ms() - number_at(1) < 60000);
    EXPECT_TRUE(now_ms() - number_at(1) > -1100);
    EXPECT_STR("what", script_reply->element[2]->str);
    EXPECT_STR("1", beat("w1 0002"));
    EXPECT_INT(2, there());
}

TEST(who_told_nothing_for_15_s_is_gone)
{
    told("just", 3000);
    told("late", 15001);
    told("early", -60000);
    (void)redis_int(script_proc, "HSET weir:{t}:workers none x old 12 empty "
                                 "\"\" huge 9999999999999999999999x");
    EXPECT_INT(1, there());
    EXPECT_STR("just", script_reply->element[0]->str);
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:workers"));
}

TEST(those_that_live_remove_the_dead)
{
    char name[16];

    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof(name), "dead%d", i);
        told(name, 20000);
    }
    told("other", 1000);
    for (int i = 0; i < 1000; i++)
        if (redis_int(script_proc, "HLEN weir:{t}:workers") != 2)
            (void)beat("w1");
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:workers"));
    EXPECT_INT(2, there());
}

TEST(a_key_of_another_type_is_left_alone)
{
    script_poison("workers");
    EXPECT_CONTAINS("WRONGTYPE", beat("w1"));
    EXPECT_STR("string", script_text("TYPE weir:{t}:workers"));
}

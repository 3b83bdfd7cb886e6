/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/redis/scripts/script_fixture.h"

/* Who sleeps, and who is woken for what. */

/* A worker that hears its wake-ups until it is freed. */
static redisContext *listen_as(const char *worker)
{
    redisContext *heard = redisConnectUnix(redis_socket(script_proc));
    redisReply *reply;

    EXPECT_TRUE(heard != NULL && heard->err == 0);
    reply = redisCommand(heard, "SUBSCRIBE weir:wake:%s", worker);
    EXPECT_TRUE(reply != NULL);
    freeReplyObject(reply);
    return heard;
}

/* Claim as a worker; `flags`: 1 registered as idle, 2 with jobs in hand, 4 slow
 * ones. */
static const char *claim_as(const char *worker, const char *room,
                            const char *flags)
{
    script_begin(&weir__script_delay_claim,
                 "wait run lease ids meta idle held due");
    script_arg(room);
    script_arg("3600000"); /* its end is behind all due times */
    script_arg("1000");
    script_arg(worker);
    script_arg(flags);
    script_arg("delay");
    (void)script_call();
    return script_text("ZRANGE weir:{t}:idle 0 -1");
}

/* When a job is due that is far, and before the end of a lease. */
static long long far_ms;

static const char *far(void)
{
    static char when[24];

    far_ms = 600000 + redis_int(script_proc, "EVAL %s 0",
                                "return redis.call('TIME')[1] * 1000");
    (void)snprintf(when, sizeof(when), "a%lld", far_ms);
    return when;
}

TEST(a_claim_that_leaves_due_jobs_wakes_the_next_idle_worker)
{
    redisContext *one, *other;

    one = listen_as("w2");
    other = listen_as("w3");
    EXPECT_STR("w2", claim_as("w2", "1", "0"));
    EXPECT_STR("w2 w3", claim_as("w3", "1", "0"));
    EXPECT_STR("3", script_add('a', "3", "r0"));
    EXPECT_STR("w2", script_text("ZRANGE weir:{t}:idle 0 -1"));
    EXPECT_STR("", claim_as("w3", "1", "0"));
    redisFree(one);
    redisFree(other);
}

TEST(a_full_claim_leaves_the_next_due_time_to_another_worker)
{
    redisContext *other;

    other = listen_as("w2");
    EXPECT_STR("1", script_add('a', "1", far()));
    EXPECT_STR("1", script_add('b', "1", "r0"));
    (void)script_text("ZADD weir:{t}:idle inf w2");
    EXPECT_STR("", claim_as("w9", "1", "0"));
    redisFree(other);
}

TEST(a_worker_with_jobs_in_hand_is_woken_after_those_without)
{
    redisContext *one, *other;

    one = listen_as("w2");
    other = listen_as("w3");
    EXPECT_STR("1", script_add('a', "1", "r0"));
    EXPECT_STR("w3", claim_as("w3", "5", "0"));
    EXPECT_STR("w3 w2", claim_as("w2", "5", "0"));
    EXPECT_STR("1", script_add('b', "1", "r0"));
    EXPECT_STR("w3", script_text("ZRANGE weir:{t}:idle 0 -1"));
    EXPECT_STR("w3", claim_as("w2", "1", "2"));   /* full */
    EXPECT_STR("w3", claim_as("w3", "5", "3"));   /* nothing this time */
    (void)script_text("ZADD weir:{t}:idle 1 w1"); /* it should be here by now */
    EXPECT_STR("1", script_add('c', "1", "r0"));
    EXPECT_STR("w1", script_text("ZRANGE weir:{t}:idle 0 -1"));
    redisFree(one);
    redisFree(other);
}

/* The names are in no script: they are those of the keys. */
TEST(a_wake_up_has_prefix_and_topic_of_the_keys)
{
#define KEY(name) "a:b-12.c:{t:u}:" name " "
    redisContext *heard = redisConnectUnix(redis_socket(script_proc));
    redisContext *asks = redisConnectUnix(redis_socket(script_proc));
    redisReply *reply = redisCommand(heard, "SUBSCRIBE a:b-12.c:wake:w2");

    EXPECT_TRUE(reply != NULL);
    freeReplyObject(reply);
    (void)script_text("ZADD " KEY("idle") "inf w2");
    (void)script_text("ZADD " KEY("wait") "1 aaaaaaaaaaaa0000 "
                                          "1 bbbbbbbbbbbb0000");
    reply = redisCommand(asks,
                         "EVAL %s 8 " KEY("wait") KEY("run") KEY("lease")
                             KEY("ids") KEY("meta") KEY("idle") KEY("held")
                                 KEY("due") "1 9000 1000 w3 0 delay",
                         weir__script_delay_claim.text);
    EXPECT_TRUE(reply != NULL && reply->type == REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
    (void)script_text("PUBLISH a:b-12.c:wake:w2 nothing");
    EXPECT_INT(REDIS_OK, redisGetReply(heard, (void **)&reply));
    EXPECT_STR("t:u", reply->element[2]->str);
    freeReplyObject(reply);
    redisFree(asks);
    redisFree(heard);
#undef KEY
}

/* So many workers that are gone are registered. */
static void add_sleepers(long long count)
{
    (void)redis_int(script_proc, "EVAL %s 1 weir:{t}:idle %lld",
                    "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], 'inf', "
                    "'x' .. i) end return 1",
                    count);
}

TEST(each_message_of_a_push_wakes_a_worker)
{
    redisContext *workers[10];
    char name[8];

    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof(name), "w%d", i);
        workers[i] = listen_as(name);
        (void)redis_int(script_proc, "ZADD weir:{t}:idle inf %s", name);
    }
    script_begin(&weir__script_classic_push, "fifo ids meta options idle");
    script_arg("t");
    script_arg("sync");
    script_arg("0");
    for (int i = 0; i < 9; i++) {
        script_arg("");
        script_arg("r");
        script_arg("1");
    }
    (void)script_call();
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:idle"));
    for (int i = 0; i < 10; i++)
        redisFree(workers[i]);
}

TEST(a_wake_up_reaches_the_one_worker_that_lives)
{
    redisContext *live;

    live = listen_as("w2");
    add_sleepers(999);
    (void)script_text("ZADD weir:{t}:idle inf w2");
    EXPECT_STR("1", script_add('a', "1", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "ZCARD weir:{t}:idle"));
    redisFree(live);
}

TEST(sleepers_that_never_come_back_do_not_pile_up)
{
    add_sleepers(1000);
    (void)claim_as("w2", "1", "0");
    EXPECT_INT(1000, redis_int(script_proc, "ZCARD weir:{t}:idle"));
}

/* It would look each second, and jobs that are due then came late. */
TEST(a_worker_falls_asleep_on_a_full_server)
{
    EXPECT_STR("1", script_add('a', "1", "r60000"));
    EXPECT_STR("OK", script_text("CONFIG SET maxmemory 1"));
    EXPECT_STR("w2", claim_as("w2", "1", "0"));
}

/* --- who comes by itself -------------------------------------------------- */

/* Who comes when by itself, 2^45 less where it has jobs in hand. What is far is
 * written as 2000000000000. */
static const char *sleepers(void)
{
    return redis_text(
        script_proc, "EVAL %s 0 %lld",
        "local far, all = ARGV[1] + 0, redis.call('ZRANGE', 'weir:{t}:idle', "
        "0, -1, 'WITHSCORES') "
        "for i = 2, #all, 2 do "
        "  local from = all[i] - far "
        "  if from < -1e13 or from > -1e6 then "
        "    all[i] = string.format('%.0f', from + 2e12) "
        "  end "
        "end return table.concat(all, ' ')",
        far_ms);
}

TEST(of_workers_that_wait_for_one_moment_one_comes_at_it)
{
    EXPECT_STR("1", script_add('a', "1", far()));
    (void)claim_as("w1", "5", "0");
    EXPECT_INT(far_ms * 1000, script_reply->element[0]->integer +
                                  script_reply->element[2]->integer);
    (void)claim_as("w2", "5", "0");
    (void)claim_as("w3", "5", "4"); /* slow, with nothing in hand */
    EXPECT_INT((far_ms + 10) * 1000, script_reply->element[0]->integer +
                                         script_reply->element[2]->integer);
    EXPECT_STR("w1 2000000000000 w2 2000000000005 w3 2000000000010",
               sleepers());
    (void)claim_as("w1", "5", "1"); /* it is not behind itself */
    EXPECT_STR("w1 2000000000000 w2 2000000000005 w3 2000000000010",
               sleepers());
}

TEST(behind_one_that_is_late_or_gone_another_comes_at_the_moment)
{
    EXPECT_STR("1", script_add('a', "1", far()));
    (void)claim_as("w1", "5", "0");
    (void)claim_as("w2", "5", "0");
    EXPECT_STR("0", script_text("ZADD weir:{t}:idle 1 w1"));
    (void)claim_as("w2", "5", "1");
    EXPECT_STR("w1 1 w2 2000000000000", sleepers());
    (void)script_text("ZREM weir:{t}:idle w1 w2");
    (void)claim_as("w3", "5", "0");
    EXPECT_STR("w3 2000000000000", sleepers());
}

/* Of any number of workers. */
TEST(no_worker_comes_much_later_than_the_first)
{
    char name[8];

    EXPECT_STR("1", script_add('a', "1", far()));
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof(name), "w%03d", i);
        (void)claim_as(name, "5", "0");
    }
    EXPECT_INT(200, redis_int(script_proc, "ZCOUNT weir:{t}:idle %lld %lld",
                              far_ms, far_ms + 520));
}

TEST(a_worker_with_quick_jobs_in_hand_comes_at_the_moment)
{
    EXPECT_STR("1", script_add('a', "1", far()));
    EXPECT_STR("1", script_add('b', "1", "r0"));
    (void)claim_as("w1", "5", "0");
    (void)claim_as("w2", "5", "0");
    EXPECT_STR("w1 -33184372088832 w2 2000000000005", sleepers());
}

TEST(a_worker_with_slow_jobs_in_hand_leaves_the_moment_to_an_idle_one)
{
    redisContext *idle;

    idle = listen_as("w2");
    EXPECT_STR("1", script_add('a', "1", far()));
    EXPECT_STR("1", script_add('b', "1", "r0"));
    (void)script_text("ZADD weir:{t}:idle inf w2 inf w1");
    (void)claim_as("w1", "5", "5");
    EXPECT_STR("w1 -33184372088827", sleepers()); /* and w2 is woken */
    (void)claim_as("w2", "5", "4");
    (void)claim_as("w1", "5", "7");
    EXPECT_STR("w1 -33184372088827 w2 2000000000000", sleepers());
    redisFree(idle);
}

TEST(a_worker_with_slow_jobs_in_hand_comes_where_nobody_else_does)
{
    redisContext *one, *other;

    one = listen_as("w1");
    other = listen_as("w3");
    EXPECT_STR("1", script_add('a', "1", far()));
    EXPECT_STR("1", script_add('b', "1", "r0"));
    (void)script_text("ZADD weir:{t}:idle inf w1 inf x1"); /* x1 is gone */
    (void)claim_as("w1", "5", "5");
    EXPECT_STR("w1 -33184372088832", sleepers());
    EXPECT_INT(0, redis_int(script_proc, "ZADD weir:{t}:idle %lld w1",
                            far_ms - (1LL << 45) + 832));
    (void)claim_as("w3", "5", "6");
    EXPECT_STR("w3 -33184372088832 w1 -33184372088000", sleepers());
    redisFree(one);
    redisFree(other);
}

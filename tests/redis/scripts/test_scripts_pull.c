/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <string.h>

/* Jobs of a client that knows neither packs nor records: push adds them, pull
 * brings them, finish ends them. */

static const char keys[] = "wait run lease ids meta idle held due dead rec "
                           "options started absent";

/* `key` "": the job is in no lane. */
static void push(const char *id, const char *key, const char *priority)
{
    script_begin(&weir__script_delay_push, "wait ids meta idle options absent");
    script_arg("t");
    script_arg(id);
    script_arg("\x07");
    script_arg("r0");
    if (key[0] != '\0') {
        script_arg("key");
        script_arg(key);
        script_arg("priority");
        script_arg(priority);
    }
    EXPECT_CONTAINS("added", script_call());
}

/* Returns the ids of the jobs that came, in their order. */
static const char *pull(const char *room)
{
    static char ids[256];
    size_t len = 0;

    script_begin(&weir__script_delay_pull, keys);
    script_arg(room);
    script_arg("w1");
    script_arg("0");
    script_arg("");
    (void)script_call();
    EXPECT_INT(9, script_reply->elements);
    ids[0] = '\0';
    for (size_t i = 0; i < (size_t)script_reply->element[8]->elements; i++)
        len += (size_t)snprintf(
            ids + len, sizeof(ids) - len, "%s%s", i == 0 ? "" : " ",
            script_reply->element[8]->element[i]->element[1]->str);
    return ids;
}

/* The first job that came is done. */
static const char *finish(void)
{
    char handle[256];

    (void)snprintf(handle, sizeof(handle), "%s",
                   script_reply->element[8]->element[0]->element[0]->str);
    script_begin(&weir__script_delay_finish, keys);
    script_arg("w1");
    script_arg(handle);
    script_arg("done");
    script_arg("");
    script_arg("");
    return script_call();
}

TEST(a_job_that_was_pulled_is_finished_with_its_id)
{
    push("x", "", "");
    EXPECT_STR("x", pull("10"));
    EXPECT_STR("1", finish());
    EXPECT_INT(1, script_stat("done"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:ids x"));
}

TEST(what_is_urgent_is_pulled_first_also_beside_other_keys)
{
    static const char *const ids[] = {"a1", "a2", "a3", "b1", "b2"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        push(ids[i], ids[i][0] == 'a' ? "a" : "b", i < 3 ? "urgent" : "low");
    EXPECT_STR("a1 a2 a3 b1 b2", pull("10"));
}

TEST(a_result_counts_nothing_where_another_worker_had_the_job)
{
    push("x", "", "");
    EXPECT_STR("x", pull("10"));
    (void)script_text("EVAL "
                      "return(redis.call('ZINCRBY',KEYS[1],'1',redis.call("
                      "'ZRANGE',KEYS[1],'0','0')[1])) 1 weir:{t}:run");
    EXPECT_STR("0", finish());
    EXPECT_INT(0, script_stat("done"));
}

TEST(a_client_that_got_all_it_asked_for_asks_again_at_once)
{
    push("x", "", "");
    push("y", "", "");
    EXPECT_STR("x", pull("1"));
    EXPECT_INT(0, script_reply->element[2]->integer);
}

TEST(a_pack_of_unknown_flags_has_no_job)
{
    push("x", "", "");
    (void)script_text("EVAL "
                      "return(redis.call('SETRANGE',redis.call('KEYS','*:p:*')"
                      "[1],'4','\\2')) 0");
    EXPECT_STR("", pull("10"));
    EXPECT_INT(1, script_stat("dead"));
}

/* --- ticks of schedules --------------------------------------------------- */

/* The record of a tick whose schedule no worker could read; its text begins
 * behind 14 bytes. */
static void set_schedule(const char *name)
{
    static const char head[] = "\x98\x02\0\0\0\0\0\x81\xa4"
                               "cron\xd9\x54";
    uint8_t record[15 + 84 + 1];

    memset(record, '0', sizeof(record));
    memcpy(record, head, 15);
    for (size_t at = 15 + 13; at < 15 + 70; at += 14)
        record[at] = ' '; /* behind each of five times */
    record[sizeof(record) - 1] = 0xc0;
    script_begin(&weir__script_delay_cron,
                 "wait run ids meta idle due cron p: absent");
    script_arg("t");
    script_arg("set");
    script_arg(name);
    script_arg("");
    script_arg("15");
    script_arg_bytes(record, sizeof(record));
    EXPECT_STR("done", script_call());
}

/* So many ticks are due, each in a pack of its own. */
static void add_ticks(int count)
{
    (void)redis_int(script_proc, "EVAL %s 0 %d",
                    "for i = 1, ARGV[1] do redis.call('ZADD', 'weir:{t}:wait', "
                    "i, string.format('aaaaaaazU%c%02d', 70 + i / 100, i % "
                    "100) .. '0000') end "
                    "return redis.call('HSET', 'weir:{t}:meta', 'ticks', "
                    "ARGV[1])",
                    count);
}

static long long ticks_due(void)
{
    return redis_int(script_proc, "ZCOUNT weir:{t}:wait 0 1000");
}

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

TEST(a_tick_stays_where_it_is_and_the_job_behind_it_comes)
{
    char due[64];

    set_schedule("s");
    (void)snprintf(due, sizeof(due), "%s",
                   script_text("ZRANGE weir:{t}:wait 0 -1 WITHSCORES"));
    push("x", "", "");
    EXPECT_STR("x", pull("1"));
    EXPECT_STR(due, script_text("ZRANGE weir:{t}:wait 0 -1 WITHSCORES"));
    EXPECT_STR("1", finish());
    EXPECT_STR("", pull("1"));
    EXPECT_INT(-1, script_reply->element[2]->integer); /* it does not spin */
    EXPECT_STR(due, script_text("ZRANGE weir:{t}:wait 0 -1 WITHSCORES"));
    EXPECT_INT(0, redis_int(script_proc, "ZCARD weir:{t}:run"));
}

TEST(a_tick_stays_where_it_is_beside_jobs_with_keys)
{
    set_schedule("s");
    push("x", "a", "low");
    EXPECT_STR("x", pull("1"));
    EXPECT_STR("1", finish());
    EXPECT_STR("", pull("1"));
    EXPECT_INT(-1, script_reply->element[2]->integer);
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
}

TEST(many_ticks_that_are_due_keep_no_job)
{
    push("x", "", "");
    add_ticks(1000);
    (void)script_text("EVAL return(redis.call('HSET','weir:{t}:meta','mended',"
                      "redis.call('TIME')[1]..'000')) 0");
    EXPECT_STR("x", pull("1"));
    EXPECT_INT(1000, ticks_due());
}

TEST(ticks_that_no_worker_of_weir_takes_are_put_off_in_steps)
{
    int calls = 0;

    push("x", "", "");
    add_ticks(1000);
    (void)script_stat("ready"); /* one call passes 1,000 nodes */
    EXPECT_INT(1001, script_stat("ready"));
    while (strcmp("x", pull("1")) != 0) {
        EXPECT_INT(0, script_reply->element[2]->integer);
        EXPECT_INT(1000 - 33 * ++calls, ticks_due());
    }
    EXPECT_INT(30, calls);
    EXPECT_INT(1000, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    EXPECT_INT(10, script_stat("ready"));
}

TEST(a_pull_wakes_a_worker_of_weir_for_a_tick_and_none_that_pulls)
{
    redisContext *own = listen_as("c1"), *busy = listen_as("c2"),
                 *pulls = listen_as("w2");

    push("x", "", "");
    (void)script_text("ZADD weir:{t}:idle inf c1 -17592186044416 c2 "
                      "17592186044416.5 w2");
    EXPECT_STR("x", pull("5"));
    EXPECT_STR("w1 c2 w2 c1", script_text("ZRANGE weir:{t}:idle 0 -1"));
    add_ticks(1);
    EXPECT_STR("", pull("5"));
    EXPECT_STR("c2 w1 w2", script_text("ZRANGE weir:{t}:idle 0 -1"));
    EXPECT_STR("", pull("5"));
    EXPECT_STR("w1 w2", script_text("ZRANGE weir:{t}:idle 0 -1"));
    EXPECT_STR("", pull("5"));
    EXPECT_STR("w1 w2", script_text("ZRANGE weir:{t}:idle 0 -1"));
    redisFree(own);
    redisFree(busy);
    redisFree(pulls);
}

TEST(a_pull_wakes_nobody_where_a_worker_of_weir_comes_in_time)
{
    redisContext *own = listen_as("c1");

    (void)script_text("ZADD weir:{t}:idle 2 c1");
    add_ticks(1);
    EXPECT_STR("", pull("5"));
    EXPECT_INT(1, redis_int(script_proc, "ZCOUNT weir:{t}:idle 2 2"));
    redisFree(own);
}

TEST(no_name_of_a_job_is_one_of_a_tick)
{
    (void)script_text("HSET weir:{t}:meta ticks 1 added 8191990 kind delay");
    for (int i = 0; i < 20; i++) {
        push("x", "", "");
        EXPECT_STR("x", pull("1"));
        EXPECT_STR("1", finish());
    }
}

/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/store_fixture.h"

/* A replica takes over that had been cut off: what was acknowledged since then
 * is said to it again. */

static struct redis_proc *replica;

/* The world, and a replica of its server that hears everything. */
static void follow(void)
{
    static const char *const args[] = {"--repl-diskless-sync-delay", "0", NULL};

    (void)world_open(&(struct redis_options){.tcp = true, .args = args});
    replica = redis_start(NULL);
    EXPECT_STR("OK",
               redis_text(replica, "REPLICAOF 127.0.0.1 %d", redis_port(proc)));
    AWAIT(strstr(redis_text(replica, "INFO replication"),
                 "master_link_status:up") != NULL);
}

/* From now on it hears nothing, but it heard all until now. */
static void cut_off(void)
{
    EXPECT_TRUE(redis_int(proc, "INCR cut") > 0);
    EXPECT_INT(1, redis_int(proc, "WAIT 1 0"));
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
}

/* The server is killed, and who asks for it finds the replica. */
static void take_over(struct host *host)
{
    int ups = host->ups;

    redis_kill(proc, SIGKILL);
    EXPECT_INT(0, rename(redis_socket(replica), redis_socket(proc)));
    proc = replica;
    AWAIT(host->ups > ups);
}

static void settle_all(struct host *host, enum weir__outcome outcome)
{
    host_settle_all(host, outcome);
    host_await_settled(host);
}

TEST(adds_that_a_replica_had_not_heard_of_are_there_when_it_takes_over)
{
    uint8_t ran[3000] = {0};
    struct host *host;

    follow();
    host = host_open("w1");
    host_add_numbered(host, 0, 500, 0);
    AWAIT(host->added == 500);
    cut_off();
    host_add_numbered(host, 500, 3000, 0);
    AWAIT(host->added == 3000);
    take_over(host);
    host_work_off(host, ran, 3000);
    for (size_t i = 0; i < 3000; i++)
        EXPECT_INT(1, ran[i]);
    EXPECT_CONTAINS("redis: replayed ", world_log);
}

/* Ids as of host_add_numbered. What is acknowledged is kept for long. */
static void add_large(struct host *host, int count)
{
    static uint8_t mebibyte[1 << 20] = {0xc6, 0, 0x0f, 0xff, 0xfb};
    struct weir__record record = {.body = {mebibyte, sizeof(mebibyte)}};
    char id[16];

    host->topic->place->server->commands->options.replay_ms = 60000;
    for (int i = 0; i < count; i++) {
        struct weir__new_job job = {.record = &record};

        (void)snprintf(id, sizeof(id), "job-%d", i);
        job.id = weir__slice_str(id);
        EXPECT_INT(WEIR_OK,
                   host->store->ops->add(host->topic, &job, host_added, host));
    }
    AWAIT(host->added == count);
}

TEST(large_bodies_that_a_replica_had_not_heard_of_are_there_when_it_takes_over)
{
    uint8_t ran[14] = {0};
    struct host *host;

    follow();
    host = host_open("w1");
    cut_off();
    add_large(host, 14);
    take_over(host);
    host_work_off(host, ran, 14);
    for (size_t i = 0; i < 14; i++)
        EXPECT_INT(1, ran[i]);
}

TEST(of_large_bodies_the_last_16_MiB_are_said_again)
{
    uint8_t ran[25] = {0};
    struct host *host;

    follow();
    host = host_open("w1");
    cut_off();
    add_large(host, 25);
    take_over(host);
    host_work_off(host, ran, 25);
    for (size_t i = 0; i < 25; i++)
        EXPECT_INT(i >= 25 - 15, ran[i]);
    EXPECT_CONTAINS("had been acknowledged were not replayed", world_log);
}

TEST(verdicts_that_a_replica_had_not_heard_of_count_when_it_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    host_add_numbered(host, 0, 100, 0);
    AWAIT(host->added == 100);
    EXPECT_INT(100, host_claim(host, 1000, 60000));
    cut_off();
    host_settle(host, host_take(host), WEIR__OUTCOME_RETRY);
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
    take_over(host);
    EXPECT_INT(1, host_claim(host, 1000, 60000)); /* the retry, once */
    EXPECT_STR("job-0", run_id(host->runs));
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host_claim(host, 1000, 60000));
    EXPECT_INT(101, redis_int(proc, "EVAL %s 0",
                              "return tonumber(redis.call('HGET', "
                              "'weir:{t}:meta', 'settled'))"));
}

TEST(a_job_runs_again_whose_claim_the_replica_had_not_heard_of)
{
    struct host *host;

    follow();
    host = host_open("w1");
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    cut_off();
    EXPECT_INT(1, host_claim(host, 10, 60000));
    settle_all(host, WEIR__OUTCOME_DONE);
    take_over(host);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:wait weir:{t}:run"));
}

/* Twelve jobs of one pack, due one after the other. */
static void add_scattered(struct host *host)
{
    char id[16];

    for (int i = 0; i < 12; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", i);
        host_add(host, id, 50 + 30 * (int64_t)i);
    }
    AWAIT(host->added == 12);
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:due"));
}

TEST(jobs_with_due_times_of_their_own_are_there_when_a_replica_takes_over)
{
    uint8_t ran[12] = {0};
    struct host *host;
    size_t count = 0;

    follow();
    host = host_open("w1");
    cut_off();
    add_scattered(host);
    take_over(host);
    AWAIT(redis_int(proc, "HLEN weir:{t}:due") == 1);
    while (count < 12) {
        host_work_off(host, ran, 12);
        count = 0;
        for (size_t i = 0; i < 12; i++)
            count += ran[i];
    }
    for (size_t i = 0; i < 12; i++)
        EXPECT_INT(1, ran[i]);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:due weir:{t}:wait"));
}

TEST(verdicts_on_a_part_of_a_mixed_pack_count_when_a_replica_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add_scattered(host);
    for (size_t count = 0; count < 3;)
        count += host_claim(host, 3 - count, 60000);
    cut_off();
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
    take_over(host);
    AWAIT(host_claim(host, 1, 60000) == 1);
    EXPECT_STR("job-3", run_id(host->runs));
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
}

TEST(what_was_deleted_stays_so_when_a_replica_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    host_add(host, "a", 0);
    host_add(host, "b", 0);
    AWAIT(host->added == 2);
    cut_off();
    EXPECT_INT(WEIR_OK, host_remove(host, "a"));
    host_add(host, "c", 0);
    AWAIT(host->added == 3);
    EXPECT_INT(WEIR_OK, host_remove(host, "c"));
    EXPECT_INT(WEIR_OK, host_remove(host, "b"));
    host_add(host, "b", 0); /* another one */
    AWAIT(host->added == 4);
    take_over(host);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_STR("b", run_id(host->runs));
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:wait weir:{t}:run"));
}

TEST(a_replica_that_heard_everything_is_told_nothing_new)
{
    struct host *host;

    follow();
    host = host_open("w1");
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    settle_all(host, WEIR__OUTCOME_DONE);
    host_add(host, "a", 0);
    AWAIT(host->added == 2);
    cut_off();
    take_over(host);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_CONTAINS("calls, 0 had been lost", world_log);
}

TEST(events_that_a_replica_had_not_heard_of_are_there_when_it_takes_over)
{
    struct weir__options options = weir__options_default;
    struct host *host;

    follow();
    host = bounded_open("w1", &options);
    events_add(host, "a", 1, 3);
    EXPECT_INT(3, host_claim(host, 100, 60000));
    cut_off();
    settle_all(host, WEIR__OUTCOME_DONE);
    events_add(host, "a", 4, 6);
    events_add(host, "b", 7, 8);
    take_over(host);
    EXPECT_INT(5, host_claim(host, 100, 60000));
    EXPECT_STR("a:4-6 b:7-8 ", events_text(host));
    EXPECT_CONTAINS("calls, 3 had been lost", world_log);
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(8, bounded_count("done"));
    bounded_walk();
}

TEST(events_that_were_refused_are_not_there_when_a_replica_takes_over)
{
    struct weir__options options = weir__options_default;
    struct host *host, *other;

    follow();
    options.length = 4;
    options.overflow = WEIR__REJECT;
    host = bounded_open("w1", &options);
    other = bounded_open("w2", &options);
    EXPECT_INT(0, host_claim(host, 1, 60000)); /* stores the options */
    cut_off();
    events_add(other, "a", 1, 2);
    host_close(other);
    events_add(host, "a", 3, 6); /* of which two have room */
    events_add(host, "a", 7, 8);
    EXPECT_INT(4, host->failed);
    take_over(host);
    EXPECT_INT(2, host_claim(host, 100, 60000));
    EXPECT_STR("a:3-4 ", events_text(host));
}

TEST(verdicts_of_a_list_that_a_replica_had_not_heard_of_count)
{
    struct host *host;

    follow();
    host = host_open_kind("w1", "list");
    EXPECT_INT(2, redis_int(proc, "RPUSH t 1 2"));
    EXPECT_INT(2, host_claim(host, 10, 60000));
    cut_off();
    host_settle(host, host_take(host), WEIR__OUTCOME_RETRY);
    settle_all(host, WEIR__OUTCOME_DONE);
    take_over(host);
    EXPECT_INT(1, host_claim(host, 10, 60000)); /* the retry, once */
    settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:wait "
                                  "weir:{t}:lease weir:{t}:held"));
}

/* --- unique keys ---------------------------------------------------------- */

TEST(jobs_with_unique_keys_are_there_once_when_a_replica_takes_over)
{
    struct weir__record record = {0};
    struct weir__new_job job = {
        .record = &record,
        .rule = {WEIR__UNTIL_START, WEIR__OPTION_NONE, WEIR__KEY_REPLACE}};
    struct host *host;
    char key[16];

    follow();
    host = host_open("w1");
    for (int i = 0; i < 400; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i % 50);
        record.unique = weir__slice_str(key);
        job.rule.otherwise = i % 4 == 3 ? WEIR__KEY_REJECT : WEIR__KEY_REPLACE;
        if (i == 100)
            AWAIT(host->added + host->existing == 100);
        if (i == 100)
            cut_off();
        EXPECT_INT(WEIR_OK,
                   host->store->ops->add(host->topic, &job, host_added, host));
    }
    AWAIT(host->added + host->existing == 400);
    EXPECT_TRUE(host->existing > 0);
    take_over(host);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(50, (long long)(host->stats.ready + host->stats.scheduled));
    EXPECT_CONTAINS("redis: replayed ", world_log);
    EXPECT_TRUE(strstr(world_log, "were not replayed") == NULL);
}

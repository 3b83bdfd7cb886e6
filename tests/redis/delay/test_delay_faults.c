/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/delay/private.h"
#include "adapters/redis/store/store.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"
#include "tests/redis/store/line_fixture.h"

/* The delay store where workers come and go, and things get lost. */

TEST(what_a_worker_lost_runs_at_another_and_its_verdict_is_refused)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    host_add_numbered(one, 0, 300, 0);
    AWAIT(one->added == 300);
    AWAIT(host_claim(one, 1000, 3600000) > 0 && one->arrived == 300);
    leases_pass();
    AWAIT(host_claim(other, 1000, 60000) > 0 && other->arrived == 300);
    EXPECT_INT(1, other->runs->record.counters.crashes);
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(300, one->refused);
    EXPECT_CONTAINS("came too late", world_log);
    host_settle_all(other, WEIR__OUTCOME_DONE);
    host_await_settled(other);
    EXPECT_INT(0, other->refused);
    EXPECT_INT(WEIR_OK, host_stats(one));
    EXPECT_INT(300, one->stats.done_total);
    EXPECT_INT(300, one->stats.crashed_total);
}

TEST(a_renewed_lease_does_not_run_out)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(1, host_claim(one, 1, 30000));
    one->store->ops->renew(one->topic, 60000);
    EXPECT_INT(0, host_claim(other, 1, 3600000));
    AWAIT(host_claim(other, 1, 3600000) > 0 ||
          other->claimed.next_due_us > 50000000);
    EXPECT_INT(0, other->arrived);
}

TEST(a_renewal_tells_which_lease_is_lost)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    uint64_t token;

    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    lease_outlive(one, 1);
    token = one->runs->token;
    AWAIT(host_claim(other, 1, 60000) > 0);
    one->store->ops->renew(one->topic, 60000);
    AWAIT(one->lost_token != 0);
    EXPECT_INT(token, one->lost_token);
}

TEST(returned_jobs_are_ready_at_once_without_a_crash)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    host_add_numbered(one, 0, 10, 0);
    AWAIT(one->added == 10);
    EXPECT_INT(10, host_claim(one, 10, 60000));
    for (int i = 0; i < 4; i++)
        host_settle(one, host_take(one), WEIR__OUTCOME_DONE);
    host_settle_all(one, WEIR__OUTCOME_RETURN);
    host_await_settled(one);
    EXPECT_INT(10, one->settled);
    EXPECT_INT(6, host_claim(other, 10, 60000));
    EXPECT_INT(0, other->runs->record.counters.crashes);
    EXPECT_STR("job-4", run_id(other->runs));
}

/* --- adds whose answer is lost ------------------------------------------ */

static void lose_the_answer(struct host *host)
{
    long long added = world_count("t", "added");

    redis_kill(proc, SIGSTOP);
    host_lose_answer(host, "t", "added", added);
}

static void work_off_once(struct host *worker, size_t jobs)
{
    EXPECT_INT(jobs, host_claim(worker, 100, 60000));
    host_settle_all(worker, WEIR__OUTCOME_DONE);
    host_await_settled(worker);
}

TEST(an_add_whose_answer_is_lost_adds_nothing_again)
{
    struct host *host = host_open("w1"), *worker = host_open("w2");

    host_add_numbered(host, 7, 9,
                      0); /* limits are known, the script is there */
    AWAIT(host->added == 2);
    work_off_once(worker, 2);
    host_add_numbered(host, 0, 5, 0);
    host_add(host, NULL, 0);
    lose_the_answer(host);
    work_off_once(worker, 6);
    EXPECT_INT(2, host->added);
    world_hide_server(false);
    AWAIT(host->added == 8);
    EXPECT_INT(0, host->existing + host->failed);
    EXPECT_INT(0, host_claim(worker, 100, 60000));
    EXPECT_INT(0, redis_int(proc, "EVAL %s 0",
                            "return #redis.call('KEYS', 'weir:{t}:p:*')"));
    EXPECT_INT(WEIR_OK, host_stats(worker));
    EXPECT_INT(8, worker->stats.added_total);
}

/* Their id is in the index by then, and stays that of one job. */
TEST(an_add_whose_answer_is_lost_leaves_jobs_that_moved_alone)
{
    struct host *host = host_open("w1"), *worker = host_open("w2");

    host_add(host, "seven", 0);
    AWAIT(host->added == 1);
    work_off_once(worker, 1);
    host_add(host, NULL, 0);
    lose_the_answer(host);
    EXPECT_INT(1, host_claim(worker, 100, 60000));
    worker->runs->delay_ms = 0;
    host_settle_all(worker, WEIR__OUTCOME_RETRY);
    host_await_settled(worker);
    world_hide_server(false);
    AWAIT(host->added == 2);
    EXPECT_INT(1, host_claim(worker, 100, 60000));
    EXPECT_STR(host->last_id, run_id(worker->runs));
    host_settle_all(worker, WEIR__OUTCOME_DONE);
    host_await_settled(worker);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:wait"));
}

TEST(an_add_whose_answer_is_lost_is_refused_as_it_was)
{
    struct host *host = host_open("w1"), *worker = host_open("w2");

    EXPECT_INT(WEIR_OK, host_set(worker, "max_pending", "3"));
    for (int i = 0; i < 2; i++) { /* the second one reads options again */
        host_add_numbered(host, 0, 2, 0);
        AWAIT(host->added + host->existing == 2 + 2 * i);
    }
    host_add_numbered(host, 1, 4, 0); /* exists, is added, is too much */
    lose_the_answer(host);
    work_off_once(worker, 3);
    world_hide_server(false);
    AWAIT(host->added + host->existing + host->failed == 7);
    EXPECT_INT(3, host->added);
    EXPECT_INT(2 + 1, host->existing);
    EXPECT_INT(1, host->failed);
    EXPECT_INT(WEIR_EFULL, host->last_code);
    EXPECT_INT(0, host_claim(worker, 100, 60000));
}

/* Nothing was seen by a server that lost its memory. */
TEST(adds_go_on_after_the_server_lost_its_memory)
{
    struct host *host = host_open("w1"), *other = host_open("w2");

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_STR("OK", redis_text(proc, "FLUSHALL"));
    host_add(host, "a", 0);
    AWAIT(host->added == 2);
    for (int i = 0; i < 20; i++) { /* their numbers are given again */
        host_add(i % 2 == 0 ? host : other, NULL, 0);
        AWAIT(host->added + other->added == 3 + i);
    }
    while (host_claim(other, 100, 60000) > 0)
        continue;
    EXPECT_INT(21, other->arrived);
}

/* --- waking ------------------------------------------------------------- */

TEST(an_add_wakes_one_sleeping_worker)
{
    struct host *producer = host_open("w1"), *sleeper = host_open("w2");

    AWAIT(sleeper->wakes == 1); /* its subscription stands */
    EXPECT_INT(0, host_claim(sleeper, 10, 60000));
    host_add(producer, "a", 0);
    AWAIT(sleeper->wakes == 2);
    EXPECT_INT(1, host_claim(sleeper, 10, 60000));
    EXPECT_INT(1, producer->wakes);
}

TEST(a_woken_worker_fetches_with_its_claim)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    AWAIT(one->wakes == 1);
    EXPECT_INT(0, host_claim(one, 1, 60000)); /* sleeps from now on */
    host_add(other, "a", 0);
    AWAIT(one->wakes == 2);
    EXPECT_INT(1, host_claim(one, 1, 60000));
    EXPECT_STR("a", run_id(one->runs));
    EXPECT_INT(1, redis_calls(proc, "mget"));
}

TEST(what_a_woken_worker_fetches_may_be_anothers)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    AWAIT(one->wakes == 1);
    EXPECT_INT(0, host_claim(one, 1, 60000));
    host_add(other, "a", 0);
    AWAIT(one->wakes == 2);
    EXPECT_INT(1, host_claim(other, 1, 60000));
    EXPECT_INT(1, redis_calls(proc, "mget"));
    EXPECT_INT(0, host_claim(one, 1, 60000));
    AWAIT(redis_calls(proc, "mget") == 2);
    host_settle_all(other, WEIR__OUTCOME_DONE);
    host_await_settled(other);
    EXPECT_INT(0, other->refused);
}

TEST(a_pack_that_a_woken_worker_gets_with_others_comes_with_them)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    AWAIT(one->wakes == 1);
    EXPECT_INT(0, host_claim(one, 1, 60000));
    host_add(other, "a", 0);
    AWAIT(one->wakes == 2 && other->added == 1);
    host_add(other, "b", 0);
    AWAIT(other->added == 2);
    EXPECT_INT(2, host_claim(one, 10, 60000));
    EXPECT_INT(2, redis_calls(proc, "mget"));
}

TEST(a_sleeper_that_is_gone_is_passed_over)
{
    struct host *producer = host_open("w1"), *sleeper = host_open("w2");

    AWAIT(sleeper->wakes == 1);
    EXPECT_INT(0, host_claim(sleeper, 10, 60000));
    (void)redis_int(proc, "ZADD weir:{t}:idle inf x-gone");
    host_add(producer, "a", 0);
    AWAIT(sleeper->wakes == 2);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:idle"));
}

TEST(a_restarted_server_goes_on_with_what_it_had)
{
    static const struct redis_options aof = {.appendonly = true};
    static uint8_t ran[3000];
    (void)world_open(&aof);
    struct host *host = host_open("w1");
    int ups = host->ups;

    host_add_numbered(host, 0, 2000, 0);
    AWAIT(host->added == 2000);
    EXPECT_TRUE(host_claim(host, 1000, 60000) > 0);
    redis_kill(proc, SIGTERM);
    host_add_numbered(host, 2000, 3000, 0);
    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);
        int number;

        EXPECT_INT(1, sscanf(run_id(run), "job-%d", &number));
        ran[number]++;
        host_settle(host, run, WEIR__OUTCOME_DONE);
    }
    world_turns(1);
    redis_restart(proc);
    AWAIT(host->ups > ups && host->added == 3000);
    host_await_settled(host);
    host_work_off(host, ran, 3000);
    for (size_t i = 0; i < 3000; i++)
        EXPECT_INT(1, ran[i]);
    EXPECT_INT(0, host->refused);
}

TEST(closing_with_work_in_flight_leaves_nothing_behind)
{
    struct host *host = host_open("w1");
    struct weir__claim claim = {.room = 100, .lease_ms = 60000};

    host_add_numbered(host, 0, 600, 0);
    AWAIT(host->added == 600);
    EXPECT_INT(256, host_claim(host, 300, 60000));
    for (int i = 0; i < 100; i++) {
        host->runs->delay_ms = 1;
        host_settle(host, host_take(host), WEIR__OUTCOME_RETRY);
    }
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    world_turns(1);
    host_add_numbered(host, 600, 700, 0);
    host_add(host, NULL, 0);
}

static long long fetchers(void)
{
    const char *list = redis_text(proc, "CLIENT LIST TYPE normal");
    long long count = 0;

    while ((list = strstr(list, "name=w1:fetch")) != NULL) {
        list++;
        count++;
    }
    return count;
}

TEST(large_fetches_go_by_connections_of_their_own)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 3000, 0);
    AWAIT(host->added == 3000);
    EXPECT_INT(100, host_claim(host, 100, 60000));
    EXPECT_INT(0, fetchers());
    EXPECT_TRUE(host_claim(host, 1024, 60000) >= 512);
    AWAIT(fetchers() == WEIR__FETCHERS);
    while (host_claim(host, 1024, 60000) > 0)
        continue;
    EXPECT_INT(3000, host->arrived);
    EXPECT_INT(0, host->lost);
}

TEST(a_fetch_whose_connection_breaks_goes_by_another)
{
    struct weir__claim claim = {.room = 1024, .lease_ms = 60000};
    struct host *host = host_open("w1");
    size_t first;

    for (int i = 0; i < 3000; i++) {
        char id[128];

        (void)snprintf(id, sizeof(id), "%0100d", i);
        host_add(host, id, 0);
    }
    AWAIT(host->added == 3000);
    first = host_claim(host, 1024, 60000);
    AWAIT(fetchers() == WEIR__FETCHERS);
    /* The server hangs up on who is to get more than this at once. */
    (void)redis_text(proc, "CONFIG SET client-output-buffer-limit %s",
                     "normal 40000 0 0");
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    AWAIT(strstr(world_log, "connection lost") != NULL);
    (void)redis_text(proc, "CONFIG SET client-output-buffer-limit %s",
                     "normal 0 0 0");
    AWAIT(host->claims == 2 &&
          host->arrived + host->lost == first + host->claimed.count);
    EXPECT_TRUE(host->claimed.count >= 512);
    EXPECT_INT(0, host->lost);
}

TEST(a_pack_that_is_gone_is_settled_away)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    EXPECT_INT(1, redis_int(proc, "EVAL %s 0",
                            "return redis.call('DEL', "
                            "redis.call('KEYS', 'weir:{t}:p:*')[1])"));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(3, host->lost);
    AWAIT(strstr(world_log,
                 "3 claimed jobs are lost, their packs are gone: ") != NULL);
    AWAIT(redis_int(proc, "ZCARD weir:{t}:run") == 0);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(3, host->stats.lost_total);
    EXPECT_INT(0, host->stats.done_total);
}

/* A handler held the loop for longer than the lease of a claim whose answer was
 * not read yet: nobody renews that. */
TEST(what_another_worker_ended_before_a_claim_was_read_is_no_loss)
{
    struct weir__claim claim = {.room = 10, .lease_ms = 3600000};
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    host->store->ops->flush(host->store);
    while (redis_int(proc, "ZCARD weir:{t}:run") == 0)
        continue;
    EXPECT_INT(3, redis_int(proc, "EVAL %s 0",
                            "return redis.call('DEL', 'weir:{t}:run', "
                            "'weir:{t}:lease', "
                            "redis.call('KEYS', 'weir:{t}:p:*')[1])"));
    AWAIT(host->lost == 3);
    EXPECT_INT(WEIR_OK, host_stats(host)); /* behind what was settled */
    EXPECT_TRUE(strstr(world_log, "are lost") == NULL);
}

/* As where a primary that was replaced answers late: the jobs are at the other
 * server, which never heard of the claim. */
TEST(a_pack_that_another_server_lacks_is_not_told_as_lost)
{
    struct weir__claim claim = {.room = 10, .lease_ms = 60000};
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    EXPECT_INT(1, redis_int(proc, "EVAL %s 0",
                            "return redis.call('DEL', "
                            "redis.call('KEYS', 'weir:{t}:p:*')[1])"));
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    host->store->ops->flush(host->store);
    AWAIT(host->claims == 1);
    EXPECT_INT(0, host->lost);
    host->topic->place->server->connection++; /* it answers what was asked */
    AWAIT(host->lost == 3);
    EXPECT_TRUE(strstr(world_log, "are lost") == NULL);
}

TEST(a_pack_that_cannot_be_read_arrives_as_malformed_runs)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    EXPECT_INT(5, redis_int(proc, "EVAL %s 0",
                            "return redis.call('SET', redis.call('KEYS', "
                            "'weir:{t}:p:*')[1], 'bytes') and 5"));
    EXPECT_INT(3, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->runs->is_malformed);
    EXPECT_INT('@', host->runs->id.ptr[0]);
    EXPECT_CONTAINS("cannot be read", world_log);
    host->runs->record.reason = weir__slice_str("malformed");
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(3, host_dead(host, 10));
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
}

/* Node names end in two characters each for the first and the last slot. */
TEST(a_node_beyond_its_pack_is_malformed_and_its_neighbours_are_not)
{
    struct host *host = host_open("w1");

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, redis_int(proc, "EVAL %s 0",
                            "local key = redis.call('KEYS', 'weir:{t}:p:*')[1] "
                            "return redis.call('ZADD', 'weir:{t}:wait', 1, "
                            "key:sub(-12) .. '0203')"));
    EXPECT_INT(3, host_claim(host, 10, 60000));
    for (int i = 0; i < 3; i++) {
        struct weir__run *run = host_take(host);

        EXPECT_INT(run->id.ptr[0] != 'a', run->is_malformed);
        host_settle(host, run, WEIR__OUTCOME_DONE);
    }
    host_await_settled(host);
}

TEST(a_queue_that_is_full_refuses_at_once_and_loses_no_job)
{
    static uint8_t bytes[100000];
    const struct weir__record record = {.body = {bytes, sizeof(bytes)}};
    const struct weir__new_job job = {.record = &record};
    struct host *host = host_open("w1");
    int taken = 0, rc = WEIR_OK;

    bytes[0] = 0xc6; /* one binary value, all of it */
    bytes[2] = (sizeof(bytes) - 5) >> 16;
    bytes[3] = ((sizeof(bytes) - 5) >> 8) & 0xff;
    bytes[4] = (sizeof(bytes) - 5) & 0xff;
    redis_kill(proc, SIGSTOP);
    for (; rc == WEIR_OK && taken < 2000; taken++) {
        rc = host->store->ops->add(host->topic, &job, host_added, host);
        if (taken % 50 == 0)
            world_turn();
    }
    EXPECT_INT(WEIR_EFULL, rc);
    redis_kill(proc, SIGCONT);
    AWAIT(host->added == taken - 1);
    EXPECT_INT(0, host->failed);
}

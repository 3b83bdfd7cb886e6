/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"

/* The delay store through its port: jobs and what becomes of them. */

TEST(ten_thousand_jobs_run_exactly_once)
{
    static uint8_t ran[10000];
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 10000, 0);
    AWAIT(host->added == 10000);
    host_work_off(host, ran, 10000);
    for (size_t i = 0; i < 10000; i++)
        EXPECT_INT(1, ran[i]);
    EXPECT_INT(10000, host->settled);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:lease"));
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:ids"));
}

TEST(made_ids_sort_by_time_and_run_once)
{
    char last[WEIR_MAX_ID + 1] = "";
    size_t count = 0;

    struct host *host = host_open("w1");
    for (int i = 0; i < 700; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == 700);
    EXPECT_INT('@', host->last_id[0]);
    while (host_claim(host, 1000, 60000) > 0)
        while (host->runs != NULL) {
            struct weir__run *run = host_take(host);

            EXPECT_TRUE(strcmp(last, run_id(run)) < 0);
            memcpy(last, run_id(run), sizeof(last));
            host_settle(host, run, WEIR__OUTCOME_DONE);
            count++;
        }
    EXPECT_INT(700, count);
    EXPECT_STR(host->last_id, last);
}

static int64_t packs_of(void)
{
    return redis_int(proc, "EVAL return(#redis.call('keys','weir:{t}:p:*')) 0");
}

/* Each in a turn of its own, without waiting for answers. */
static void add_in_turns(struct host *host, int from, int to)
{
    for (int i = from; i < to; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "job-%d", i);
        host_add(host, id, 0);
        host->store->ops->flush(host->store);
    }
}

TEST(jobs_that_come_while_calls_are_out_share_a_pack)
{
    static uint8_t ran[100];
    struct host *host = host_open("w1");

    add_in_turns(host, 0, 1); /* the connection knows what it has to */
    AWAIT(host->added == 1);
    EXPECT_INT(1, packs_of());
    add_in_turns(host, 1, 100);
    AWAIT(host->added == 100);
    EXPECT_INT(4, packs_of()); /* two at once, then all that waited */
    host_work_off(host, ran, 100);
    for (size_t i = 0; i < 100; i++)
        EXPECT_INT(1, ran[i]);
}

TEST(an_id_that_exists_is_refused_in_one_turn_and_later)
{
    struct host *host = host_open("w1");

    host_add(host, "a", 0);
    host_add(host, "b", 0);
    host_add(host, "a", 0);
    AWAIT(host->added + host->existing == 3);
    EXPECT_INT(2, host->added);
    host_add(host, "b", 0);
    AWAIT(host->existing == 2);
    EXPECT_STR("b", host->last_id);
    EXPECT_INT(2, host_claim(host, 10, 60000));
}

TEST(of_duplicates_with_different_delays_the_first_wins)
{
    struct host *host = host_open("w1");

    host_add(host, "twin", 3600000);
    host_add(host, "other", 60000);
    host_add(host, "twin", 0);
    AWAIT(host->added == 2 && host->existing == 1);
    EXPECT_INT(0, host_claim(host, 10, 60000));
}

TEST(jobs_arrive_in_the_order_they_became_due)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 20, 40);
    host_add_numbered(host, 20, 40, 20);
    host_add(host, "job-40", 0);
    host_add(host, "job-41", 10);
    AWAIT(host->added == 42);
    AWAIT(host_claim(host, 1000, 60000) > 0 && host->arrived == 42);
    EXPECT_STR("job-40", run_id(host_take(host)));
    EXPECT_STR("job-41", run_id(host_take(host)));
    EXPECT_STR("job-20", run_id(host_take(host)));
    for (int i = 0; i < 19; i++)
        (void)host_take(host);
    EXPECT_STR("job-0", run_id(host_take(host)));
}

TEST(a_claim_that_gets_nothing_says_when_to_come_back)
{
    struct host *host = host_open("w1");

    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(-1, host->claimed.next_due_us);
    host_add(host, "a", 3600000);
    AWAIT(host->added == 1);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->claimed.next_due_us > 3500000000);
    EXPECT_TRUE(host->claimed.next_due_us <= 3600000000);
}

TEST(a_retry_comes_back_later_with_its_counters_and_error)
{
    struct host *host = host_open("w1");
    struct weir__record record = {.url = weir__slice_str("http://x/")};
    struct weir__run *run;

    host_add_record(host, "a", &record, 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    run = host_take(host);
    EXPECT_INT(0, run->record.counters.attempt);
    run->record.counters.attempt = 1;
    run->record.counters.failures = 1;
    run->record.error = weir__slice_str("no luck");
    run->delay_ms = 30;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_show(host, "a"));
    EXPECT_STR("no luck", host->text[1]);
    EXPECT_INT(1, host->info.counters.failures);
    AWAIT(host_claim(host, 10, 60000) == 1);
    run = host_take(host);
    EXPECT_INT(1, run->record.counters.attempt);
    EXPECT_TRUE(
        weir__slice_equal(weir__slice_str("http://x/"), run->record.url));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.retried_total);
    EXPECT_INT(1, host->stats.done_total);
}

TEST(a_retry_is_settled_though_a_full_server_refused_a_producer_number)
{
    struct host *host = host_open("w");
    struct weir__run *run;

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 10, 5000));
    run = host_take(host);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 1"));
    (void)redis_int(proc, "CLIENT KILL TYPE normal");
    AWAIT(host->ups == 2);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 0"));
    run->delay_ms = 0;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(1, host_claim(host, 10, 5000));
}

TEST(a_verdict_that_a_full_server_cannot_keep_is_told_when_it_can)
{
    struct host *host = host_open("w");

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 10, 3600000));
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 1"));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    AWAIT(strstr(world_log, "is it full?") != NULL);
    EXPECT_INT(1, host->store->ops->unsettled(host->topic));
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 0"));
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_TRUE(strstr(world_log, "too late") == NULL);
    EXPECT_INT(1, host_claim(host, 10, 3600000));
}

/* Nobody else renews it: its worker holds a verdict. */
TEST(a_lease_is_kept_while_a_full_server_keeps_no_verdict)
{
    struct host *host = host_open("w"), *other = host_open("other");
    const char *lease;

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 10, LEASE_LONG_MS));
    lease = lease_name(host->runs);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 1"));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    lease_hold(lease, 3, other);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 0"));
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.retried_total);
    EXPECT_INT(0, host->stats.crashed_total);
}

TEST(a_full_server_settles_what_needs_no_room)
{
    struct host *host = host_open("w");

    for (int i = 0; i < 5; i++) {
        char id[2] = {(char)('a' + i), '\0'};

        host_add(host, id, 0);
    }
    AWAIT(host->added == 5);
    EXPECT_INT(5, host_claim(host, 10, 3600000));
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 1"));
    for (int i = 0; i < 5; i++)
        host_settle(host, host_take(host),
                    i == 1   ? WEIR__OUTCOME_RETRY
                    : i == 3 ? WEIR__OUTCOME_SNOOZE
                             : WEIR__OUTCOME_DONE);
    AWAIT(host->store->ops->unsettled(host->topic) == 2);
    EXPECT_INT(0, host->refused);
    EXPECT_TRUE(strstr(world_log, "what 2 verdicts write back") != NULL);
    EXPECT_TRUE(strstr(world_log, "too late") == NULL);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(3, host->stats.done_total);
    EXPECT_INT(0, host->stats.retried_total);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 0"));
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(3, host->stats.done_total);
    EXPECT_INT(1, host->stats.retried_total);
    EXPECT_INT(2, host_claim(host, 10, 60000));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, redis_int(proc, "HLEN weir:{t}:ids") - 1);
}

TEST(many_retries_with_different_delays_all_come_back)
{
    static uint8_t ran[600];
    struct host *host = host_open("w1");
    size_t count = 0;

    host_add_numbered(host, 0, 600, 0);
    AWAIT(host->added == 600);
    AWAIT(host_claim(host, 1000, 60000) > 0 && host->arrived == 600);
    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);

        run->delay_ms = (int64_t)(count++ % 7);
        host_settle(host, run,
                    count % 3 == 0 ? WEIR__OUTCOME_SNOOZE
                                   : WEIR__OUTCOME_RETRY);
    }
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    AWAIT(redis_int(proc, "HLEN weir:{t}:ids") == 601);
    AWAIT((host_work_off(host, ran, 600), host->arrived == 1200));
    for (size_t i = 0; i < 600; i++)
        EXPECT_INT(1, ran[i]);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(400, host->stats.retried_total);
    EXPECT_INT(600, host->stats.done_total);
    EXPECT_INT(0, host->stats.running + host->stats.scheduled);
}

TEST(a_made_id_is_found_before_and_after_a_retry)
{
    struct host *host = host_open("w1");
    char id[WEIR_MAX_ID + 1];

    host_add(host, NULL, 0);
    AWAIT(host->added == 1);
    memcpy(id, host->last_id, sizeof(id));
    EXPECT_INT(WEIR_OK, host_show(host, id));
    EXPECT_INT(WEIR_JOB_READY, host->info.state);
    EXPECT_INT(1, host_claim(host, 1, 60000));
    host->runs->delay_ms = 60000;
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_show(host, id));
    EXPECT_INT(WEIR_JOB_SCHEDULED, host->info.state);
    EXPECT_INT(WEIR_OK, host_remove(host, id));
    EXPECT_INT(WEIR_ENOTFOUND, host_show(host, id));
}

TEST(dead_jobs_are_listed_oldest_first_up_to_the_bound)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 8, 0);
    AWAIT(host->added == 8);
    EXPECT_INT(8, host_claim(host, 10, 60000));
    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);

        run->record.reason = weir__slice_str("failed");
        run->record.error = weir__slice_str("broken");
        host_settle(host, run, WEIR__OUTCOME_DEAD);
        host_await_settled(host);
    }
    EXPECT_INT(5, host_dead(host, 100));
    EXPECT_STR("job-7", host->text[0]);
    EXPECT_STR("failed", host->text[2]);
    EXPECT_STR("broken", host->text[1]);
    EXPECT_INT(2, host_dead(host, 2));
    EXPECT_STR("job-4", host->text[0]);
    EXPECT_INT(WEIR_ENOTFOUND, host_show(host, "job-0"));
    EXPECT_INT(WEIR_OK, host_show(host, "job-5"));
    EXPECT_INT(WEIR_JOB_DEAD, host->info.state);
    host_add(host, "job-5", 0);
    AWAIT(host->existing == 1);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(8, host->stats.failed_total);
    EXPECT_INT(3, host->stats.dropped_total);
    EXPECT_INT(5, host->stats.dead);
}

TEST(a_job_is_deleted_in_every_state)
{
    struct host *host = host_open("w1");
    struct weir__run *run;

    host_add(host, "dead", 0);
    host_add(host, "running", 0);
    AWAIT(host->added == 2);
    EXPECT_INT(2, host_claim(host, 10, 60000));
    host_settle(host, host_take(host), WEIR__OUTCOME_DEAD);
    host_add(host, "scheduled", 60000);
    host_add(host, "ready", 0);
    AWAIT(host->added == 4);
    EXPECT_INT(WEIR_OK, host_remove(host, "scheduled"));
    EXPECT_INT(WEIR_JOB_SCHEDULED, host->was);
    EXPECT_INT(WEIR_OK, host_remove(host, "ready"));
    EXPECT_INT(WEIR_JOB_READY, host->was);
    EXPECT_INT(WEIR_OK, host_remove(host, "dead"));
    EXPECT_INT(WEIR_JOB_DEAD, host->was);
    EXPECT_INT(WEIR_OK, host_remove(host, "running"));
    EXPECT_INT(WEIR_JOB_RUNNING, host->was);
    EXPECT_INT(WEIR_ENOTFOUND, host_remove(host, "running"));
    run = host_take(host);
    run->delay_ms = 1;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(1, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, host->stats.running + host->stats.ready +
                      host->stats.scheduled + host->stats.dead);
}

TEST(a_body_of_a_mebibyte_goes_through)
{
    size_t len = 1024 * 1024;
    uint8_t *body = weir__mem_new(len);
    struct weir__record record = {.body = {body, len}};

    EXPECT_TRUE(body != NULL);
    body[0] = 0xc6; /* bin with a length of 32 bits */
    body[1] = 0;
    body[2] = 0x0f;
    body[3] = 0xff;
    body[4] = 0xfb;
    body[len - 1] = 42;
    struct host *host = host_open("w1");
    host_add_record(host, "big", &record, 0);
    host_add(host, "small", 0);
    AWAIT(host->added == 2);
    EXPECT_INT(2, host_claim(host, 10, 60000));
    EXPECT_INT(len, host->runs->record.body.len);
    EXPECT_MEM(body, len, host->runs->record.body.ptr, len);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    world_close();
    weir__mem_free(body);
}

TEST(a_topic_of_another_kind_is_refused)
{
    struct host *host = host_open("w1");

    (void)redis_int(proc, "HSET weir:{t}:meta kind stream");
    host_add(host, "a", 0);
    AWAIT(host->failed == 1);
    EXPECT_INT(WEIR_EKIND, host->last_code);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(WEIR_EKIND, host->claimed.code);
}

TEST(a_paused_topic_gives_nothing_and_says_so)
{
    struct host *host = host_open("w1");

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    (void)redis_int(proc, "HSET weir:{t}:meta paused 1");
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->claimed.is_paused);
    (void)redis_int(proc, "HDEL weir:{t}:meta paused");
    EXPECT_INT(1, host_claim(host, 10, 60000));
}

TEST(lateness_of_the_last_minutes_shows_in_the_statistics)
{
    uint32_t counts[160] = {0};

    struct host *host = host_open("w1");
    EXPECT_INT(WEIR_ENOTFOUND, host_stats(host));
    EXPECT_INT(WEIR_ENOTFOUND, host_dead(host, 10));
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(-1, host->stats.lateness_p50_us);
    counts[2] = 90;
    counts[3] = 10;
    host->store->ops->lateness(host->topic, counts, 3);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(2, host->stats.lateness_p50_us);
    EXPECT_INT(3, host->stats.lateness_p99_us);
    EXPECT_INT(3, host->stats.lateness_max_us);
    EXPECT_STR("delay", host->kind);
    EXPECT_TRUE(host->stats.ready_is_exact);
}

static void on_topic(int code, const char *topic, void *arg)
{
    struct host *host = arg;

    EXPECT_INT(WEIR_OK, code);
    if (topic == NULL)
        host->is_listed = true;
    else
        (void)snprintf(host->topics + strlen(host->topics), 32, "%s ", topic);
}

TEST(topics_are_listed_in_byte_order)
{
    struct host *host = host_open("w1");

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    (void)redis_int(proc, "SADD weir:topics b A");
    EXPECT_INT(WEIR_OK, host->store->ops->topics(host->store, on_topic, host));
    AWAIT(host->is_listed);
    EXPECT_STR("A b t ", host->topics);
}

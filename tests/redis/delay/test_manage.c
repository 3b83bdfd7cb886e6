/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* Managing jobs of the delay store on a real server. */

static struct host *open_with_dead(int count)
{
    struct host *host;

    (void)world_open(NULL);
    host = host_open("w1");
    host_serve(host, "max_dead=10000");
    host_add_numbered(host, 0, count, 0);
    AWAIT(host->added == count);
    host_bury(host, (size_t)count);
    return host;
}

/* --- reschedule --------------------------------------------------------- */

TEST(a_rescheduled_job_runs_at_its_new_time_and_no_other_is_touched)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 100, 3600000);
    AWAIT(host->added == 100);
    EXPECT_INT(WEIR_OK, host_reschedule(host, "job-50", 0, 0));
    EXPECT_INT(WEIR_JOB_SCHEDULED, host->was);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_STR("job-50", run_id(host->runs));
    EXPECT_INT(WEIR_EINVAL, host_reschedule(host, "job-50", 0, 0));
    EXPECT_INT(WEIR_JOB_RUNNING, host->was);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(WEIR_ENOTFOUND, host_reschedule(host, "job-50", 0, 0));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(99, host->stats.scheduled);
    EXPECT_TRUE(redis_int(proc, "ZCARD weir:{t}:wait") <= 8);
}

TEST(a_ready_job_can_be_put_off_and_counts_follow)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    do /* until the counting mark has passed them */
        EXPECT_INT(WEIR_OK, host_stats(host));
    while (host->stats.ready < 3);
    EXPECT_INT(WEIR_OK, host_reschedule(host, "job-1", 60000, 0));
    EXPECT_INT(WEIR_JOB_READY, host->was);
    EXPECT_INT(WEIR_OK, host_show(host, "job-1"));
    EXPECT_INT(host->due_ms, host->info.due_ms);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(2, host->stats.ready);
    EXPECT_INT(1, host->stats.scheduled);
    EXPECT_INT(2, host_claim(host, 10, 60000));
}

TEST(a_job_rescheduled_to_an_absolute_time_has_that_time)
{
    struct host *host = host_open("w1");

    host_add(host, NULL, 60000);
    AWAIT(host->added == 1);
    EXPECT_INT(WEIR_OK,
               host_reschedule(host, host->last_id, 0, INT64_C(4000000000123)));
    EXPECT_INT(INT64_C(4000000000123), host->due_ms);
    EXPECT_INT(WEIR_OK, host_show(host, host->last_id));
    EXPECT_INT(INT64_C(4000000000123), host->info.due_ms);
}

TEST(rescheduling_to_now_wakes_a_sleeping_worker)
{
    struct host *host = host_open("w1");

    host_add(host, "a", 3600000);
    AWAIT(host->added == 1 && host->wakes == 1); /* subscribed */
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(WEIR_OK, host_reschedule(host, "a", 0, 0));
    AWAIT(host->wakes == 2);
}

TEST(a_dead_job_is_not_rescheduled)
{
    struct host *host = open_with_dead(1);

    EXPECT_INT(WEIR_EINVAL, host_reschedule(host, "job-0", 0, 0));
    EXPECT_INT(WEIR_JOB_DEAD, host->was);
    EXPECT_INT(1, host_dead(host, 10));
}

/* --- requeue ------------------------------------------------------------ */

TEST(a_requeued_job_starts_over_with_its_other_counters_kept)
{
    struct host *host = open_with_dead(3);
    struct weir__run *run;

    EXPECT_INT(WEIR_OK, host_requeue(host, "job-1"));
    EXPECT_INT(1, host->count);
    EXPECT_INT(2, host_dead(host, 10));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    run = host_take(host);
    EXPECT_STR("job-1", run_id(run));
    EXPECT_INT(0, run->record.counters.attempt);
    EXPECT_INT(0, run->record.counters.failures);
    EXPECT_INT(2, run->record.counters.snoozes);
    EXPECT_INT(0, run->record.reason.len);
    EXPECT_INT(0, run->record.error.len);
    EXPECT_MEM("\x07", 1, run->record.body.ptr, run->record.body.len);
    host_settle(host, run, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(WEIR_ENOTFOUND, host_show(host, "job-1"));
}

TEST(all_dead_jobs_are_requeued_in_steps_and_counts_stay_true)
{
    struct host *host = open_with_dead(3000);

    EXPECT_INT(WEIR_OK, host_requeue(host, NULL));
    EXPECT_INT(3000, host->count);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, host->stats.dead);
    EXPECT_INT(3000, host->stats.ready + host->stats.scheduled);
    EXPECT_INT(0, host->stats.running);
    while (host_claim(host, 1000, 60000) > 0)
        host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(3000, host->stats.done_total);
    EXPECT_INT(0, host->stats.ready + host->stats.scheduled);
}

TEST(a_dead_job_with_a_made_id_keeps_it_when_it_is_requeued)
{
    char id[WEIR_MAX_ID + 1];

    struct host *host = host_open("w1");
    host_add(host, NULL, 0);
    AWAIT(host->added == 1);
    memcpy(id, host->last_id, sizeof(id));
    host_bury(host, 1);
    EXPECT_INT(WEIR_OK, host_requeue(host, id));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_STR(id, run_id(host->runs));
}

TEST(only_dead_jobs_are_requeued)
{
    struct host *host = open_with_dead(1);

    host_add(host, "waits", 60000);
    AWAIT(host->added == 2);
    EXPECT_INT(WEIR_ENOTFOUND, host_requeue(host, "waits"));
    EXPECT_INT(WEIR_ENOTFOUND, host_requeue(host, "nobody"));
    EXPECT_INT(1, host_dead(host, 10));
}

TEST(requeue_and_purge_of_an_unknown_topic_find_nothing)
{
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_ENOTFOUND, host_requeue(host, NULL));
    EXPECT_INT(WEIR_ENOTFOUND, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(WEIR_ENOTFOUND, host_purge(host, WEIR__PURGE_DEAD));
    EXPECT_INT(WEIR_ENOTFOUND, host_list(host, WEIR_JOB_READY, 10));
}

TEST(a_dead_record_that_cannot_be_read_stays_dead_and_holds_up_nobody)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    host_bury(host, 3);
    (void)redis_int(proc, "HSET weir:{t}:rec job-0 garbage");
    EXPECT_INT(WEIR_OK, host_requeue(host, NULL));
    EXPECT_INT(2, host->count);
    EXPECT_INT(WEIR_EMALFORMED, host_requeue(host, "job-0"));
    EXPECT_INT(1, host_dead(host, 10));
    EXPECT_INT(2, host_claim(host, 10, 60000));
}

/* --- purge -------------------------------------------------------------- */

TEST(one_dead_job_or_all_of_them_are_deleted)
{
    struct host *host = open_with_dead(1200);

    host_add(host, "alive", 60000);
    AWAIT(host->added == 1201);
    EXPECT_INT(WEIR_OK, host_forget(host, "job-7"));
    EXPECT_INT(1, host->count);
    EXPECT_INT(WEIR_ENOTFOUND, host_forget(host, "job-7"));
    EXPECT_INT(WEIR_ENOTFOUND, host_forget(host, "alive"));
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_DEAD));
    EXPECT_INT(1199, host->count);
    EXPECT_INT(0, host_dead(host, 10));
    EXPECT_INT(WEIR_OK, host_show(host, "alive"));
    host_add(host, "job-7", 0);
    AWAIT(host->added == 1202);
}

TEST(a_purge_deletes_every_job_in_every_state)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 5, 0);
    AWAIT(host->added == 5);
    host_bury(host, 5);
    host_add_numbered(host, 5, 3000, 0);
    for (int i = 0; i < 2000; i++)
        host_add(host, NULL, 1000 * i + 60000);
    AWAIT(host->added == 5000);
    EXPECT_INT(700,
               host_claim(host, 700, 60000) + host_claim(host, 188, 60000));
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(5000, host->count);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:wait weir:{t}:run "
                                  "weir:{t}:lease weir:{t}:dead weir:{t}:rec"));
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:ids"));
    EXPECT_INT(4, redis_int(proc, "DBSIZE")); /* no pack is left */
}

TEST(verdicts_of_purged_jobs_are_refused_and_counts_stay_true)
{
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 600, 0);
    AWAIT(host->added == 600);
    EXPECT_INT(300, host_claim(host, 256, 60000) + host_claim(host, 44, 60000));
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(600, host->count);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:lease"));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(300, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, host->stats.ready + host->stats.scheduled);
    EXPECT_INT(0, host->stats.running);
    EXPECT_INT(0, host->stats.done_total);
    host_add(host, "job-1", 0);
    AWAIT(host->added == 601);
    EXPECT_INT(1, host_claim(host, 10, 60000));
}

/* --- list --------------------------------------------------------------- */

TEST(jobs_are_listed_by_state_in_order_and_up_to_a_limit)
{
    struct host *host = host_open("w1");
    int64_t now_ms;

    host_add_numbered(host, 0, 40, 0);
    AWAIT(host->added == 40);
    EXPECT_INT(10, host_claim(host, 10, 60000));
    for (int i = 0; i < 500; i++)
        host_add(host, NULL, 600000 - i);
    host_add(host, "plain", 700000);
    AWAIT(host->added == 541);
    now_ms = redis_int(proc, "EVAL %s 0",
                       "return math.floor(redis.call('TIME')[1] * 1000)");
    EXPECT_INT(10, host_list(host, WEIR_JOB_RUNNING, 1000));
    EXPECT_INT(WEIR_JOB_RUNNING, host->info.state);
    EXPECT_INT(-1, host->info.due_ms);
    EXPECT_INT(30, host_list(host, WEIR_JOB_READY, 1000));
    EXPECT_INT(501, host_list(host, WEIR_JOB_SCHEDULED, 1000));
    EXPECT_TRUE(host->info.due_ms > now_ms + 590000 && /* mixed packs last */
                host->info.due_ms < now_ms + 610000);
    EXPECT_INT(WEIR_JOB_SCHEDULED, host->info.state);
    EXPECT_INT(123, host_list(host, WEIR_JOB_SCHEDULED, 123));
    EXPECT_INT(0, host_list(host, WEIR_JOB_SCHEDULED, 0));
}

/* Each job in a pack of its own, the last two in one claim. */
TEST(a_running_job_is_listed_with_its_worker_and_when_that_claimed_it)
{
    static const char *const ids[] = {"a", "b", "c"}, *const workers[] = {
                                                          "w1", "second",
                                                          "second"};
    struct host *host = host_open("w1"), *second = host_open("second");
    int64_t claimed_ms;

    for (int i = 0; i < 3; i++) {
        host_add(host, ids[i], 0);
        AWAIT(host->added == i + 1);
        if (i == 0)
            EXPECT_INT(1, host_claim(host, 10, 60000));
    }
    EXPECT_INT(2, host_claim(second, 10, 60000));
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(WEIR_OK, host_show(host, ids[i]));
        claimed_ms = host->info.claimed_ms;
        EXPECT_TRUE(claimed_ms > 0);
        EXPECT_INT(i + 1, host_list(host, WEIR_JOB_RUNNING, (size_t)i + 1));
        EXPECT_STR(ids[i], host->text[0]);
        EXPECT_STR(workers[i], host->text[5]);
        EXPECT_INT(claimed_ms, host->info.claimed_ms);
    }
}

/* --- connections that break ---------------------------------------------- */

/* Cut the store's connections again and again until it is done. */
static void cut_until_done(struct host *host)
{
    int cuts = 0;

    world_patience = patience_start(60.);
    while (!host->is_listed) {
        int ups = host->ups;

        for (int i = 0; i < 8 + 4 * cuts && !host->is_listed; i++)
            world_turn();
        if (host->is_listed)
            return;
        (void)redis_text(proc, "CLIENT KILL TYPE normal SKIPME yes");
        cuts++;
        while (host->ups == ups)
            world_turn();
    }
}

TEST(a_requeue_that_is_cut_and_sent_again_neither_loses_nor_doubles_a_job)
{
    struct host *host = open_with_dead(2000);

    host_ask_requeue(host, NULL);
    cut_until_done(host);
    EXPECT_INT(WEIR_OK, host->show_code);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, host->stats.dead);
    EXPECT_INT(2000, host->stats.ready + host->stats.scheduled);
    EXPECT_INT(2001, redis_int(proc, "HLEN weir:{t}:ids"));
}

TEST(a_purge_that_is_cut_and_sent_again_leaves_true_counts)
{
    struct host *host = open_with_dead(1000);

    host_add_numbered(host, 1000, 6000, 0);
    AWAIT(host->added == 6000);
    host_ask_purge(host, WEIR__PURGE_ALL);
    cut_until_done(host);
    EXPECT_INT(WEIR_OK, host->show_code);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, host->stats.dead + host->stats.running);
    EXPECT_INT(0, host->stats.ready + host->stats.scheduled);
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:ids"));
}

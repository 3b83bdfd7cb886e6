/* SPDX-License-Identifier: MIT */

#include "core/mem.h"
#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* Topics of the delay store as a whole: paused, with stored options, with
 * bounds, and with a topic of their own for dead jobs. */

/* --- pause -------------------------------------------------------------- */

TEST(a_paused_topic_gives_out_nothing_and_still_takes_jobs)
{
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_OK, host_pause(host, true));
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->claimed.is_paused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_TRUE(host->stats.paused);
    EXPECT_INT(WEIR_OK, host_pause(host, false));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_TRUE(!host->claimed.is_paused);
}

TEST(resuming_wakes_every_sleeper_and_adding_while_paused_wakes_none)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    AWAIT(one->wakes == 1 && other->wakes == 1); /* subscribed */
    EXPECT_INT(0, host_claim(one, 10, 60000));
    EXPECT_INT(WEIR_OK, host_pause(one, true));
    EXPECT_INT(0, host_claim(one, 10, 60000));
    EXPECT_INT(0, host_claim(other, 10, 60000));
    host_add(one, "a", 0);
    AWAIT(one->added == 1);
    EXPECT_INT(2, redis_int(proc, "ZCARD weir:{t}:idle"));
    EXPECT_INT(2, one->wakes + other->wakes);
    EXPECT_INT(WEIR_OK, host_pause(one, false));
    AWAIT(one->wakes == 2 && other->wakes == 2);
}

/* --- stored options ----------------------------------------------------- */

TEST(stored_options_are_told_with_the_next_claim_and_before_its_jobs)
{
    struct host *host = host_open("w1");

    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(0, host->options_count);
    EXPECT_INT(WEIR_OK, host_set(host, "retry", "3s 4s"));
    EXPECT_INT(WEIR_OK, host_set(host, "concurrency", "7"));
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_INT(1, host->options_count);
    EXPECT_STR("concurrency=7 retry=3s 4s ", host->options);
    EXPECT_INT(WEIR_OK, host_set(host, "retry", ""));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    AWAIT(host->options_count == 2);
    EXPECT_STR("concurrency=7 ", host->options);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(2, host->options_count);
    EXPECT_STR("3", redis_text(proc, "HGET weir:{t}:meta revision"));
}

TEST(a_topic_with_jobs_does_not_change_its_kind)
{
    struct host *host = host_open("w1");

    host_add(host, "a", 60000);
    AWAIT(host->added == 1);
    EXPECT_INT(WEIR_EKIND, host_set(host, "kind", "list"));
    EXPECT_INT(WEIR_OK, host_set(host, "kind", "delay"));
    EXPECT_INT(WEIR_OK, host_remove(host, "a"));
    EXPECT_INT(WEIR_OK, host_set(host, "kind", "list"));
    EXPECT_INT(0, host_claim(host, 10, 60000) +
                      (host->claimed.code == WEIR_EKIND ? 0 : 1));
}

TEST(a_topic_with_jobs_for_others_does_not_change_its_kind)
{
    struct host *host = host_open("w1");

    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:relay 0123456789ab entry"));
    EXPECT_INT(WEIR_EKIND, host_set(host, "kind", "bounded"));
    EXPECT_INT(1, redis_int(proc, "DEL weir:{t}:relay"));
    EXPECT_INT(WEIR_OK, host_set(host, "kind", "bounded"));
}

/* --- bounds of adds ----------------------------------------------------- */

TEST(jobs_beyond_max_pending_are_refused_one_by_one)
{
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_OK, host_set(host, "max_pending", "10"));
    host_add_numbered(host, 0, 8, 0);
    AWAIT(host->added == 8);
    host_add_numbered(host, 7, 15, 0); /* job-7 exists, two more fit */
    host_add(host, NULL, 0);
    AWAIT(host->added + host->existing + host->failed == 17);
    EXPECT_INT(10, host->added);
    EXPECT_INT(1, host->existing);
    EXPECT_INT(6, host->failed);
    EXPECT_INT(WEIR_EFULL, host->last_code);
    EXPECT_INT(11, redis_int(proc, "HLEN weir:{t}:ids"));
    EXPECT_INT(10, host_claim(host, 100, 60000));
    host_add(host, "job-14", 0); /* running jobs are not pending */
    AWAIT(host->added == 11);
    EXPECT_INT(WEIR_OK, host_set(host, "max_pending", ""));
    host_add_numbered(host, 20, 60, 0);
    AWAIT(host->added == 51);
}

static void add_body(struct host *host, const char *id, size_t len)
{
    uint8_t *body = weir__mem_new(len);
    struct weir__record record = {.body = {body, len}};

    EXPECT_TRUE(body != NULL && len > 65540);
    body[0] = 0xc6; /* bin with 32 bits of length */
    body[1] = (uint8_t)((len - 5) >> 24);
    body[2] = (uint8_t)((len - 5) >> 16);
    body[3] = (uint8_t)((len - 5) >> 8);
    body[4] = (uint8_t)(len - 5);
    host_add_record(host, id, &record, 0);
    weir__mem_free(body);
}

TEST(bodies_are_bounded_by_what_is_stored_with_the_topic)
{
    struct host *host = host_open("w1"), *other;

    add_body(host, "large", 1024 * 1024);
    add_body(host, "larger", 1024 * 1024 + 1);
    AWAIT(host->added == 1 && host->failed == 1);
    EXPECT_INT(WEIR_OK, host_set(host, "max_body", "3MiB"));
    other = host_open("w2");
    add_body(other, "larger", 1024 * 1024 + 1);
    AWAIT(other->added == 1);
    add_body(other, "largest", 3 * 1024 * 1024 + 1);
    AWAIT(other->failed == 1);
    EXPECT_STR("largest", other->last_id);
    EXPECT_INT(WEIR_ETOOBIG, other->last_code);
    host_add(host, "small", 0); /* its answer tells of the change */
    AWAIT(host->added == 2);
    add_body(host, "again", 2 * 1024 * 1024);
    AWAIT(host->added == 3);
    EXPECT_INT(4, host_claim(host, 10, 60000) + host_claim(host, 10, 60000) +
                      host_claim(host, 10, 60000));
}

/* --- on_dead ------------------------------------------------------------ */

/* Dead jobs of "t" move to "d", which the other host serves. */
static struct host *open_with_grave(struct host **ret_grave)
{
    struct host *host = host_open("w1"), *grave = host_open("w2");

    host_serve(host, "on_dead=d");
    host_use(grave, "d");
    *ret_grave = grave;
    return host;
}

TEST(dead_jobs_move_with_reason_and_counters_into_the_topic_of_on_dead)
{
    struct host *grave, *host = open_with_grave(&grave);
    struct weir__run *run;

    host_add_numbered(host, 0, 300, 0);
    AWAIT(host->added == 300);
    host_bury(host, 300);
    EXPECT_INT(0, host_dead(host, 10));
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:ids"));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(300, host->stats.failed_total);
    EXPECT_INT(0, host->stats.done_total);
    EXPECT_INT(0, host->stats.running);
    EXPECT_INT(WEIR_OK, host_stats(grave));
    EXPECT_INT(300, grave->stats.added_total);
    EXPECT_INT(300, host_claim(grave, 1000, 60000));
    EXPECT_INT(WEIR_OK, host_show(grave, "job-0"));
    EXPECT_INT(WEIR_JOB_RUNNING, grave->info.state);
    run = host_take(grave);
    EXPECT_STR("job-0", run_id(run));
    EXPECT_MEM("failed", 6, run->record.reason.ptr, run->record.reason.len);
    EXPECT_MEM("no such order", 13, run->record.error.ptr,
               run->record.error.len);
    EXPECT_INT(3, run->record.counters.attempt);
    EXPECT_INT(2, run->record.counters.snoozes);
    EXPECT_INT(3, run->record.spent);
    EXPECT_TRUE(run->record.headers.len > 0);
    host_settle(grave, run, WEIR__OUTCOME_DONE);
    host_settle_all(grave, WEIR__OUTCOME_DONE);
    host_await_settled(grave);
    EXPECT_INT(9, redis_int(proc, "DBSIZE")); /* no pack is left */
}

TEST(a_full_server_settles_what_is_not_buried)
{
    struct host *grave, *host = open_with_grave(&grave);

    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    EXPECT_INT(3, host_claim(host, 10, 60000));
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 1"));
    for (int i = 0; i < 3; i++) {
        struct weir__run *run = host_take(host);

        run->record.reason = weir__slice_str("failed");
        host_settle(host, run,
                    i == 1 ? WEIR__OUTCOME_DEAD : WEIR__OUTCOME_DONE);
    }
    AWAIT(host->store->ops->unsettled(host->topic) == 1);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(2, host->stats.done_total);
    EXPECT_INT(1, host->stats.running);
    EXPECT_INT(0, host->stats.failed_total);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 0"));
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(1, host_claim(grave, 10, 60000));
}

TEST(a_dead_job_whose_id_exists_in_the_other_topic_gets_a_made_one)
{
    struct host *grave, *host = open_with_grave(&grave);

    host_add(grave, "job-1", 60000);
    AWAIT(grave->added == 1);
    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    host_bury(host, 3);
    EXPECT_INT(3, host_claim(grave, 10, 60000));
    EXPECT_STR("job-0", run_id(host_take(grave)));
    EXPECT_STR("job-2", run_id(host_take(grave)));
    EXPECT_INT('@', run_id(grave->runs)[0]);
    EXPECT_TRUE(grave->runs->record.headers.len > 35);
    EXPECT_MEM("\xde\0\5\xd9\x0aweir.topic\xd9\1t\xd9\7weir.id\xd9\5job-1", 34,
               grave->runs->record.headers.ptr, 34);
    EXPECT_INT(WEIR_OK, host_show(grave, "job-1"));
    EXPECT_INT(WEIR_JOB_SCHEDULED, grave->info.state);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:ids job-1"));
}

/* Those whose ids exist follow under made ones, but not before there is room;
 * the others are there by then. */
TEST(dead_jobs_that_came_into_the_other_topic_do_not_stay_as_well)
{
    struct host *grave, *host = open_with_grave(&grave);

    host_add(grave, "job-1", 60000);
    AWAIT(grave->added == 1);
    (void)redis_int(proc, "HSET weir:{d}:meta max_pending 2");
    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    host_bury(host, 3);
    AWAIT(strstr(world_log, "d is full") != NULL);
    EXPECT_STR("3", redis_text(proc, "HGET weir:{d}:meta added"));
    (void)redis_int(proc, "HSET weir:{d}:meta kind list");
    AWAIT(host_dead(host, 10) > 0);
    EXPECT_INT(1, host_dead(host, 10));
    EXPECT_INT(1, redis_int(proc, "HEXISTS weir:{t}:rec job-1"));
}

TEST(dead_jobs_stay_where_the_topic_of_on_dead_is_of_another_kind)
{
    struct host *grave, *host = open_with_grave(&grave);

    (void)redis_int(proc, "HSET weir:{d}:meta kind list");
    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    host_bury(host, 3);
    EXPECT_INT(3, host_dead(host, 10));
    EXPECT_STR("undeliverable", (const char *)host->info.reason.ptr);
    EXPECT_MEM("\x07", 1, host->info.body.ptr, host->info.body.len);
    EXPECT_INT(WEIR_OK, host_requeue(host, "job-1"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
}

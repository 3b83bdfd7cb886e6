/* SPDX-License-Identifier: MIT */

#include <stdlib.h>

#include "adapters/redis/store/kind.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"

/* The store of stream topics: an existing stream, read through a group that
 * other consumers may share. */

static long long pending(void)
{
    const char *text = redis_text(proc, "XPENDING t weir");

    return text == NULL ? 0 : atoll(text);
}

static bool body_is(const struct weir__run *run, const char *bytes)
{
    return weir__slice_equal(run->record.body, weir__slice_str(bytes));
}

static struct host *stream_open(const char *worker)
{
    return host_open_kind(worker, "stream");
}

static void add(const char *id)
{
    EXPECT_STR(id, redis_text(proc, "XADD t %s body 7", id));
}

/* Another consumer of the group takes what is new. */
static void take_as_other(void)
{
    EXPECT_TRUE(redis_text(proc, "XREADGROUP GROUP weir other STREAMS t >") !=
                NULL);
}

static void expect_clean(void)
{
    EXPECT_INT(0, pending());
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:wait "
                                  "weir:{t}:lease weir:{t}:held weir:{t}:past "
                                  "weir:{t}:dead"));
}

TEST(fields_become_the_body_and_a_field_body_is_the_value_itself)
{
    struct host *host = stream_open("w1");
    struct weir__run *run;

    EXPECT_STR("5-1", redis_text(proc, "XADD t 5-1 order 7 kind close"));
    EXPECT_STR("5-2", redis_text(proc, "XADD t 5-2 body %s", "{\"a\": 1}"));
    EXPECT_STR("5-3", redis_text(proc, "XADD t 5-3 body %s", "\xc1oops"));
    EXPECT_INT(3, host_claim(host, 10, 60000));
    run = host_take(host);
    EXPECT_STR("5-1", run_id(run));
    EXPECT_INT(5, run->due_ms);
    EXPECT_TRUE(body_is(run, "\x82\xa5order\xa1"
                             "7\xa4kind\xa5"
                             "close"));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    run = host_take(host);
    EXPECT_TRUE(body_is(run, "\x81\xa1"
                             "a\x01"));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    EXPECT_TRUE(host->runs->is_malformed);
    EXPECT_INT(3, pending());
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(3, redis_int(proc, "XLEN t"));
    expect_clean();
}

TEST(the_option_body_says_how_a_field_body_is_read)
{
    struct host *host = stream_open("w1");

    host_serve(host, "body=text");
    EXPECT_STR("5-1", redis_text(proc, "XADD t 5-1 body 12"));
    EXPECT_STR("5-2", redis_text(proc, "XADD t 5-2 kind 12"));
    EXPECT_INT(2, host_claim(host, 10, 60000));
    EXPECT_TRUE(body_is(host_take(host), "\xa2"
                                         "12"));
    EXPECT_TRUE(body_is(host_take(host), "\x81\xa4kind\xa2"
                                         "12"));
    EXPECT_STR("text", redis_text(proc, "HGET weir:{t}:meta body"));
}

TEST(an_id_that_is_no_time_tells_no_age)
{
    struct host *host = stream_open("w1");

    EXPECT_INT(0, host_claim(host, 10, 3600000));
    add("5-1");
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.ready);
    EXPECT_INT(-1, host->stats.oldest_us);
    add("1577836800000-1");
    EXPECT_INT(1, host_claim(host, 1, 3600000));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_TRUE(host->stats.oldest_us > INT64_C(86400000000));
}

TEST(a_group_that_is_missing_is_made_where_it_should_start)
{
    struct host *host = stream_open("w1"), *other = stream_open("w2");

    EXPECT_INT(0, host_claim(host, 10, 60000)); /* no stream yet */
    EXPECT_INT(1, redis_int(proc, "EXISTS t"));
    add("5-1");
    host_serve(other, "start=$", "group=mine");
    EXPECT_INT(0, host_claim(other, 10, 60000));
    add("5-2");
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_STR("5-2", run_id(other->runs));
    EXPECT_INT(1, redis_int(proc, "XGROUP DESTROY t weir"));
    EXPECT_INT(2, host_claim(host, 10, 60000));
}

TEST(a_retry_stays_pending_until_it_runs_again)
{
    struct host *host = stream_open("w1");
    struct weir__run *run;

    add("5-1");
    EXPECT_INT(1, host_claim(host, 10, 60000));
    run = host_take(host);
    run->record.counters.attempt = 2;
    run->delay_ms = 60000;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(1, pending());
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:held"));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->claimed.next_due_us > 0);
    due_now("wait", "5-1");
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_INT(2, host->runs->record.counters.attempt);
    EXPECT_TRUE(body_is(host->runs, "\x07"));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    expect_clean();
}

TEST(what_was_trimmed_or_taken_over_while_it_waited_does_not_run)
{
    struct host *host = stream_open("w1");

    add("5-1");
    add("5-2");
    add("5-3");
    EXPECT_INT(3, host_claim(host, 10, 60000));
    host_settle_all(host, WEIR__OUTCOME_RETURN);
    host_await_settled(host);
    EXPECT_INT(1, redis_int(proc, "XDEL t 5-1"));
    EXPECT_TRUE(redis_text(proc, "XCLAIM t weir other 0 5-2") != NULL);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_STR("5-3", run_id(host->runs));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.lost_total);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(1, pending()); /* the other consumer's */
    EXPECT_INT(1, redis_int(proc, "XACK t weir 5-2"));
    expect_clean();
}

TEST(what_a_dead_consumer_left_is_taken_after_claim_idle_and_not_before)
{
    struct host *host = stream_open("w1");

    EXPECT_INT(0, host_claim(host, 10, 60000));
    add("5-1");
    take_as_other();
    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:meta swept 0") == 0);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:meta swept 0") == 0);
    host_serve(host, "claim_idle=50ms");
    AWAIT(host_claim(host, 10, 60000) == 1);
    EXPECT_INT(1, host->runs->record.counters.crashes);
    EXPECT_INT(1, host->runs->blamed);
    EXPECT_TRUE(host->runs->is_suspect);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    expect_clean();
}

TEST(what_waits_or_runs_here_is_not_taken_over)
{
    struct host *host = stream_open("w1"), *other = stream_open("w2");
    struct weir__run *run;

    host_serve(host, "claim_idle=50ms");
    host_serve(other, "claim_idle=50ms");
    add("5-1");
    add("5-2");
    EXPECT_INT(2, host_claim(host, 10, 60000));
    run = host_take(host);
    run->delay_ms = 60000;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    for (int sweeps = 0; sweeps < 3;) {
        long long swept;

        EXPECT_CONTAINS("5-1 5-2",
                        redis_text(proc, "XCLAIM t weir weir:t 0 5-1 5-2 "
                                         "IDLE 70000 JUSTID"));
        EXPECT_INT(0, redis_int(proc, "HSET weir:{t}:meta swept 0"));
        EXPECT_INT(0, host_claim(other, 10, 60000));
        swept = atoll(redis_text(proc, "HGET weir:{t}:meta swept"));
        sweeps += swept > 0;
    }
    EXPECT_STR("2 5-1 5-2 weir:t 2", redis_text(proc, "XPENDING t weir"));
}

TEST(entries_of_a_worker_that_died_come_back_after_its_lease)
{
    struct host *dead = stream_open("w1"), *host = stream_open("w2");

    add("5-1");
    add("5-2");
    lease_outlive(dead, 2);
    host_settle(dead, host_take(dead), WEIR__OUTCOME_DONE);
    host_await_settled(dead);
    host_close(dead);
    AWAIT(host_claim(host, 10, 60000) == 1);
    EXPECT_STR("5-2", run_id(host->runs));
    EXPECT_INT(1, host->runs->record.counters.crashes);
    EXPECT_INT(0, host->runs->blamed);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    expect_clean();
}

TEST(a_renewed_entry_does_not_look_abandoned_to_others)
{
    struct host *host = stream_open("w1");

    add("5-1");
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_TRUE(redis_text(proc, "XCLAIM t weir weir:t 0 5-1 IDLE 70000 "
                                 "JUSTID") != NULL);
    EXPECT_CONTAINS("5-1",
                    redis_text(proc, "XPENDING t weir IDLE 60000 - + 10"));
    host->store->ops->renew(host->topic, 60000);
    AWAIT(redis_text(proc, "XPENDING t weir IDLE 60000 - + 10")[0] == '\0');
    EXPECT_INT(1, pending());
}

TEST(done_entries_are_deleted_where_that_is_wanted)
{
    struct host *host = stream_open("w1");

    host_serve(host, "after=delete");
    add("5-1");
    add("5-2");
    EXPECT_INT(1, host_claim(host, 1, 60000));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(1, redis_int(proc, "XLEN t"));
}

TEST(the_dead_are_acknowledged_and_kept_apart_from_the_stream)
{
    struct host *host = stream_open("w1");
    struct weir__run *run;

    add("5-1");
    EXPECT_INT(1, host_claim(host, 10, 60000));
    run = host_take(host);
    run->record.reason = weir__slice_str("failed");
    run->record.error = weir__slice_str("no such order");
    host_settle(host, run, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(0, pending());
    EXPECT_INT(1, redis_int(proc, "XDEL t 5-1"));
    EXPECT_INT(1, host_dead(host, 10));
    EXPECT_STR("no such order", host->text[1]);
    EXPECT_STR("failed", host->text[2]);
    EXPECT_STR("\x07", host->text[3]);
    EXPECT_INT(WEIR_ENOTFOUND, host_requeue(host, "5-2"));
    EXPECT_INT(WEIR_OK, host_requeue(host, ""));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_STR("5-1", run_id(host->runs));
    EXPECT_TRUE(body_is(host->runs, "\x07"));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    expect_clean();
}

TEST(an_entry_that_the_other_topic_cannot_take_is_dead_where_it_came_from)
{
    struct host *host = stream_open("w1");

    EXPECT_INT(1, redis_int(proc, "HSET weir:{later}:meta kind bounded"));
    host_serve(host, "on_dead=later", "after=delete");
    add("5-1");
    EXPECT_INT(1, host_claim(host, 10, 60000));
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(0, pending());
    EXPECT_INT(0, redis_int(proc, "XLEN t"));
    do
        EXPECT_INT(WEIR_OK, host_stats(host));
    while (host->stats.relaying > 0);
    EXPECT_INT(1, host_dead(host, 10));
    EXPECT_STR("5-1", host->text[0]);
    EXPECT_STR("undeliverable", host->text[2]);
    EXPECT_INT(WEIR_OK, host_requeue(host, "5-1"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_STR("5-1", run_id(host->runs));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    expect_clean();
}

TEST(an_idle_worker_is_woken_by_an_entry_also_after_a_cut)
{
    struct host *host = stream_open("w1");

    add("5-1");
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    add("5-2"); /* perhaps before it waits */
    AWAIT(host->wakes == 1);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_TRUE(redis_int(proc, "CLIENT KILL TYPE normal") >= 1);
    AWAIT(host->ups == 2);
    EXPECT_INT(1, host->wakes);
    add("5-3");
    AWAIT(host->wakes == 2);
    EXPECT_INT(1, host_claim(host, 10, 60000));
}

TEST(streams_are_counted_listed_and_passed_over)
{
    struct host *host = stream_open("w1");

    EXPECT_INT(WEIR_ENOTFOUND, host_stats(host));
    host_add(host, NULL, 0);
    AWAIT(host->added == 1);
    EXPECT_CONTAINS("-0", host->last_id);
    EXPECT_CONTAINS("body 7", redis_text(proc, "XRANGE t - +"));
    EXPECT_INT(1, redis_int(proc, "DEL t"));
    add("5-1");
    add("5-2");
    add("5-3");
    add("5-4");
    EXPECT_INT(2, host_claim(host, 2, 60000));
    host_settle(host, host_take(host), WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_STR("stream", host->kind);
    EXPECT_INT(2, host->stats.ready);
    EXPECT_INT(1, host->stats.running);
    EXPECT_INT(1, host->stats.dead);
    EXPECT_INT(4, host->stats.added_total);
    EXPECT_INT(2, host_list(host, WEIR_JOB_READY, 10));
    EXPECT_STR("5-4", host->text[0]);
    EXPECT_INT(1, host_list(host, WEIR_JOB_READY, 1));
    EXPECT_STR("5-3", host->text[0]);
    EXPECT_INT(1, host_list(host, WEIR_JOB_RUNNING, 10));
    EXPECT_STR("\x07", host->text[3]);
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(4, host->count);
    EXPECT_INT(4, redis_int(proc, "XLEN t"));
    expect_clean();
    EXPECT_INT(0, host_claim(host, 2, 60000));
}

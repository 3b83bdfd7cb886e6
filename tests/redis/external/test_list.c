/* SPDX-License-Identifier: MIT */

#include "adapters/redis/store/kind.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"

/* The store of list topics: a plain list that any program fills. */

/* Until nothing of it is on its way to another topic. */
static void await_sent(struct host *host)
{
    do
        EXPECT_INT(WEIR_OK, host_stats(host));
    while (host->stats.relaying > 0);
}

static bool body_is(const struct weir__run *run, const char *bytes)
{
    return weir__slice_equal(run->record.body, weir__slice_str(bytes));
}

/* Nothing of the topic's is left but its counters. */
static void expect_clean(void)
{
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:wait "
                                  "weir:{t}:lease weir:{t}:held weir:{t}:past "
                                  "weir:{t}:auto weir:{t}:dead "
                                  "weir:{t}:relay"));
}

TEST(entries_of_any_program_come_in_order_with_their_bodies)
{
    struct host *host = host_open_kind("w1", "list");
    struct weir__run *run;

    EXPECT_INT(1, redis_int(proc, "RPUSH t %s", "{\"a\": 1}"));
    EXPECT_INT(2, redis_int(proc, "RPUSH t %s",
                            "\x81\xa1"
                            "b\x02"));
    EXPECT_INT(3, redis_int(proc, "RPUSH t %s", "7"));
    EXPECT_INT(3, host_claim(host, 10, 60000));
    run = host_take(host);
    EXPECT_TRUE(body_is(run, "\x81\xa1"
                             "a\x01"));
    EXPECT_STR("@0000000000000001", run_id(run));
    EXPECT_INT(3, redis_int(proc, "HLEN weir:{t}:held"));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    run = host_take(host);
    EXPECT_TRUE(body_is(run, "\x81\xa1"
                             "b\x02"));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    run = host_take(host);
    EXPECT_TRUE(body_is(run, "\x07"));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, redis_int(proc, "LLEN t"));
    expect_clean();
}

TEST(a_body_that_is_no_value_is_malformed_and_kept_with_the_dead)
{
    struct host *host = host_open_kind("w1", "list");
    struct weir__run *run;

    EXPECT_INT(1, redis_int(proc, "RPUSH t %s", "\xc1oops"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    run = host_take(host);
    EXPECT_TRUE(run->is_malformed);
    run->record.reason = weir__slice_str("malformed");
    host_settle(host, run, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(1, host_dead(host, 10));
    EXPECT_STR("malformed", host->text[2]);
    EXPECT_STR("\xa5\xc1oops", host->text[3]);
    EXPECT_INT(1, redis_int(proc, "RPUSH t %s", "\xff\xff"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_TRUE(host_take(host)->is_malformed);
    EXPECT_INT(WEIR_OK, host_requeue(host, "@0000000000000001"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->runs->is_malformed);
    EXPECT_INT(0, host_dead(host, 10));
}

TEST(a_claim_whose_worker_died_comes_back_in_order_and_first)
{
    struct host *dead = host_open_kind("w1", "list");
    struct host *host = host_open_kind("w2", "list");

    EXPECT_INT(3, redis_int(proc, "RPUSH t 1 2 3"));
    lease_outlive(dead, 2);
    host_close(dead);
    AWAIT(host_claim(host, 0, 60000) == 0 &&
          redis_int(proc, "ZCARD weir:{t}:wait") == 2);
    EXPECT_INT(3, host_claim(host, 10, 60000));
    for (int i = 0; i < 3; i++) {
        struct weir__run *run = host_take(host);

        EXPECT_INT(i + 1, run->record.body.ptr[0]);
        EXPECT_INT(i < 2, run->record.counters.crashes);
        EXPECT_INT(i < 2, run->is_suspect);
        host_settle(host, run, WEIR__OUTCOME_DONE);
    }
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(2, host->stats.crashed_total);
    EXPECT_INT(3, host->stats.done_total);
    expect_clean();
}

TEST(a_verdict_after_the_lease_changes_nothing)
{
    struct host *slow = host_open_kind("w1", "list");
    struct host *host = host_open_kind("w2", "list");

    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    lease_outlive(slow, 1);
    AWAIT(host_claim(host, 10, 60000) == 1);
    host_settle_all(slow, WEIR__OUTCOME_DONE);
    host_await_settled(slow);
    EXPECT_INT(1, slow->refused);
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:held"));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    expect_clean();
}

TEST(a_renewed_lease_holds_and_a_lost_one_is_told)
{
    struct host *slow = host_open_kind("w1", "list");
    struct host *host = host_open_kind("w2", "list");
    const char *lease;
    int64_t end;

    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    EXPECT_INT(1, host_claim(slow, 2, 20000));
    lease = lease_name(slow->runs);
    end = lease_end(lease);
    slow->store->ops->renew(slow->topic, 60000);
    AWAIT(lease_end(lease) >= end + 40000);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(1, redis_int(proc, "ZREM weir:{t}:lease %s", lease));
    slow->store->ops->renew(slow->topic, 60000);
    AWAIT(slow->lost_token == slow->runs->token);
}

TEST(retries_wait_for_their_time_and_know_what_happened)
{
    struct host *host = host_open_kind("w1", "list");
    struct weir__run *run;

    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    run = host_take(host);
    run->record.counters.attempt = 1;
    run->record.counters.failures = 1;
    run->delay_ms = 60000;
    host_settle(host, run, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(1, host_list(host, WEIR_JOB_SCHEDULED, 10));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->claimed.next_due_us > 0 &&
                host->claimed.next_due_us <= 60000000);
    due_now("wait", "@0000000000000001");
    EXPECT_TRUE(host_stats(host) == WEIR_OK && host->stats.oldest_us >= 0);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    run = host_take(host);
    EXPECT_INT(1, run->record.counters.attempt);
    EXPECT_INT(1, run->record.body.ptr[0]);
    EXPECT_STR("@0000000000000001", run_id(run));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.retried_total);
    expect_clean();
}

TEST(with_auto_ack_nothing_is_kept_and_what_a_dead_worker_had_is_counted)
{
    struct host *dead = host_open_kind("w1", "list");
    struct host *host = host_open_kind("w2", "list");

    host_serve(dead, "auto_ack=yes");
    host_serve(host, "auto_ack=yes");
    EXPECT_INT(5, redis_int(proc, "RPUSH t 1 2 3 4 5"));
    lease_outlive(dead, 3);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:held weir:{t}:run"));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(3, host->stats.running);
    host_settle(dead, host_take(dead), WEIR__OUTCOME_DONE);
    host_await_settled(dead);
    host_close(dead);
    EXPECT_INT(2, host_claim(host, 10, 60000));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    AWAIT(host_claim(host, 10, 60000) == 0 &&
          redis_int(proc, "EXISTS weir:{t}:lease") == 0);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(3, host->stats.done_total);
    EXPECT_INT(2, host->stats.lost_total);
    EXPECT_INT(5, host->stats.added_total);
    expect_clean();
}

TEST(with_auto_ack_a_retry_is_kept_until_it_is_done)
{
    struct host *host = host_open_kind("w1", "list");

    host_serve(host, "auto_ack=yes");
    EXPECT_INT(2, redis_int(proc, "RPUSH t 1 2"));
    EXPECT_INT(2, host_claim(host, 10, 60000));
    host_settle(host, host_take(host), WEIR__OUTCOME_RETRY);
    host_settle(host, host_take(host), WEIR__OUTCOME_RETURN);
    host_await_settled(host);
    EXPECT_INT(2, redis_int(proc, "HLEN weir:{t}:held"));
    EXPECT_INT(2, host_claim(host, 10, 60000));
    EXPECT_INT(1, host->runs->record.body.ptr[0]);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    expect_clean();
}

TEST(a_retry_is_handed_to_a_delay_topic)
{
    struct host *host = host_open_kind("w1", "list");
    struct host *later = host_open("w2");

    host_use(later, "later");
    host_serve(host, "on_retry=later");
    EXPECT_INT(3, redis_int(proc, "RPUSH t 1 2 3"));
    EXPECT_INT(3, host_claim(host, 10, 60000));
    for (int i = 0; i < 2; i++) {
        struct weir__run *run = host_take(host);

        run->record.counters.attempt = 1;
        run->delay_ms = i * 60000;
        host_settle(host, run, WEIR__OUTCOME_RETRY);
    }
    host_settle(host, host_take(host), WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    await_sent(host);
    expect_clean();
    EXPECT_INT(WEIR_OK, host_stats(later));
    EXPECT_INT(2, later->stats.scheduled + later->stats.ready);
    AWAIT(later->arrived + host_claim(later, 10, 60000) >= 1);
    EXPECT_INT(1, later->arrived);
    EXPECT_TRUE(later->claimed.next_due_us < 60000000);
    EXPECT_INT(WEIR_OK, host_stats(later));
    EXPECT_INT(1, later->stats.scheduled);
    EXPECT_INT(1, later->runs->record.body.ptr[0]);
    EXPECT_INT(1, later->runs->record.counters.attempt);
    EXPECT_TRUE(weir__slice_equal(
        later->runs->record.headers,
        weir__slice_str("\x82\xaaweir.topic\xa1t\xa7weir.id\xb1"
                        "@0000000000000001")));
}

TEST(a_retry_whose_lease_is_lost_is_not_handed_over)
{
    struct host *slow = host_open_kind("w1", "list");
    struct host *host = host_open_kind("w2", "list");

    host_serve(slow, "on_retry=later");
    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    lease_outlive(slow, 1);
    AWAIT(host_claim(host, 10, 60000) == 1);
    host_settle_all(slow, WEIR__OUTCOME_RETRY);
    host_await_settled(slow);
    EXPECT_INT(1, slow->refused);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:run"));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:relay"));
    EXPECT_STR("", redis_text(proc, "KEYS weir:{t}:o:*"));
    EXPECT_STR("", redis_text(proc, "KEYS weir:{later}:*"));
}

TEST(an_entry_that_the_other_topic_cannot_take_is_dead_where_it_came_from)
{
    struct host *host = host_open_kind("w1", "list");

    EXPECT_INT(1, redis_int(proc, "HSET weir:{later}:meta kind list"));
    host_serve(host, "on_retry=later");
    EXPECT_INT(2, redis_int(proc, "RPUSH t -106 %s", "{\"a\": 1}"));
    EXPECT_INT(2, host_claim(host, 2, 60000));
    host->runs->record.counters.attempt = 1;
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    await_sent(host);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{later}:wait"));
    EXPECT_STR("", redis_text(proc, "KEYS weir:{t}:o:*"));
    EXPECT_INT(2, host->stats.dead);
    EXPECT_INT(2, host_dead(host, 10));
    EXPECT_STR("@0000000000000002", host->text[0]);
    EXPECT_STR("later is not of kind delay", host->text[1]);
    EXPECT_STR("undeliverable", host->text[2]);
    EXPECT_STR("\x81\xa1"
               "a\x01",
               host->text[3]);
    EXPECT_INT(WEIR_OK, host_requeue(host, "@0000000000000001"));
    EXPECT_INT(1, host_claim(host, 2, 60000));
    EXPECT_STR("@0000000000000001", run_id(host->runs));
    EXPECT_TRUE(body_is(host->runs, "\xd0\x96")); /* no letter */
    EXPECT_INT(WEIR_OK, host_forget(host, ""));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    expect_clean();
}

TEST(those_that_cannot_be_taken_are_dead_up_to_the_bound)
{
    struct host *host = host_open_kind("w1", "list");

    EXPECT_INT(1, redis_int(proc, "HSET weir:{later}:meta kind stream"));
    host_serve(host, "on_dead=later", "max_dead=2");
    EXPECT_INT(5, redis_int(proc, "RPUSH t 1 2 3 4 5"));
    EXPECT_INT(5, host_claim(host, 5, 60000));
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    await_sent(host);
    EXPECT_INT(5, host->stats.failed_total);
    EXPECT_INT(3, host->stats.dropped_total);
    EXPECT_INT(2, host->stats.dead);
    EXPECT_INT(2, redis_int(proc, "HLEN weir:{t}:held"));
    EXPECT_INT(2, redis_int(proc, "HLEN weir:{t}:past"));
}

TEST(retries_and_dead_ones_of_one_call_go_to_two_topics)
{
    struct host *host = host_open_kind("w1", "list");
    static const enum weir__outcome outcomes[] = {
        WEIR__OUTCOME_RETRY, WEIR__OUTCOME_DEAD, WEIR__OUTCOME_DONE};

    host_serve(host, "on_retry=later", "on_dead=graves");
    EXPECT_INT(6, redis_int(proc, "RPUSH t 1 2 3 4 5 6"));
    EXPECT_INT(6, host_claim(host, 6, 60000));
    for (size_t i = 0; i < 6; i++)
        host_settle(host, host_take(host), outcomes[i % 3]);
    host_await_settled(host);
    await_sent(host);
    EXPECT_INT(2, host->stats.done_total);
    EXPECT_INT(2, host->stats.retried_total);
    EXPECT_INT(2, host->stats.failed_total);
    EXPECT_STR("2", redis_text(proc, "HGET weir:{later}:meta added"));
    EXPECT_STR("2", redis_text(proc, "HGET weir:{graves}:meta added"));
    EXPECT_INT(1, redis_int(proc, "SISMEMBER weir:topics graves"));
    expect_clean();
}

TEST(with_auto_ack_a_retry_is_handed_over_as_well)
{
    struct host *host = host_open_kind("w1", "list");

    host_serve(host, "auto_ack=yes", "on_retry=later");
    EXPECT_INT(2, redis_int(proc, "RPUSH t 1 2"));
    EXPECT_INT(2, host_claim(host, 2, 60000));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    await_sent(host);
    EXPECT_STR("2", redis_text(proc, "HGET weir:{later}:meta added"));
    expect_clean();
}

TEST(while_the_other_topic_is_full_entries_wait_and_none_is_lost)
{
    struct host *host = host_open_kind("w1", "list");
    struct host *later = host_open("w2");

    host_use(later, "later");
    EXPECT_INT(WEIR_OK, host_set(later, "max_pending", "1"));
    host_add(later, "first", 3600000);
    AWAIT(later->added == 1);
    host_serve(host, "on_retry=later");
    EXPECT_INT(2, redis_int(proc, "RPUSH t 1 2"));
    EXPECT_INT(2, host_claim(host, 2, 60000));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:held "
                                  "weir:{t}:lease"));
    AWAIT(host->store->ops->unsettled(host->topic) == 0);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.relaying);
    EXPECT_INT(WEIR_OK, host_set(later, "max_pending", "9"));
    await_sent(host);
    EXPECT_STR("3", redis_text(proc, "HGET weir:{later}:meta added"));
    expect_clean();
}

TEST(an_outbox_of_another_type_refuses_verdicts_and_keeps_their_entries)
{
    struct host *host = host_open_kind("w1", "list");

    EXPECT_STR("OK", redis_text(proc, "SET weir:{t}:relay x"));
    host_serve(host, "on_retry=later");
    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    EXPECT_INT(1, host_claim(host, 1, 60000));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(1, host->refused);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:run"));
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:held"));
}

/* Entries of a newer version stay where they are. */
static void fill_outbox(void)
{
    EXPECT_INT(1, redis_int(proc, "EVAL %s 0",
                            "for i = 1, 10000 do"
                            "  redis.call('HSET', 'weir:{t}:relay',"
                            "    string.format('-%011d', i),"
                            "    cmsgpack.pack({2,0,0,0,0,0,0,0,0,0})) "
                            "end return 1"));
}

TEST(a_full_outbox_holds_claims_back_until_there_is_less)
{
    struct host *host = host_open_kind("w1", "list");

    host_serve(host, "on_retry=later");
    fill_outbox();
    EXPECT_INT(2, redis_int(proc, "RPUSH t 1 2"));
    EXPECT_INT(1, host_claim(host, 1, 60000));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    (void)host_claim(host, 1, 60000);
    EXPECT_INT(WEIR_ESERVER, host->claimed.code);
    EXPECT_INT(1, redis_int(proc, "LLEN t"));
    EXPECT_INT(1, redis_int(proc, "DEL weir:{t}:relay"));
    (void)host_claim(host, 1, 60000);
    EXPECT_INT(1, host_claim(host, 1, 60000));
}

TEST(the_dead_are_bounded_and_may_go_to_a_topic_of_their_own)
{
    struct host *host = host_open_kind("w1", "list");

    host_serve(host, "max_dead=2");
    EXPECT_INT(5, redis_int(proc, "RPUSH t 1 2 3 4 5"));
    EXPECT_INT(4, host_claim(host, 4, 60000));
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(2, host_dead(host, 10));
    EXPECT_INT(2, redis_int(proc, "HLEN weir:{t}:held"));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(4, host->stats.failed_total);
    EXPECT_INT(2, host->stats.dropped_total);
    host_serve(host, "on_dead=later");
    EXPECT_INT(1, host_claim(host, 4, 60000));
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(2, host_dead(host, 10));
    await_sent(host);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{later}:wait"));
    EXPECT_INT(WEIR_OK, host_forget(host, ""));
    EXPECT_INT(2, host->count);
    expect_clean();
}

TEST(an_idle_worker_is_woken_by_a_push_also_after_its_connection_was_cut)
{
    struct host *host = host_open_kind("w1", "list");

    EXPECT_INT(0, host_claim(host, 10, 60000));
    AWAIT(redis_int(proc, "RPUSH t 1") == 1 && redis_int(proc, "DEL t") == 1 &&
          host->wakes > 0);
    host->wakes = 0;
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(0, host->wakes);
    EXPECT_TRUE(redis_int(proc, "CLIENT KILL TYPE normal") >= 1);
    AWAIT(host->is_up && host->ups == 2);
    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    AWAIT(host->wakes > 0);
    EXPECT_INT(1, redis_int(proc, "LLEN t"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
}

TEST(what_is_stored_names_the_key_before_anything_is_taken)
{
    struct host *host = host_open_kind("w1", "list");

    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:options key other"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:meta revision 4"));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(0, host->claimed.next_due_us);
    EXPECT_STR("key=other ", host->options);
    EXPECT_INT(1, redis_int(proc, "LLEN t"));
    host_serve(host, "key=other");
    EXPECT_INT(1, redis_int(proc, "RPUSH other 2"));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_INT(2, host->runs->record.body.ptr[0]);
    EXPECT_STR("other", redis_text(proc, "HGET weir:{t}:meta key"));
    EXPECT_INT(2, redis_int(proc, "DEL weir:{t}:options weir:{t}:meta"));
    host_add(host, NULL, 0);
    AWAIT(host->added == 1);
    EXPECT_STR("7", redis_text(proc, "LRANGE other 0 -1"));
}

TEST(paused_and_other_kinds_give_out_nothing)
{
    struct host *host = host_open_kind("w1", "list");
    struct host *delay = host_open("w2");

    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    EXPECT_INT(0, host_claim(host, 0, 60000));
    EXPECT_INT(WEIR_OK, host_pause(delay, true));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->claimed.is_paused);
    EXPECT_INT(WEIR_OK, host_pause(delay, false));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_INT(0, host_claim(delay, 10, 60000));
    EXPECT_INT(WEIR_EKIND, delay->claimed.code);
    host_use(host, "u");
    EXPECT_INT(2, redis_int(proc, "HSET weir:{u}:meta kind delay x 1"));
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(WEIR_EKIND, host->claimed.code);
    EXPECT_INT(WEIR_EKIND, host_stats(host));
}

TEST(adds_are_pushed_as_json_where_the_entries_are)
{
    struct host *host = host_open_kind("w1", "list");
    struct weir__record with_url = {.url = weir__slice_str("http://x")};
    struct weir__new_job job = {.record = &with_url};

    host_add(host, NULL, 0);
    AWAIT(host->added == 1);
    EXPECT_STR("7", redis_text(proc, "LRANGE t 0 -1"));
    EXPECT_STR("list", redis_text(proc, "HGET weir:{t}:meta kind"));
    EXPECT_INT(1, redis_int(proc, "SISMEMBER weir:topics t"));
    EXPECT_INT(WEIR_EKIND,
               host->store->ops->add(host->topic, &job, host_added, host));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{u}:meta key other"));
    host_use(host, "u");
    host_add(host, NULL, 0);
    AWAIT(host->added == 2);
    EXPECT_STR("7", redis_text(proc, "LRANGE other 0 -1"));
}

TEST(entries_are_listed_by_state_and_purged)
{
    struct host *host = host_open_kind("w1", "list");

    EXPECT_INT(WEIR_ENOTFOUND, host_stats(host));
    EXPECT_INT(4, redis_int(proc, "RPUSH t 1 2 3 4"));
    EXPECT_INT(2, host_claim(host, 2, 60000));
    host_settle(host, host_take(host), WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_INT(2, host_list(host, WEIR_JOB_READY, 10));
    EXPECT_INT(1, host_list(host, WEIR_JOB_READY, 1));
    EXPECT_STR("\x03", host->text[3]);
    EXPECT_INT(1, host_list(host, WEIR_JOB_RUNNING, 10));
    EXPECT_STR("@0000000000000002", host->text[0]);
    EXPECT_STR("\x02", host->text[3]);
    EXPECT_INT(1, host_list(host, WEIR_JOB_DEAD, 10));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_STR("list", host->kind);
    EXPECT_INT(2, host->stats.ready);
    EXPECT_INT(1, host->stats.running);
    EXPECT_INT(1, host->stats.dead);
    EXPECT_INT(4, host->stats.added_total);
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(4, host->count);
    expect_clean();
    EXPECT_INT(0, redis_int(proc, "EXISTS t"));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(1, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(4, host->stats.added_total);
}

TEST(only_suspects_that_were_started_are_blamed)
{
    struct host *dead = host_open_kind("w1", "list");
    struct host *host = host_open_kind("w2", "list");

    EXPECT_INT(2, redis_int(proc, "RPUSH t 1 2"));
    lease_outlive(dead, 2);
    host_close(dead);
    AWAIT(host_claim(host, 10, 3600000) == 2);
    EXPECT_INT(0, host->runs->blamed);
    host->store->ops->start(host->topic, host->runs);
    AWAIT(host->starts == 1);
    EXPECT_INT(WEIR_OK, host->start_code);
    leases_pass();
    dead = host;
    host = host_open_kind("w3", "list");
    host_close(dead);
    AWAIT(host_claim(host, 10, 60000) == 2);
    EXPECT_INT(1, host->runs->blamed);
    EXPECT_INT(2, host->runs->record.counters.crashes);
    EXPECT_INT(0, host->runs->next->blamed);
    EXPECT_INT(1, redis_int(proc, "ZREM weir:{t}:run @0000000000000001"));
    host->store->ops->start(host->topic, host->runs);
    AWAIT(host->starts == 1);
    EXPECT_INT(WEIR_ENOTFOUND, host->start_code);
}

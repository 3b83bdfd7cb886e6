/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>

#include "adapters/redis/conn/conn.h"
#include "adapters/redis/delay/private.h"
#include "core/text.h"
#include "tests/redis/store/line_fixture.h"

/* Names of packs: whose they are, and two producers that give one name. */

enum { COUNTED = 1 << 23 };

static uint32_t producer_of(const struct host *host)
{
    AWAIT(host->topic->store->servers->is_up);
    return host->topic->store->seqs.producer;
}

static void add_one(struct host *host, const char *id)
{
    int before = host->added;

    host_add(host, id, 0);
    AWAIT(host->added == before + 1);
}

static void restart(struct host *host)
{
    redis_kill(proc, SIGKILL);
    AWAIT(!host->is_up);
    redis_restart(proc);
    AWAIT(host->is_up);
}

TEST(producers_are_told_apart_by_their_connections_and_nothing_is_written)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    uint32_t number = producer_of(one);

    EXPECT_TRUE(number >= COUNTED && producer_of(other) >= COUNTED);
    EXPECT_TRUE(number != producer_of(other));
    EXPECT_INT(weir__conn_client_id(one->topic->store->servers->commands) ^
                   weir__conn_client_id(other->topic->store->servers->commands),
               number ^ producer_of(other));
    add_one(one, NULL);
    add_one(other, NULL);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:producers"));
    EXPECT_INT(0, redis_calls(proc, "incr"));
    restart(one);
    EXPECT_TRUE(producer_of(one) != number);
}

TEST(a_server_that_does_not_say_which_it_is_gets_names_by_chance)
{
    struct host *one, *other;

    (void)world_open(NULL);
    EXPECT_STR("OK", redis_text(proc, "ACL SETUSER default -info -client"));
    one = host_open("w1");
    other = host_open("w2");
    EXPECT_TRUE(producer_of(one) >= COUNTED && producer_of(other) >= COUNTED);
    EXPECT_TRUE(producer_of(one) != producer_of(other));
    add_one(one, NULL);
    EXPECT_INT(1, host_claim(other, 10, 60000));
}

/* --- one name ------------------------------------------------------------- */

static void number_packs_alike(struct host *host)
{
    struct weir__redis *store = host->topic->store;

    AWAIT(store->servers->is_up);
    store->seqs.producer = COUNTED + 7;
    store->seqs.last = UINT64_C(1) << 46; /* later than any clock */
}

/* Their next packs have one name. */
static void name_alike(struct host *one, struct host *other)
{
    number_packs_alike(one);
    number_packs_alike(other);
}

TEST(two_producers_with_one_name_for_a_pack_lose_no_job)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    add_one(one, "a");
    add_one(other, "b");
    name_alike(one, other);
    add_one(one, "c");
    for (int i = 0; i < 10; i++)
        add_one(other, NULL);
    EXPECT_TRUE(producer_of(one) != producer_of(other));
    EXPECT_INT(13, host_claim(one, 100, 60000));
}

static void add_number(struct host *host, uint8_t number)
{
    struct weir__record record = {.body = {&number, 1}};

    host_add_record(host, NULL, &record, 0);
}

/* A server executes what one producer sent in pieces, so the call of the other
 * one may come between the pack and its call. */
TEST(a_pack_that_another_producer_staged_is_not_acknowledged_as_ours)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    char named[WEIR__SEQ_LEN + 1] = "", staged[WEIR__SEQ_LEN + 1] = "";
    struct weir__seq_maker seqs;
    size_t ours = 0;

    name_alike(one, other);
    seqs = one->topic->store->seqs;
    weir__seq_next(&seqs, 0, staged);
    add_number(one, 1);
    add_number(one, 1); /* two jobs are staged */
    AWAIT(one->added == 2);
    weir__seq_next(&seqs, 0, named);
    other->topic->store->seqs.last = one->topic->store->seqs.last;
    EXPECT_INT(
        1, redis_int(proc, "COPY weir:{t}:p:%s weir:{t}:p:%s", staged, named));
    EXPECT_INT(1, redis_int(proc, "PEXPIRE weir:{t}:p:%s 60000", named));
    add_number(other, 2);
    add_number(other, 2);
    AWAIT(other->added == 2);
    (void)host_claim(one, 100, 60000);
    for (const struct weir__run *run = one->runs; run != NULL; run = run->next)
        ours += run->record.body.len == 1 && run->record.body.ptr[0] == 2;
    EXPECT_INT(2, ours);
    EXPECT_TRUE(producer_of(one) != producer_of(other));
}

/* Under the next name of `host` another producer has staged a pack, whose key
 * begins with `part`. The pack has two jobs with the body 1. */
static void stage_foreign(struct host *host, const char *part)
{
    char named[WEIR__SEQ_LEN + 1] = "", staged[WEIR__SEQ_LEN + 1] = "";
    struct host *one = host_open("w9");
    struct weir__seq_maker seqs;

    name_alike(one, host);
    one->topic->store->seqs.last += 1000;
    seqs = one->topic->store->seqs;
    weir__seq_next(&seqs, 0, staged);
    add_number(one, 1);
    add_number(one, 1);
    AWAIT(one->added == 2);
    seqs = host->topic->store->seqs;
    weir__seq_next(&seqs, 0, named);
    EXPECT_INT(1, redis_int(proc, "COPY weir:{t}:p:%s weir:%s:%s", staged, part,
                            named));
    EXPECT_INT(1, redis_int(proc, "PEXPIRE weir:%s:%s 60000", part, named));
}

TEST(a_pack_that_another_producer_staged_is_not_taken_for_a_retry)
{
    struct host *host = host_open("w1");
    size_t found = 0;

    add_number(host, 2);
    AWAIT(host->added == 1);
    EXPECT_INT(1, host_claim(host, 1, 60000));
    stage_foreign(host, "{t}:p");
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(3, host_claim(host, 10, 60000));
    for (const struct weir__run *run = host->runs; run != NULL; run = run->next)
        found += run->record.body.len == 1 && run->record.body.ptr[0] == 2;
    EXPECT_INT(1, found);
}

static void follow_to(struct host *host, const char *topic);

static void send_on_beside(const char *part)
{
    struct host *host = host_open("w1");

    add_one(host, "a");
    EXPECT_INT(1, host_claim(host, 1, 60000));
    stage_foreign(host, part);
    follow_to(host, "one");
    EXPECT_INT(0, host->refused);
    AWAIT(redis_int(proc, "EXISTS weir:{t}:relay") == 0);
    host_use(host, "one");
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->runs->record.body.len != 1 ||
                host->runs->record.body.ptr[0] != 1);
}

TEST(a_pack_that_another_producer_staged_in_the_outbox_is_not_sent_on)
{
    send_on_beside("{t}:o");
}

TEST(a_pack_that_another_producer_staged_in_the_target_is_not_added)
{
    send_on_beside("{one}:p");
}

TEST(a_pack_that_another_producer_staged_is_not_requeued)
{
    struct host *host = host_open("w1");

    add_one(host, "a");
    EXPECT_INT(1, host_claim(host, 1, 60000));
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    stage_foreign(host, "{t}:p");
    EXPECT_INT(WEIR_OK, host_requeue(host, "a"));
    EXPECT_INT(1, host->count);
    EXPECT_INT(3, host_claim(host, 10, 60000));
}

TEST(two_workers_with_one_name_for_a_pack_lose_no_retry)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    add_one(one, "a");
    add_one(other, "b");
    EXPECT_INT(1, host_claim(one, 1, 60000));
    EXPECT_INT(1, host_claim(other, 1, 60000));
    name_alike(one, other);
    host_settle_all(one, WEIR__OUTCOME_RETRY);
    host_await_settled(one);
    host_settle_all(other, WEIR__OUTCOME_RETRY);
    host_await_settled(other);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(0, other->refused);
    EXPECT_INT(2, host_claim(one, 10, 60000));
}

static void follow_to(struct host *host, const char *topic)
{
    const struct weir_follow follow = {0};
    struct weir__run *run = host_take(host);

    EXPECT_INT(WEIR_OK, weir__follow_add(&run->follows, weir__slice_str(topic),
                                         &follow, (struct weir_slice){0}));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

/* The topic "one" takes nothing, so that packs for it stay in the outbox. */
TEST(two_workers_with_one_name_for_a_pack_send_on_what_is_their_own)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    (void)redis_text(proc, "HSET weir:{one}:meta kind delay max_pending 1 "
                           "added 1");
    add_one(one, "a");
    add_one(other, "b");
    EXPECT_INT(1, host_claim(one, 1, 60000));
    EXPECT_INT(1, host_claim(other, 1, 60000));
    name_alike(one, other);
    follow_to(one, "one");
    follow_to(other, "one");
    EXPECT_INT(0, one->refused);
    EXPECT_INT(0, other->refused);
    (void)redis_int(proc, "HDEL weir:{one}:meta max_pending added");
    AWAIT(world_count("one", "added") == 2);
    AWAIT(redis_int(proc, "EXISTS weir:{t}:relay") == 0);
}

/* --- the list of topics --------------------------------------------------- */

static void expect_listed(struct host *host)
{
    (void)host_claim(host, 0, 60000);
    EXPECT_INT(1, redis_int(proc, "SISMEMBER weir:topics t"));
}

TEST(a_topic_is_listed_again_by_a_new_server_and_every_ten_minutes)
{
    struct host *host = host_open("w1");

    expect_listed(host);
    EXPECT_INT(1, redis_int(proc, "SREM weir:topics t"));
    (void)host_claim(host, 0, 60000);
    EXPECT_INT(0, redis_int(proc, "SISMEMBER weir:topics t"));
    host->topic->registered_ns -= INT64_C(600000000000);
    expect_listed(host);
    restart(host); /* which has lost everything */
    expect_listed(host);
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/classic/private.h"
#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/redis/store/store_fixture.h"

/* The stores of sync and concurrent topics on a real server. Leases end where
 * they are short. */

/* time is the subject */
static const char *const atomic[] = {"delay=0ms", "lease=300ms", "lock=no",
                                     NULL};
/* time is the subject */
static const char *const two_step[] = {"delay=0ms", "lease=300ms",
                                       "parking=two-step", NULL};
/* time is the subject */
static const char *const four_short[] = {"delay=0ms", "lease=300ms", "lock=no",
                                         "consumers=4", NULL};
static const char *const four[] = {"delay=0ms", "lease=60s", "lock=no",
                                   "consumers=4", NULL};
static const char *const two[] = {"delay=0ms", "lease=60s", "consumers=2",
                                  NULL};
static const char *const locked[] = {"delay=0ms", "lease=60s", "consumers=4",
                                     NULL};

static long long waiting(void)
{
    return redis_int(proc, "LLEN weir:{t}:fifo");
}

static long long parked(void)
{
    return redis_int(proc, "HLEN weir:{t}:parked");
}

/* Put one message into the queue, without anybody who takes it. */
static void add_one(const char *id)
{
    struct host *host = host_open_as("adder", "concurrent", atomic);

    host->store->ops->topic_listen(host->topic, NULL);
    host_add(host, id, 0);
    AWAIT(host->added == 1);
    host_close(host);
}

/* Have a worker take the only message and die in that moment. */
static void take_and_die(const char *const *options)
{
    struct host *host = host_open_as("victim", "concurrent", options);

    AWAIT(waiting() == 0);
    host_close(host);
}

TEST(a_crash_between_taking_and_parking_loses_the_message)
{
    (void)world_open(NULL);

    add_one("42");
    take_and_die(two_step);
    EXPECT_INT(0, waiting());
    EXPECT_INT(0, parked());
}

TEST(a_crash_after_taking_and_parking_in_one_step_loses_nothing)
{
    (void)world_open(NULL);
    struct host *heir;

    add_one("42");
    take_and_die(atomic);
    EXPECT_INT(1, parked());
    heir = host_open_as("heir", "concurrent", atomic);
    AWAIT(host_claim(heir, 10, 3600000) == 1);
    EXPECT_STR("42", run_id(heir->runs));
    host_settle_all(heir, WEIR__OUTCOME_DONE);
    host_await_settled(heir);
    EXPECT_INT(0, heir->refused);
    EXPECT_INT(0, parked());
    EXPECT_INT(1, redis_int(proc, "EXISTS weir:{t}:meta"));
    EXPECT_STR("1", redis_text(proc, "HGET weir:{t}:meta crashed"));
}

TEST(a_verdict_on_what_somebody_else_has_by_now_is_refused)
{
    struct host *host = host_open_as("w1", "concurrent", atomic);

    host_add(host, "42", 0);
    AWAIT(host_claim(host, 10, 3600000) == 1);
    (void)redis_int(proc, "DEL weir:{t}:parked");
    host_settle_all(host, WEIR__OUTCOME_DONE);
    AWAIT(host->settled == 1);
    EXPECT_INT(1, host->refused);
    EXPECT_CONTAINS("1 verdicts came too late", world_log);
    EXPECT_TRUE(redis_text(proc, "HGET weir:{t}:meta done") == NULL);
}

TEST(the_owner_is_told_that_its_lease_ended)
{
    struct host *host = host_open_as("w1", "concurrent", atomic);
    uint64_t token;

    host_add(host, "42", 0);
    AWAIT(host_claim(host, 10, 3600000) == 1);
    token = host->runs->token;
    /* Another worker has taken the message. */
    (void)redis_int(proc, "DEL weir:{t}:alive weir:{t}:parked");
    AWAIT(host->lost_token == token);
}

TEST(a_claim_on_an_empty_queue_gets_nothing)
{
    EXPECT_INT(0, host_claim(host_open_as("w1", "sync", locked), 10, 3600000));
}

TEST(a_worker_that_begins_with_an_empty_queue_is_woken_by_the_first_push)
{
    (void)host_open_as("w1", "concurrent", four);
    AWAIT(redis_int(proc, "ZCARD weir:{t}:idle") == 1);
    EXPECT_INT(0, waiting());
}

/* Who is registered as idle; the last one is woken first. */
static bool sleep_in_order(const char *workers)
{
    return strcmp(redis_text(proc, "ZRANGE weir:{t}:idle 0 -1"), workers) == 0;
}

static void check_order(const char *kind, const char *const *options)
{
    struct host *busy = host_open_as("w2", kind, options);

    host_add(busy, "42", 0);
    AWAIT(host_claim(busy, 10, 3600000) == 1);
    (void)host_open_as("w1", kind, options);
    AWAIT(sleep_in_order("w2 w1"));
    host_settle_all(busy, WEIR__OUTCOME_DONE);
    AWAIT(sleep_in_order("w1 w2"));
}

TEST(a_worker_with_a_message_in_hand_is_woken_after_those_without)
{
    check_order("concurrent", four);
}

TEST(a_worker_with_a_sync_message_in_hand_is_woken_after_those_without)
{
    check_order("sync", locked);
}

/* Both consumers of a worker try at once, and somebody else takes a message. */
TEST(a_consumer_that_finds_nothing_knows_what_the_other_one_found)
{
    struct host *busy;

    (void)world_open(NULL);
    add_one("42");
    add_one("43");
    busy = host_open_as("w2", "concurrent", two);
    AWAIT(weir__classic_topic_of(busy->topic)->length == 2);
    (void)redis_text(proc, "LPOP weir:{t}:fifo"); /* they connect still */
    AWAIT(host_claim(busy, 10, 3600000) == 1);
    (void)host_open_as("w1", "concurrent", four);
    AWAIT(sleep_in_order("w2 w1"));
}

/* For how long the last message was put off when it was added. */
static const char put_off[] =
    "local due, added = cmsgpack.unpack(redis.call('LINDEX', KEYS[1], -1)"
    ":sub(2)) return due - added";

TEST(a_delay_that_is_stored_with_the_topic_may_be_of_each_unit)
{
    static const struct {
        const char *text;
        int64_t ms;
    } delays[] = {{"5ms", 5},
                  {"1s", 1000},
                  {"1m", 60000},
                  {"1h", 3600000},
                  {"1d", 86400000}};
    struct host *host = host_open_as("adder", "concurrent", four);

    host->store->ops->topic_listen(host->topic, NULL);
    for (int i = 0; i < 5; i++) {
        EXPECT_TRUE(redis_int(proc, "HSET weir:{t}:options delay %s",
                              delays[i].text) >= 0);
        host_add(host, NULL, 0);
        AWAIT(host->added == i + 1);
        EXPECT_INT(delays[i].ms,
                   redis_int(proc, "EVAL %s 1 weir:{t}:fifo", put_off));
    }
}

TEST(what_is_due_of_a_queue_is_counted)
{
    struct host *host;

    (void)world_open(NULL);
    add_one("1");
    add_one("2");
    (void)redis_int(proc, "HSET weir:{t}:options delay 1h");
    add_one("3");
    host = host_open_as("w1", "concurrent", four);
    host->store->ops->topic_listen(host->topic, NULL);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(2, host->stats.ready);
    EXPECT_INT(1, host->stats.scheduled);
}

TEST(a_topic_of_another_kind_is_left_alone)
{
    (void)world_open(NULL);
    struct host *host;

    (void)redis_int(proc, "HSET weir:{t}:meta kind delay");
    host = host_open_as("w1", "sync", locked);
    EXPECT_INT(0, host_claim(host, 10, 3600000));
    EXPECT_INT(WEIR_EKIND, host->claimed.code);
    host_add(host, "42", 0);
    AWAIT(host->failed == 1);
    EXPECT_INT(WEIR_EKIND, host->last_code);
    EXPECT_INT(0, waiting());
}

static void push(const char *bytes, size_t len)
{
    (void)redis_int(proc, "HSET weir:{t}:meta kind sync");
    (void)redis_int(proc, "RPUSH weir:{t}:fifo %b", bytes, len);
}

TEST(a_message_of_a_newer_version_is_left_alone)
{
    static const char newer[] = "\x94\xcf\0\0\0\0\0\0\0\1\1\xa1x\x91\x09";
    (void)world_open(NULL);
    struct host *host;

    push(newer, sizeof(newer) - 1);
    host = host_open_as("w1", "sync", locked);
    AWAIT(strstr(world_log, "newer version of weir") != NULL);
    EXPECT_INT(0, host_claim(host, 10, 3600000));
    AWAIT(waiting() == 1);
}

TEST(an_unreadable_message_comes_as_malformed)
{
    (void)world_open(NULL);
    struct host *host;

    push("junk", 4);
    host = host_open_as("w1", "sync", locked);
    AWAIT(host_claim(host, 10, 3600000) == 1);
    EXPECT_TRUE(host->runs->is_malformed);
    host->runs->record.reason = weir__slice_str("malformed");
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    EXPECT_STR("1", redis_text(proc, "HGET weir:{t}:meta failed"));
    EXPECT_INT(0, waiting());
}

/* Handles messages until all of `count` were; kills every connection a few
 * times meanwhile. */
static void work_despite_cuts(struct host *host, uint8_t *ran, size_t count)
{
    size_t handled = 0, distinct = 0;

    while (distinct < count) {
        int number;

        (void)host_claim(host, 10, 3600000);
        while (host->runs != NULL) {
            struct weir__run *run = host_take(host);

            EXPECT_INT(1, sscanf(run_id(run), "job-%d", &number));
            distinct += ran[number]++ == 0;
            handled++;
            host_settle(host, run, WEIR__OUTCOME_DONE);
        }
        if (handled > 0 && handled % 50 == 0 && handled <= 150) {
            (void)redis_int(proc, "CLIENT KILL TYPE normal");
            handled++;
        }
    }
}

TEST(parked_messages_survive_cut_connections)
{
    uint8_t ran[300] = {0};
    struct host *host;

    host = host_open_as("w1", "concurrent", four_short);
    host_add_numbered(host, 0, 300, 0);
    AWAIT(host->added == 300);
    work_despite_cuts(host, ran, 300);
    for (size_t i = 0; i < 300; i++)
        EXPECT_TRUE(ran[i] >= 1);
}

static int answers;

static void on_added(int code, const char *id, void *arg)
{
    (void)code;
    (void)id;
    (void)arg;
    answers++;
}

/* Returns how many adds were taken. */
static int add_some(struct host *host, int n)
{
    static const struct weir__record record;
    int taken = 0;

    oom_after(n);
    for (int i = 0; i < 20; i++) {
        struct weir__new_job job = {.record = &record};

        taken +=
            host->store->ops->add(host->topic, &job, on_added, NULL) == WEIR_OK;
    }
    host->store->ops->flush(host->store);
    oom_off();
    return taken;
}

TEST(every_add_that_was_taken_is_answered_whatever_fails)
{
    struct host *host;
    int taken = 0;

    host = host_open_as("w1", "sync", locked);
    host->store->ops->topic_listen(host->topic, NULL);
    for (int n = 0; n < 30; n++)
        taken += add_some(host, n);
    EXPECT_TRUE(taken > 0);
    AWAIT(answers == taken);
}

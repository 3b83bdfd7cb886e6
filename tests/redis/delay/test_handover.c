/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "tests/redis/store/store_fixture.h"

/* Jobs that come to a worker without a claim. */

static struct host *one, *other;
static int64_t offer_took_ns;

/* `one` sleeps and has offered itself. */
static void offer(int64_t lease_ms)
{
    int64_t from_ns;

    one = host_open("w1");
    other = host_open("w2");
    AWAIT(one->wakes == 1); /* its subscription stands */
    one->takes_jobs = true;
    from_ns = world_clock(NULL);
    EXPECT_INT(0, host_claim(one, 10, lease_ms));
    offer_took_ns = world_clock(NULL) - from_ns;
    EXPECT_INT(1, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
}

static void add(const char *id)
{
    int added = other->added;

    host_add(other, id, 0);
    AWAIT(other->added == added + 1);
}

static void await_back(void)
{
    AWAIT(redis_int(proc, "ZCARD weir:{t}:wait") == 1 &&
          redis_int(proc, "EXISTS weir:{t}:run weir:{t}:lease weir:{t}:held") ==
              0);
    EXPECT_INT(0, one->handed);
    EXPECT_INT(0, one->arrived);
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_TRUE(!other->runs->is_suspect);
}

/* Change a word of the stored offer: lease, number, time, worker. */
static void spoil(int word, const char *text)
{
    (void)redis_text(proc, "EVAL %s 1 weir:{t}:meta %d %s",
                     "local words = {} "
                     "for word in string.gmatch(redis.call('HGET', KEYS[1], "
                     "'offer'), '[^ ]+') do words[#words + 1] = word end "
                     "words[tonumber(ARGV[1])] = ARGV[2] "
                     "return redis.call('HSET', KEYS[1], 'offer', "
                     "table.concat(words, ' '))",
                     word, text);
}

TEST(a_job_comes_to_a_worker_that_offered_itself)
{
    int64_t before_ns = world_clock(NULL);

    offer(60000);
    add("a");
    AWAIT(one->arrived == 1);
    EXPECT_INT(1, one->handed);
    EXPECT_INT(1, one->claims);
    EXPECT_INT(1, one->wakes);
    EXPECT_TRUE(one->since_ns > before_ns &&
                one->since_ns <= world_clock(NULL));
    EXPECT_STR("a", run_id(one->runs));
    EXPECT_INT(1, one->runs->record.body.len);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:wait weir:{t}:run "
                                  "weir:{t}:lease weir:{t}:held"));
    EXPECT_INT(WEIR_OK, host_stats(one));
    EXPECT_INT(1, one->stats.done_total);
}

TEST(a_job_that_was_handed_over_is_retried_like_others)
{
    struct weir__run *run;

    offer(60000);
    add("a");
    AWAIT(one->arrived == 1);
    run = host_take(one);
    run->delay_ms = 0;
    host_settle(one, run, WEIR__OUTCOME_RETRY);
    host_await_settled(one);
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_STR("a", run_id(other->runs));
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:lease"));
}

TEST(an_offer_is_good_for_one_job)
{
    offer(60000);
    add("a");
    add("b");
    AWAIT(one->arrived == 1);
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_STR("b", run_id(other->runs));
    EXPECT_INT(1, one->handed);
}

TEST(a_job_with_an_id_that_exists_is_handed_over_once)
{
    offer(60000);
    add("a");
    AWAIT(one->arrived == 1);
    EXPECT_INT(0, host_claim(one, 10, 60000));
    host_add(other, "a", 0);
    AWAIT(other->existing == 1);
    EXPECT_INT(1, one->handed);
    EXPECT_INT(1, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
}

TEST(the_last_worker_that_offered_itself_is_handed_the_job)
{
    offer(60000);
    other->takes_jobs = true;
    AWAIT(other->wakes == 1);
    EXPECT_INT(0, host_claim(other, 10, 60000));
    add("a");
    AWAIT(other->arrived == 1);
    add("b"); /* the offer of `one` came first and is forgotten */
    AWAIT(one->wakes + other->wakes == 3);
    EXPECT_INT(0, one->handed);
    EXPECT_INT(1, host_claim(one, 10, 60000));
}

TEST(a_worker_that_is_gone_is_handed_nothing)
{
    struct host *third;

    offer(60000);
    third = host_open("w3");
    AWAIT(third->wakes == 1);
    EXPECT_INT(0, host_claim(third, 10, 60000));
    host_close(one);
    add("a");
    AWAIT(third->wakes == 2);
    EXPECT_INT(1, host_claim(third, 10, 60000));
    /* The token is burnt. */
    EXPECT_STR("1 0", redis_text(proc, "EVAL %s 2 weir:{t}:meta weir:{t}:run",
                                 "local counts = redis.call('HMGET', KEYS[1], "
                                 "'claimed', 'returned') "
                                 "local run = redis.call('ZRANGE', KEYS[2], 0, "
                                 "0, 'WITHSCORES') "
                                 "return { counts[1] - counts[2], "
                                 "counts[1] - run[2] }"));
}

TEST(a_worker_that_listens_no_longer_gives_the_job_back)
{
    offer(60000);
    one->store->ops->topic_listen(one->topic, NULL);
    add("a");
    await_back();
}

/* --- messages that are not for the last offer ----------------------------- */

TEST(a_job_for_another_offer_goes_back)
{
    char number[32];

    offer(60000);
    (void)snprintf(number, sizeof(number), "%s",
                   redis_text(proc, "EVAL %s 1 weir:{t}:meta",
                              "return string.match(redis.call('HGET', KEYS[1], "
                              "'offer'), '^%d+ (%d+)')"));
    number[strlen(number) - 1] ^= 1; /* the offer of a ns before or after */
    spoil(2, number);
    add("a");
    await_back();
}

TEST(a_job_that_comes_late_goes_back)
{
    offer(300);
    spoil(3, "9000000000000000"); /* nothing tells how old the offer was */
    ev_sleep(.19);
    add("a");
    await_back();
}

TIME_TEST(a_job_that_is_soon_there_may_be_for_an_old_offer)
{
    int64_t before_ns;

    offer(2000);
    ev_sleep(2.05);
    before_ns = world_clock(NULL);
    add("a");
    AWAIT(one->arrived == 1);
    /* The two clocks may differ a little by now. */
    EXPECT_TRUE(one->since_ns > before_ns - offer_took_ns - 10000000);
}

TEST(a_job_of_another_server_is_not_run)
{
    offer(60000);
    add("a");
    AWAIT(one->arrived == 1);
    EXPECT_INT(0, host_claim(one, 10, 60000));
    EXPECT_INT(1, redis_int(proc, "PUBLISH weir:wake:w1 %s",
                            "t aaaaaaaaaaaa0000 99 0 1 1 1 0 "
                            "0123456789abcdef W1"));
    AWAIT(one->store->ops->unsettled(one->topic) == 1);
    AWAIT(one->store->ops->unsettled(one->topic) == 0);
    EXPECT_INT(1, one->handed);
}

TEST(messages_that_are_none_are_passed_over)
{
    static const char *const messages[] = {
        "t ",
        "t x",
        "t aaaaaaaaaaaa0000",
        "t aaaaaaaaaaaa0001 9 0 0 0 0 0 x p",
        "t aaaaaaaaaaaa00:0 9 0 0 0 0 0 x p",
        "t aaaaaaaaaaaa0000 0 0 0 0 0 0 x p",
        "t aaaaaaaaaaaa0000 9 999999999999999999 0 0 0 0 x p",
        "t aaaaaaaaaaaa0000 9 0 0 0 0 0 x ",
        "other aaaaaaaaaaaa0000 9 0 0 0 0 0 x p"};

    offer(60000);
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        EXPECT_INT(1, redis_int(proc, "PUBLISH weir:wake:w1 %s", messages[i]));
    add("a");
    AWAIT(one->arrived == 1);
    EXPECT_INT(1, one->handed);
    EXPECT_INT(0, one->store->ops->unsettled(one->topic));
}

/* --- what changes in between ---------------------------------------------- */

TEST(options_that_changed_are_read_before_a_job_that_is_handed_over)
{
    int told;

    offer(60000);
    told = one->options_count;
    EXPECT_INT(WEIR_OK, host_set(other, "retry", "7s"));
    add("a");
    AWAIT(one->arrived == 1);
    EXPECT_INT(1, one->handed);
    EXPECT_INT(told + 1, one->options_count);
    EXPECT_CONTAINS("retry=7s", one->options);
}

TEST(nothing_is_handed_over_while_the_topic_is_paused)
{
    offer(60000);
    EXPECT_INT(WEIR_OK, host_pause(other, true));
    add("a");
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:wait"));
    EXPECT_INT(WEIR_OK, host_pause(other, false));
    AWAIT(one->wakes == 2);
    EXPECT_INT(1, host_claim(one, 10, 60000));
    EXPECT_INT(0, one->handed);
}

TEST(a_worker_that_got_jobs_by_a_claim_offers_itself_no_more)
{
    offer(60000);
    host_add(other, "a", 0);
    host_add(other, "b", 0);
    AWAIT(other->added == 2 && one->wakes == 2);
    EXPECT_INT(2, host_claim(one, 10, 60000));
    add("c");
    EXPECT_INT(0, one->handed);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:wait"));
}

TEST(a_worker_with_jobs_in_hand_offers_itself_no_more)
{
    offer(60000);
    one->takes_jobs = false;
    EXPECT_INT(0, host_claim(one, 10, 60000));
    add("a");
    AWAIT(one->wakes == 2);
    EXPECT_INT(0, one->handed);
}

TEST(a_job_that_nobody_answers_for_comes_back_and_blames_nobody)
{
    offer(60000);
    add("a");
    AWAIT(one->arrived == 1);
    EXPECT_INT(0, redis_int(proc, "ZADD weir:{t}:lease 1 %s",
                            redis_text(proc, "ZRANGE weir:{t}:lease 0 0")));
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_TRUE(other->runs->is_suspect);
    EXPECT_INT(0, other->runs->blamed);
}

/* --- stopping ------------------------------------------------------------- */

static size_t unsettled(void)
{
    return one->store->ops->unsettled(one->topic);
}

static void stop(void)
{
    one->store->ops->stop(one->topic);
    one->store->ops->flush(one->store);
}

TEST(a_worker_that_stops_is_handed_nothing)
{
    offer(60000);
    stop();
    EXPECT_INT(1, unsettled());
    AWAIT(unsettled() == 0);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
    EXPECT_INT(0, host_claim(one, 10, 60000));
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
    add("a");
    EXPECT_INT(0, one->handed);
    stop();
    EXPECT_INT(0, unsettled());
}

TEST(a_worker_that_never_offered_itself_stops_at_once)
{
    one = host_open("w1");
    EXPECT_INT(0, host_claim(one, 10, 60000));
    stop();
    EXPECT_INT(0, unsettled());
}

/* The server has handed it over, and the worker has not read that. */
TEST(a_worker_that_stops_sees_a_job_that_is_on_its_way)
{
    offer(60000);
    add("a");
    AWAIT(one->arrived == 1);
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, host_claim(one, 10, 60000));
    host_add(other, "b", 0);
    other->store->ops->flush(other->store);
    for (int i = 0; i < 5000; i++) {
        if (redis_int(proc, "EXISTS weir:{t}:run") == 1)
            break;
        ev_sleep(1e-3);
    }
    EXPECT_INT(1, redis_int(proc, "EXISTS weir:{t}:run"));
    EXPECT_INT(1, one->handed);
    stop();
    AWAIT(unsettled() == 0);
    EXPECT_INT(2, one->handed);
    host_settle_all(one, WEIR__OUTCOME_RETURN);
    host_await_settled(one);
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_TRUE(!other->runs->is_suspect);
}

TEST(a_worker_that_hears_nothing_stops)
{
    offer(60000);
    EXPECT_INT(1, redis_int(proc, "CLIENT KILL TYPE pubsub SKIPME yes") > 0);
    stop();
    AWAIT(unsettled() == 0);
    EXPECT_INT(0, one->handed);
}

/* The server answers the withdrawal: so many clients heard it. */
static void hear(int clients)
{
    struct redisReply reply = {.type = REDIS_REPLY_INTEGER, .integer = clients};
    struct weir__request *request =
        &weir__delay_topic_of(one->topic)->withdrawal.request;

    request->done(request, WEIR_OK, &reply);
}

TEST(a_worker_that_stops_waits_for_its_withdrawal_if_a_client_hears_it)
{
    offer(60000);
    stop();
    hear(1);
    EXPECT_INT(1, unsettled());
    hear(0);
    EXPECT_INT(0, unsettled());
}

TEST(a_worker_that_stops_waits_for_no_withdrawal_that_it_missed)
{
    redisContext *heard;

    offer(60000);
    EXPECT_INT(1, redis_int(proc, "CLIENT KILL TYPE pubsub SKIPME yes") > 0);
    heard = redisConnectUnix(redis_socket(proc));
    EXPECT_TRUE(heard != NULL && heard->err == 0);
    freeReplyObject(redisCommand(heard, "SUBSCRIBE weir:wake:w1"));
    stop();
    AWAIT(one->wakes == 2); /* its subscription stands again */
    EXPECT_INT(0, unsettled());
    redisFree(heard);
}

/* --- offers that come with a verdict -------------------------------------- */

/* `one` runs "a", which it was handed. */
static void run_one(void)
{
    offer(60000);
    add("a");
    AWAIT(one->arrived == 1);
}

/* It is done, and the worker claims in the same turn. Returns how many scripts
 * that took. */
static long long finish(void)
{
    long long before = redis_calls(proc, "evalsha");
    size_t settled = one->settled + 1;

    host_settle_all(one, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host_claim(one, 10, 60000));
    AWAIT(one->settled == settled);
    EXPECT_INT(0, one->refused);
    return redis_calls(proc, "evalsha") - before;
}

TEST(a_verdict_on_a_job_that_was_handed_over_offers_the_worker_again)
{
    run_one();
    for (int i = 1; i <= 5; i++) {
        EXPECT_INT(1, finish());
        EXPECT_INT(i + 1, one->claims);
        EXPECT_INT(-1, one->claimed.next_due_us);
        add("b");
        AWAIT(one->arrived == (size_t)i + 1);
    }
    EXPECT_INT(6, one->handed);
    EXPECT_INT(1, finish());
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:wait weir:{t}:run "
                                  "weir:{t}:lease weir:{t}:held"));
    EXPECT_INT(WEIR_OK, host_stats(one));
    EXPECT_INT(6, one->stats.done_total);
}

TEST(a_worker_that_offered_itself_with_a_verdict_is_woken_like_others)
{
    int wakes;

    run_one();
    EXPECT_INT(1, finish());
    wakes = one->wakes;
    host_add(other, "b", 0);
    host_add(other, "c", 0);
    AWAIT(other->added == 3 && one->wakes == wakes + 1);
    EXPECT_INT(2, host_claim(one, 10, 60000));
    EXPECT_INT(1, one->handed);
}

TEST(a_verdict_offers_nobody_where_more_is_due)
{
    run_one();
    add("b");
    EXPECT_INT(1, finish());
    EXPECT_INT(0, one->claimed.next_due_us);
    EXPECT_TRUE(!one->claimed.will_wake);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
    EXPECT_INT(1, host_claim(one, 10, 60000));
    EXPECT_STR("b", run_id(one->runs));
    EXPECT_INT(2, finish()); /* as that one was claimed */
    EXPECT_INT(1, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
}

TEST(a_verdict_that_offers_tells_when_the_worker_is_to_come)
{
    run_one();
    host_add(other, "b", 50000);
    AWAIT(other->added == 2);
    EXPECT_INT(1, finish());
    EXPECT_TRUE(one->claimed.next_due_us > 10000000 &&
                one->claimed.next_due_us <= 50000000);
    EXPECT_TRUE(one->claimed.will_wake);
}

TEST(a_verdict_offers_nobody_while_the_topic_is_paused)
{
    run_one();
    EXPECT_INT(WEIR_OK, host_pause(other, true));
    EXPECT_INT(1, finish());
    EXPECT_INT(0, one->claimed.next_due_us);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
    EXPECT_INT(0, host_claim(one, 10, 60000));
    EXPECT_TRUE(one->claimed.is_paused);
}

TEST(a_verdict_that_runs_the_job_again_offers_nobody)
{
    struct weir__run *run;

    run_one();
    run = host_take(one);
    run->delay_ms = 0;
    host_settle(one, run, WEIR__OUTCOME_RETRY);
    EXPECT_INT(1, host_claim(one, 10, 60000));
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
}

TEST(a_verdict_of_a_worker_with_other_jobs_offers_nobody)
{
    run_one();
    one->takes_jobs = false;
    EXPECT_INT(2, finish());
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
}

TEST(a_verdict_of_a_worker_that_stops_offers_nobody)
{
    run_one();
    stop();
    AWAIT(unsettled() == 0);
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run"));
}

TEST(a_worker_that_stops_behind_its_offer_withdraws_it)
{
    const struct weir__claim claim = {
        .room = 10, .lease_ms = 60000, .takes_jobs = true};

    run_one();
    host_settle_all(one, WEIR__OUTCOME_DONE);
    EXPECT_INT(WEIR_OK, one->store->ops->claim(one->topic, &claim));
    one->store->ops->flush(one->store);
    stop();
    AWAIT(unsettled() == 0 && one->claims == 2);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
}

TEST(a_verdict_that_is_sent_again_answers_the_claim_once)
{
    const struct weir__claim claim = {
        .room = 10, .lease_ms = 60000, .takes_jobs = true};

    run_one();
    host_settle_all(one, WEIR__OUTCOME_DONE);
    EXPECT_INT(WEIR_OK, one->store->ops->claim(one->topic, &claim));
    EXPECT_INT(1, redis_int(proc, "CLIENT KILL TYPE normal SKIPME yes") > 0);
    host_await_settled(one);
    AWAIT(one->claims == 2);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:lease"));
    AWAIT(one->is_up && other->is_up);
    EXPECT_INT(0, host_claim(one, 10, 60000));
    EXPECT_INT(WEIR_OK, host_stats(one));
    EXPECT_INT(1, one->stats.done_total);
}

/* The call waits for the server and then offers nobody: the worker has claimed
 * since. */
TEST(a_verdict_that_the_server_refuses_first_offers_nobody_later)
{
    run_one();
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET min-replicas-to-write 1"));
    host_settle_all(one, WEIR__OUTCOME_DONE);
    EXPECT_INT(0, host_claim(one, 10, 60000));
    EXPECT_INT(0, one->claimed.next_due_us);
    EXPECT_INT(WEIR_OK, one->claimed.code);
    EXPECT_INT(1, unsettled());
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET min-replicas-to-write 0"));
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run"));
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta offer"));
}

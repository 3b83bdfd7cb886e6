/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>

#include "tests/harness/oom.h"
#include "tests/weir/take_fixture.h"

/* Jobs that a host takes when it wants them: calls, verdicts, ends. */

TEST(each_job_that_is_taken_is_settled_in_its_own_way)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};

    host_open(NULL);
    for (size_t i = 0; i < 6; i++)
        add(names[i]);
    take(10, 6);
    EXPECT_STR("a b c d e f ", ids);
    EXPECT_STR("running", state_of("c"));
    settle(2, WEIR_RETRY_AFTER);
    settle(0, WEIR_DONE);
    settle(3, WEIR_SNOOZE);
    settle(1, WEIR_RETRY);
    settle(4, WEIR_FAIL);
    give_back(5);
    expect_settled("OK OK OK OK OK OK ");
    EXPECT_STR("none", state_of("a"));
    EXPECT_STR("scheduled", state_of("b"));
    EXPECT_INT(1, counters.failures);
    EXPECT_STR("scheduled", state_of("c"));
    EXPECT_STR("scheduled", state_of("d"));
    EXPECT_INT(1, counters.snoozes);
    EXPECT_STR("dead", state_of("e"));
    EXPECT_STR("ready", state_of("f"));
    EXPECT_INT(0, counters.crashes);
    EXPECT_INT(1, look()->done_total);
    EXPECT_STR("", lost);
}

TEST(a_take_is_read_as_a_job_that_a_handler_has)
{
    static const uint8_t body[] = {0x81, 0xa1, 'n', 0x07};
    const struct weir_header header = {{(const uint8_t *)"k", 1},
                                       {(const uint8_t *)"v", 1}};
    const struct weir_new_job job = {.id = "a",
                                     .body = {body, sizeof(body)},
                                     .url = "http://h/",
                                     .headers = &header,
                                     .header_count = 1};
    struct weir_job *taken;
    int64_t n = 0;

    host_open(NULL);
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, NULL, NULL, NULL));
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 0, 60000));
    AWAIT(answers == 1);
    taken = weir_take_job(takes[0]);
    EXPECT_TRUE(weir_job_i64(taken, "n", &n) && n == 7);
    EXPECT_MEM("orders", 6, weir_job_topic(taken).ptr,
               weir_job_topic(taken).len);
    EXPECT_MEM("http://h/", 9, weir_job_url(taken).ptr,
               weir_job_url(taken).len);
    EXPECT_MEM("v", 1, weir_job_header(taken, "k").ptr,
               weir_job_header(taken, "k").len);
    EXPECT_INT(1, weir_job_counters(taken).attempt);
    EXPECT_TRUE(weir_job_token(taken) > 0 && weir_job_due_ms(taken) > 0);
    EXPECT_TRUE(weir_job_lateness_us(taken) >= 0);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
}

TEST(where_nothing_is_due_the_answer_comes_at_once)
{
    host_open(NULL);
    take(5, 0);
    add("a");
    take(5, 1);
    take(5, 0);
    EXPECT_STR("a ", ids);
}

TEST(a_call_waits_for_the_first_job_and_no_longer_than_it_says)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 5, 50));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, answer_code);
    EXPECT_INT(0, answer_count);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 5, 3600000));
    take_count = 0;
    add("a");
    AWAIT(answers == 2);
    EXPECT_STR("a ", ids);
    EXPECT_INT(1, look()->running);
}

TEST(calls_are_served_in_their_order_and_take_no_more_than_they_want)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 2, 3600000));
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    EXPECT_INT(WEIR_OK, call_take(weir, "other", 1, 3600000));
    add_to("other", "x");
    AWAIT(answers == 1);
    add("a");
    AWAIT(answers == 2);
    EXPECT_INT(1, answer_count);
    add("b");
    AWAIT(answers == 3);
    add("c");
    EXPECT_STR("ready", state_of("c"));
    EXPECT_STR("x a b ", ids);
    for (size_t i = 0; i < 3; i++)
        settle(i, WEIR_DONE);
    expect_settled("OK OK OK ");
    EXPECT_STR("ready", state_of("c"));
}

TEST(a_thousand_are_taken_by_one_call_and_each_is_told)
{
    const struct weir_new_job job = {.ttl_ms = 0};

    host_open(NULL);
    for (int i = 0; i < 1500; i++)
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "orders", &job, NULL, NULL, NULL));
    AWAIT(look()->ready == 1500);
    take(1000, 1000);
    for (size_t i = 0; i < 1000; i++)
        settle(i, i % 10 == 0 ? WEIR_RETRY : WEIR_DONE);
    AWAIT(settled_count == 1000);
    EXPECT_TRUE(strstr(settled, "WEIR_E") == NULL);
    EXPECT_INT(900, look()->done_total);
    EXPECT_INT(100, look()->scheduled);
    EXPECT_INT(500, look()->ready);
}

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    EXPECT_INT(WEIR_JOB_RUNNING, was);
    EXPECT_INT(WEIR_OK, code);
    *(bool *)arg = true;
}

static void delete_job(const char *id)
{
    bool is_deleted = false;

    EXPECT_INT(WEIR_OK, weir_reactor_delete(weir, "orders", id, on_deleted,
                                            &is_deleted));
    AWAIT(is_deleted);
}

/* --- ends ----------------------------------------------------------------- */

TEST(a_take_whose_job_was_deleted_is_refused_and_its_neighbour_is_not)
{
    host_open(NULL);
    add("a");
    add("b");
    take(2, 2);
    delete_job("a");
    settle(0, WEIR_DONE);
    settle(1, WEIR_DONE);
    AWAIT(settled_count == 2);
    EXPECT_STR("WEIR_ENOTFOUND OK ", settled);
    EXPECT_INT(1, look()->done_total);
}

TEST(a_lease_that_is_lost_is_told_once_and_the_take_stays_until_settled)
{
    take_with = brief_lease;
    host_open(NULL);
    add("a");
    take(1, 1);
    (void)redis_text(server, "DEL weir:{orders}:lease");
    AWAIT(lost[0] != '\0');
    EXPECT_STR("a:2 ", lost);
    EXPECT_TRUE(weir_take_job(takes[0]) == NULL);
    settle(0, WEIR_DONE);
    EXPECT_STR("", settled);
    expect_settled("WEIR_ENOTFOUND ");
}

static void settle_lost(struct weir_take *take, enum weir_cancel why, void *arg)
{
    const struct weir_settlement how = {.fn = on_settled};
    char token[WEIR_TAKE_TOKEN];

    on_lost(take, why, arg);
    EXPECT_INT(WEIR_ENOTFOUND, weir_take_token(take, token));
    EXPECT_INT(WEIR_OK, weir_take_settle(take, &how));
}

TEST(a_take_ends_at_the_timeout_of_its_topic_and_is_retried)
{
    static const char *const brief[] = {"timeout=50ms", "retry=1h", NULL};
    const struct weir_take_options options = {
        .options = brief, .fn = on_taken, .lost = settle_lost};

    host_open(NULL);
    add("a");
    EXPECT_INT(WEIR_OK, weir_reactor_take(weir, "orders", &options, NULL));
    AWAIT(lost[0] != '\0');
    EXPECT_STR("a:0 ", lost);
    expect_settled("WEIR_ENOTFOUND ");
    AWAIT(strcmp(state_of("a"), "scheduled") == 0);
    EXPECT_INT(1, counters.timeouts);
}

/* Until when the one lease is, in server time. */
static long long lease_end(void)
{
    return redis_int(server, "EVAL %s 1 weir:{orders}:lease",
                     "return tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, "
                     "'WITHSCORES')[2])");
}

TEST(its_lease_is_renewed_as_long_as_it_is_out)
{
    long long first;

    take_with = brief_lease;
    host_open(NULL);
    add("a");
    take(1, 1);
    first = lease_end();
    AWAIT(lease_end() > first + 400);
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    EXPECT_STR("", lost);
}

/* --- what is said at once ------------------------------------------------- */

static int refused(const char *topic, const struct weir_take_options *options,
                   const char *why)
{
    struct weir_error err = {0};
    int rc = weir_reactor_take(weir, topic, options, &err);

    EXPECT_CONTAINS(why, err.text);
    return rc;
}

TEST(a_call_that_makes_no_sense_is_refused_with_a_sentence)
{
    static const char *const wrong[] = {"lease=x", NULL};
    const struct weir_take_options many = {.limit = 1001, .fn = on_taken};
    const struct weir_take_options past = {.wait_ms = -1, .fn = on_taken};
    const struct weir_take_options bad = {.options = wrong, .fn = on_taken};
    const struct weir_take_options good = {.fn = on_taken};

    host_open(NULL);
    EXPECT_INT(WEIR_EINVAL, refused("no {t}", &good, "topic"));
    EXPECT_INT(WEIR_EINVAL, refused("orders", &many, "limit is 1001"));
    EXPECT_INT(WEIR_EINVAL, refused("orders", &past, "wait_ms is -1"));
    EXPECT_INT(WEIR_EINVAL, refused("orders", &bad, "lease"));
    take(1, 0);
}

TEST(a_verdict_that_is_none_changes_nothing)
{
    struct weir_settlement how = {.verdict = WEIR_PENDING, .fn = on_settled};

    host_open(NULL);
    add("a");
    take(1, 1);
    EXPECT_INT(WEIR_EINVAL, weir_take_settle(takes[0], &how));
    how.verdict = WEIR_EACH;
    EXPECT_INT(WEIR_EINVAL, weir_take_settle(takes[0], &how));
    settle(0, WEIR_DONE);
    expect_settled("OK ");
}

TEST(a_topic_of_another_kind_is_told)
{
    host_open(NULL);
    (void)redis_text(server, "HSET weir:{events}:meta kind bounded");
    EXPECT_INT(WEIR_OK, call_take(weir, "events", 1, 3600000));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_EKIND, answer_code);
}

TEST(without_a_server_the_answer_says_so)
{
    struct weir_options options = {.request_timeout_ms = 100};

    host_open(&options);
    redis_kill(server, SIGKILL);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 0));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_ECONN, answer_code);
    EXPECT_INT(0, answer_count);
}

/* --- memory --------------------------------------------------------------- */

TEST(without_memory_a_call_is_refused_and_nothing_is_lost)
{
    int rc = WEIR_ENOMEM;

    host_open(NULL);
    add("a");
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = call_take(weir, "orders", 1, 3600000);
        oom_off();
    }
    EXPECT_INT(WEIR_OK, rc);
    AWAIT(answers == 1);
    EXPECT_STR("a ", ids);
}

/* One allocation fails of all from the call to the verdict. */
TEST(whatever_memory_is_missing_a_job_is_settled_or_comes_back)
{
    /* time is the subject */
    static const char *const brief[] = {"lease=300ms", "retry=1ms ...",
                                        "max_crashes=100", NULL};

    take_with = brief;
    host_open(NULL);
    for (int n = 0; n < 60; n++) {
        struct weir_settlement how = {.verdict = WEIR_RETRY, .fn = on_settled};

        take_count = 0;
        answers = settled_count = 0;
        if (strcmp(state_of("a"), "none") == 0)
            add("a");
        oom_once_after(n);
        if (call_take(weir, "orders", 1, 3600000) < 0) {
            oom_off();
            continue;
        }
        AWAIT(answers == 1);
        EXPECT_INT(1, take_count);
        if (n % 2 == 0)
            how.verdict = WEIR_DONE;
        EXPECT_INT(WEIR_OK, weir_take_settle(takes[0], &how));
        AWAIT(settled_count == 1);
        oom_off();
    }
    oom_off();
    take(1, strcmp(state_of("a"), "none") != 0);
}

/* --- the end of the reactor ----------------------------------------------- */

static int stops;

static void on_stopped(void *arg)
{
    (void)arg;
    stops++;
}

TEST(a_reactor_that_stops_waits_for_its_takes_and_takes_no_more)
{
    host_open(NULL);
    add("a");
    take(1, 1);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    weir_reactor_stop(weir, on_stopped, NULL);
    EXPECT_INT(WEIR_ECANCELED, call_take(weir, "orders", 1, 0));
    AWAIT(answers == 2);
    EXPECT_INT(WEIR_ECANCELED, answer_code);
    EXPECT_STR("running", state_of("a"));
    EXPECT_INT(0, stops);
    settle(0, WEIR_DONE);
    AWAIT(stops == 1);
    expect_settled("OK ");
    EXPECT_STR("none", state_of("a"));
}

TEST(a_reactor_that_gives_back_what_is_out_says_so)
{
    host_open(NULL);
    add("a");
    add("b");
    take(2, 2);
    settle(1, WEIR_RETRY);
    weir_reactor_stop(weir, on_stopped, NULL);
    weir_reactor_give_back(weir);
    EXPECT_STR("a:1 ", lost);
    AWAIT(stops == 1);
    settle(0, WEIR_DONE);
    AWAIT(settled_count == 2);
    EXPECT_STR("ready", state_of("a"));
    EXPECT_INT(0, counters.crashes);
    EXPECT_STR("scheduled", state_of("b"));
}

TEST(a_reactor_that_is_freed_tells_all_who_wait)
{
    host_open(NULL);
    add("a");
    add("b");
    take(2, 2);
    redis_kill(server, SIGSTOP);
    settle(0, WEIR_DONE);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    EXPECT_INT(WEIR_OK, call_take(weir, "other", 1, 0));
    host_turn();
    host_close();
    EXPECT_INT(3, answers);
    EXPECT_INT(WEIR_ECANCELED, answer_code);
    EXPECT_STR("b:1 ", lost);
    EXPECT_STR("WEIR_ECANCELED ", settled);
    redis_kill(server, SIGCONT);
}

static struct weir_take *sibling;

static void settle_sibling(int code, void *arg)
{
    const struct weir_settlement how = {.fn = on_settled};

    on_settled(code, arg);
    EXPECT_TRUE(weir_take_job(sibling) == NULL);
    EXPECT_INT(WEIR_ECANCELED, weir_take_settle(sibling, &how));
    EXPECT_INT(WEIR_ECANCELED, weir_take_give_back(sibling, NULL, NULL));
}

TEST(who_is_told_that_the_reactor_was_freed_may_touch_what_is_left)
{
    const struct weir_settlement how = {.fn = settle_sibling};

    host_open(NULL);
    add("a");
    add("b");
    take(2, 2);
    sibling = takes[1];
    redis_kill(server, SIGSTOP);
    EXPECT_INT(WEIR_OK, weir_take_settle(takes[0], &how));
    host_close();
    EXPECT_STR("WEIR_ECANCELED ", settled);
    EXPECT_STR("b:1 ", lost);
    redis_kill(server, SIGCONT);
}

TEST(more_than_a_thousand_calls_do_not_wait)
{
    const struct weir_take_options options = {.fn = on_taken};
    struct weir_error err = {0};

    host_open(NULL);
    for (int i = 0; i < WEIR_MAX_TAKE_CALLS; i++)
        EXPECT_INT(WEIR_OK, call_take(weir, i % 2 == 0 ? "orders" : "other", 1,
                                      3600000));
    EXPECT_INT(WEIR_EFULL, weir_reactor_take(weir, "orders", &options, &err));
    EXPECT_CONTAINS("1000 calls", err.text);
    add("a");
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    EXPECT_INT(WEIR_EFULL, call_take(weir, "orders", 1, 3600000));
    settle(0, WEIR_DONE);
    expect_settled("OK ");
    host_close();
    EXPECT_INT(1 + WEIR_MAX_TAKE_CALLS, answers);
}

TEST(what_came_for_a_call_without_an_answer_goes_with_the_reactor)
{
    struct weir_totals totals = {0};

    host_open(NULL);
    add("a");
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 2, 3600000));
    while (totals.pending == 0) {
        host_turns(1);
        weir_reactor_totals(weir, &totals);
    }
    EXPECT_INT(0, answers);
    host_close();
    EXPECT_INT(1, answers);
    EXPECT_INT(WEIR_ECANCELED, answer_code);
    EXPECT_INT(0, answer_count);
    EXPECT_STR("", lost);
}

static void free_in_call(int code, struct weir_take *const *taken, size_t count,
                         void *arg)
{
    const struct weir_settlement how = {.fn = on_settled};

    on_taken(code, taken, count, arg);
    if (weir == NULL)
        return;
    weir_reactor_free(weir);
    EXPECT_INT(WEIR_ECANCELED, call_take(weir, "orders", 1, 0));
    EXPECT_INT(WEIR_ECANCELED, weir_take_settle(taken[0], &how));
    EXPECT_INT(WEIR_ECANCELED, weir_take_give_back(taken[0], NULL, NULL));
    EXPECT_INT(WEIR_ECANCELED, weir_take_let_go(taken[0]));
    weir = NULL;
}

TEST(the_reactor_may_be_freed_where_a_call_is_answered)
{
    const struct weir_take_options options = {.fn = free_in_call,
                                              .lost = on_lost};

    host_open(NULL);
    add("a");
    EXPECT_INT(WEIR_OK, weir_reactor_take(weir, "orders", &options, NULL));
    EXPECT_INT(WEIR_OK, call_take(weir, "orders", 1, 3600000));
    AWAIT(weir == NULL);
    AWAIT(answers == 2);
    EXPECT_INT(WEIR_ECANCELED, answer_code);
    EXPECT_STR("a:1 ", lost);
    EXPECT_STR("", settled);
}

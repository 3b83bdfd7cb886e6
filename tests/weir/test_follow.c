/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/weir/follow_fixture.h"

/* Jobs that handlers add to their own topic. */

static enum weir_verdict run_chain(void *self, struct weir_job *job)
{
    int64_t number = 0;

    (void)self;
    note(job);
    if (is_id(job, "first")) {
        follow(job, "second", 0);
        follow(job, NULL, 0);
    } else {
        EXPECT_TRUE(weir_job_i64(job, "n", &number) && number == 7);
        EXPECT_MEM("http://h/", 9, weir_job_url(job).ptr,
                   weir_job_url(job).len);
    }
    return WEIR_DONE;
}

TEST(jobs_that_a_handler_adds_run_after_it)
{
    open_host(run_chain, NULL);
    add("first");
    await_settled(3);
    EXPECT_INT(0, codes[0]);
    EXPECT_INT(0, codes[1]);
    EXPECT_TRUE(strcmp(ran, "first second @ ") == 0 ||
                strcmp(ran, "first @ second ") == 0);
    EXPECT_INT(3, last.added_total);
    EXPECT_INT(0, last.ready + last.scheduled + last.running + last.dead);
    EXPECT_STR("", logged);
}

static enum weir_verdict run_again(void *self, struct weir_job *job)
{
    (void)self;
    note(job);
    if (code_count < 3)
        follow(job, "again", 10);
    return WEIR_DONE;
}

TEST(a_job_that_is_done_may_add_itself_anew)
{
    open_host(run_again, NULL);
    add("again");
    await_settled(4);
    EXPECT_STR("again again again again ", ran);
    EXPECT_STR("", logged);
}

static enum weir_verdict run_each(void *self, struct weir_job *job)
{
    (void)self;
    if (is_id(job, "done"))
        follow(job, "of-done", 3600000);
    else if (is_id(job, "retry"))
        follow(job, "of-retry", 3600000);
    else
        follow(job, "done", 3600000); /* exists, or did */
    if (is_id(job, "fail"))
        follow(job, "retry", 3600000); /* exists */
    if (is_id(job, "retry"))
        return weir_retry(job, "later");
    return is_id(job, "fail") ? weir_fail(job, "never") : WEIR_DONE;
}

TEST(they_come_with_every_verdict_and_an_id_that_exists_is_named)
{
    open_host(run_each, NULL);
    add("done");
    add("retry");
    add("fail");
    await_settled(3);
    EXPECT_INT(1, last.done_total);
    EXPECT_INT(1, last.dead);
    EXPECT_INT(4, last.scheduled); /* of-done, of-retry, retry, done */
    EXPECT_CONTAINS("t: 1 jobs that handlers added with their verdicts exist "
                    "already",
                    logged);
}

static enum weir_verdict run_too_much(void *self, struct weir_job *job)
{
    const uint8_t broken[] = {0xc1};
    struct weir_follow bad = {.id = "has a blank"};

    (void)self;
    codes[code_count++] = weir_job_follow(job, &bad);
    bad = (struct weir_follow){.body = {broken, 1}};
    codes[code_count++] = weir_job_follow(job, &bad);
    bad = (struct weir_follow){.priority = "soon"};
    codes[code_count++] = weir_job_follow(job, &bad);
    bad = (struct weir_follow){.key = ""};
    codes[code_count++] = weir_job_follow(job, &bad);
    bad = (struct weir_follow){.retry = "soon"};
    codes[code_count++] = weir_job_follow(job, &bad);
    for (int i = 0; i < 65; i++)
        follow(job, NULL, 3600000);
    return WEIR_DONE;
}

TEST(bad_ones_and_too_many_are_refused)
{
    open_host(run_too_much, NULL);
    add("1");
    await_settled(1);
    EXPECT_INT(WEIR_EINVAL, codes[0]);
    EXPECT_INT(WEIR_EMALFORMED, codes[1]);
    for (int i = 2; i < 5; i++)
        EXPECT_INT(WEIR_EINVAL, codes[i]);
    EXPECT_INT(WEIR_OK, codes[68]);
    EXPECT_INT(WEIR_EFULL, codes[69]);
    EXPECT_INT(64, last.scheduled);
}

/* Adds to its own topic or another one, in an order that is not theirs. */
static enum weir_verdict run_keyed(void *self, struct weir_job *job)
{
    static const struct weir_follow each[] = {
        {.id = "low", .key = "a", .priority = "low", .delay_ms = 1},
        {.id = "plain", .delay_ms = 1},
        {.id = "urgent", .key = "b", .priority = "urgent", .delay_ms = 1}};
    static const char *const topics[] = {"t", "one"};

    note(job);
    for (size_t i = 0; i < 6 && is_id(job, "first"); i++)
        codes[code_count++] =
            weir_job_follow_to(job, topics[i / 3], &each[i % 3]);
    (void)self;
    return WEIR_DONE;
}

static int count_laned(const char *topic, const char *lane)
{
    return (int)redis_int(server, "ZCARD weir:{%s}:lane:%s", topic, lane);
}

TEST(they_may_have_keys_and_priorities_in_any_topic)
{
    open_host(run_keyed, NULL);
    add("first");
    await_settled(4);
    EXPECT_STR("first urgent plain low ", ran);
    look("one");
    while (last.ready + last.scheduled < 3)
        look("one");
    for (int i = 0; i < code_count; i++)
        EXPECT_INT(WEIR_OK, codes[i]);
    EXPECT_INT(1, count_laned("one", "3a"));
    EXPECT_INT(1, count_laned("one", "0b"));
    EXPECT_INT(2, redis_int(server, "HLEN weir:{one}:of"));
    EXPECT_INT(0, redis_int(server, "HLEN weir:{t}:of"));
    EXPECT_STR("", logged);
}

static enum weir_verdict run_wide(void *self, struct weir_job *job)
{
    (void)self;
    if (!is_id(job, "@") && weir_job_url(job).len == 0)
        for (int i = 0; i < 20; i++) {
            code_count = 0;
            follow(job, NULL, 3600000 + 1000 * (i % 3));
        }
    return WEIR_DONE;
}

TEST(many_runs_add_many_jobs)
{
    struct weir_new_job job = {0};

    open_host(run_wide, NULL);
    for (int i = 0; i < 700; i++)
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, NULL, NULL, NULL));
    await_settled(700);
    EXPECT_INT(14000, last.scheduled);
    EXPECT_STR("", logged);
}

static struct weir_handle held;

static void let_go(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)job;
    EXPECT_INT(WEIR_CANCEL_TIMEOUT, why);
    EXPECT_INT(WEIR_OK,
               weir_complete(*(struct weir_handle *)arg, WEIR_DONE, 0, NULL));
}

static enum weir_verdict run_too_long(void *self, struct weir_job *job)
{
    (void)self;
    follow(job, "never", 0);
    held = weir_job_handle(job);
    weir_job_on_cancel(job, let_go, &held);
    return WEIR_PENDING;
}

TEST(a_run_that_times_out_adds_nothing)
{
    open_host(run_too_long, "timeout=50ms");
    add("1");
    await_settled(1);
    EXPECT_INT(1, last.scheduled); /* itself */
    EXPECT_INT(1, last.added_total);
}

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    struct weir_handle *handle = arg;

    EXPECT_INT(WEIR_OK, code);
    EXPECT_INT(WEIR_JOB_RUNNING, was);
    EXPECT_INT(WEIR_OK, weir_complete(*handle, WEIR_DONE, 0, NULL));
}

static enum weir_verdict run_deleted(void *self, struct weir_job *job)
{
    (void)self;
    if (is_id(job, "last"))
        return WEIR_DONE;
    follow(job, "never", 0);
    held = weir_job_handle(job);
    EXPECT_INT(WEIR_OK, weir_reactor_delete(weir, "t", "1", on_deleted, &held));
    return WEIR_PENDING;
}

TEST(a_verdict_that_is_refused_adds_nothing)
{
    open_host(run_deleted, NULL);
    add("1");
    while (strstr(logged, "came too late") == NULL)
        ev_run(loop, EVRUN_ONCE);
    add("last");
    await_settled(1);
    EXPECT_INT(2, last.added_total);
    EXPECT_INT(0, last.ready + last.scheduled);
}

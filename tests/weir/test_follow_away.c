/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/weir/follow_fixture.h"

/* Jobs that handlers add to other topics, too. */

static void follow_to(struct weir_job *job, const char *topic, const char *id)
{
    struct weir_follow next = {.id = id};

    codes[code_count++] = weir_job_follow_to(job, topic, &next);
}

static enum weir_verdict run_other(void *self, struct weir_job *job)
{
    (void)self;
    note(job);
    return WEIR_DONE;
}

static void serve_other(const char *name)
{
    struct weir_topic_options topic = {.run = run_other};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, name, &topic, NULL));
}

static enum weir_verdict run_spread(void *self, struct weir_job *job)
{
    (void)self;
    if (is_id(job, "c"))
        return WEIR_DONE;
    follow_to(job, "one", "a");
    follow_to(job, "two", "b");
    follow_to(job, "one", NULL);
    follow_to(job, "t", "c"); /* its own */
    return weir_fail(job, "never");
}

TEST(jobs_for_other_topics_come_with_the_verdict)
{
    open_host(run_spread, NULL);
    serve_other("one");
    serve_other("two");
    add("x");
    await_settled(2);
    while (strlen(ran) < strlen("a ~ b "))
        ev_run(loop, EVRUN_ONCE);
    EXPECT_INT(2, last.added_total);
    EXPECT_INT(1, last.dead);
    look("one");
    EXPECT_INT(2, last.added_total);
    look("two");
    EXPECT_INT(1, last.added_total);
    EXPECT_INT(1, redis_int(server, "SISMEMBER weir:topics two"));
    for (int i = 0; i < code_count; i++)
        EXPECT_INT(WEIR_OK, codes[i]);
    EXPECT_STR("", logged);
}

static enum weir_verdict run_to_list(void *self, struct weir_job *job)
{
    (void)self;
    follow_to(job, "l", NULL);
    follow_to(job, "one", NULL);
    follow(job, "beside", 0);
    return is_id(job, "fail") ? weir_fail(job, "never") : WEIR_DONE;
}

static char shown_error[400];

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    (void)snprintf(shown_error, sizeof(shown_error), "%.*s",
                   (int)job->error.len, (const char *)job->error.ptr);
}

static void show(const char *id)
{
    shown_error[0] = '\0';
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "t", id, on_shown, NULL));
    while (shown_error[0] == '\0')
        ev_run(loop, EVRUN_ONCE);
}

TEST(done_is_a_retry_where_the_other_topic_is_of_another_kind)
{
    open_host(run_to_list, NULL);
    EXPECT_INT(1, redis_int(server, "HSET weir:{l}:meta kind list"));
    add("done");
    add("fail");
    await_settled(2);
    EXPECT_INT(1, last.retried_total);
    EXPECT_INT(1, last.failed_total);
    EXPECT_INT(0, last.done_total);
    EXPECT_INT(2, last.added_total); /* nothing beside */
    EXPECT_CONTAINS("t: l is not of kind delay; handlers that add jobs there "
                    "with DONE run again",
                    logged);
    show("done");
    EXPECT_STR("l or another topic did not take the jobs it adds", shown_error);
    show("fail");
    EXPECT_STR("never", shown_error);
    EXPECT_INT(0, redis_int(server, "EXISTS weir:{one}:meta weir:{l}:wait"));
}

static enum weir_verdict run_two_each(void *self, struct weir_job *job)
{
    (void)self;
    follow_to(job, "one", NULL);
    follow_to(job, "one", NULL);
    return WEIR_DONE;
}

static void on_set(int code, const char *text, void *arg)
{
    (void)text;
    EXPECT_INT(WEIR_OK, code);
    *(bool *)arg = true;
}

static void set(const char *topic, const char *setting)
{
    const char *const settings[] = {setting, NULL};
    bool is_set = false;

    EXPECT_INT(WEIR_OK,
               weir_reactor_set(weir, topic, settings, on_set, &is_set, NULL));
    while (!is_set)
        ev_run(loop, EVRUN_ONCE);
}

TEST(done_is_a_retry_where_too_many_jobs_wait_and_none_is_lost)
{
    open_host(run_two_each, NULL);
    set("one", "max_pending=5");
    set("t", "retry=10ms ...");
    add("1");
    add("2");
    add("3");
    while (strstr(logged, "t: one is full (max_pending)") == NULL)
        ev_run(loop, EVRUN_ONCE);
    look("one");
    EXPECT_INT(4, last.added_total);
    set("one", "max_pending=6");
    while (last.done_total < 3)
        look("t");
    EXPECT_INT(0, last.ready + last.scheduled + last.running + last.dead);
    look("one");
    EXPECT_INT(6, last.added_total);
}

TEST(a_job_whose_jobs_are_never_taken_dies_of_it_where_dead_jobs_go)
{
    open_host(run_two_each, NULL);
    set("one", "max_pending=1");
    set("t", "retry=none");
    add("1");
    await_settled(1);
    EXPECT_INT(1, last.dead);
    show("1");
    EXPECT_STR("one or another topic did not take the jobs it adds",
               shown_error);
}

TEST(one_whose_jobs_are_not_taken_moves_to_where_dead_jobs_go)
{
    open_as(&(struct weir_topic_options){
        .run = run_two_each, .options = {"retry=none", "on_dead=grave"}});
    set("one", "max_pending=1");
    add("1");
    await_settled(1);
    EXPECT_INT(1, last.failed_total);
    EXPECT_INT(0, last.dead);
    look("grave");
    EXPECT_INT(1, last.ready + last.scheduled);
    look("one");
    EXPECT_INT(0, last.added_total);
}

static enum weir_verdict run_blocking(void *self, struct weir_job *job)
{
    struct weir_follow next = {.delay_ms = 3600000};

    (void)self;
    if (weir_job_follow(job, &next) < 0 ||
        weir_job_follow_to(job, "one", &next) < 0)
        return weir_fail(job, "cannot add");
    return WEIR_DONE;
}

TEST(handlers_on_threads_add_jobs_to_their_topic_and_others)
{
    struct weir_new_job job = {0};

    open_as(
        &(struct weir_topic_options){.run = run_blocking, .blocking = true});
    for (int i = 0; i < 300; i++)
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, NULL, NULL, NULL));
    await_settled(300);
    EXPECT_INT(300, last.done_total);
    EXPECT_INT(300, last.scheduled);
    look("one");
    EXPECT_INT(300, last.scheduled);
}

static enum weir_verdict run_batch(void *self, struct weir_job *const *jobs,
                                   size_t count, enum weir_verdict *verdicts)
{
    for (size_t i = 0; i < count; i++)
        verdicts[i] = run_blocking(self, jobs[i]);
    return WEIR_EACH;
}

TEST(a_handler_of_many_jobs_adds_with_each_of_them)
{
    struct weir_new_job job = {0};

    open_as(&(struct weir_topic_options){.run_batch = run_batch});
    for (int i = 0; i < 300; i++)
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, NULL, NULL, NULL));
    await_settled(300);
    EXPECT_INT(300, last.done_total);
    EXPECT_INT(300, last.scheduled);
    look("one");
    EXPECT_INT(300, last.scheduled);
}

static enum weir_verdict run_bad_topics(void *self, struct weir_job *job)
{
    (void)self;
    follow_to(job, "", NULL);
    follow_to(job, "has a blank", NULL);
    follow_to(job, NULL, NULL);
    follow_to(job, "one", "same");
    follow_to(job, "one", "same");
    return WEIR_DONE;
}

TEST(names_that_are_none_are_refused_and_ids_that_exist_are_named)
{
    open_host(run_bad_topics, NULL);
    add("1");
    await_settled(1);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(WEIR_EINVAL, codes[i]);
    EXPECT_INT(1, last.done_total);
    EXPECT_CONTAINS("t: 1 jobs that handlers added with their verdicts exist "
                    "already",
                    logged);
    look("one");
    EXPECT_INT(1, last.added_total);
}

static struct weir_handle held;

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    struct weir_handle *handle = arg;

    EXPECT_INT(WEIR_OK, code);
    EXPECT_INT(WEIR_JOB_RUNNING, was);
    EXPECT_INT(WEIR_OK, weir_complete(*handle, WEIR_DONE, 0, NULL));
}

static enum weir_verdict run_deleted_away(void *self, struct weir_job *job)
{
    (void)self;
    if (is_id(job, "last"))
        return WEIR_DONE;
    follow_to(job, "one", "never");
    held = weir_job_handle(job);
    EXPECT_INT(WEIR_OK, weir_reactor_delete(weir, "t", "1", on_deleted, &held));
    return WEIR_PENDING;
}

TEST(a_verdict_that_is_refused_adds_nothing_to_another_topic)
{
    open_host(run_deleted_away, NULL);
    add_to("one", "there");
    add("1");
    while (strstr(logged, "came too late") == NULL)
        ev_run(loop, EVRUN_ONCE);
    add("last");
    await_settled(1);
    EXPECT_INT(0, last.retried_total);
    EXPECT_INT(0, last.ready + last.scheduled);
    look("one");
    EXPECT_INT(1, last.added_total);
}

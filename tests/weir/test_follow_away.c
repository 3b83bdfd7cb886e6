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
    while (strlen(ran) < strlen("a @ b "))
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
    follow_to(job, "l", "a");
    follow_to(job, "one", NULL);
    follow(job, "beside", 3600000);
    return WEIR_DONE;
}

static char shown[400];

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    (void)snprintf(shown, sizeof(shown), "%.*s: %.*s", (int)job->reason.len,
                   (const char *)job->reason.ptr, (int)job->error.len,
                   (const char *)job->error.ptr);
}

static void show(const char *id)
{
    shown[0] = '\0';
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "t", id, on_shown, NULL));
    while (shown[0] == '\0')
        ev_run(loop, EVRUN_ONCE);
}

/* Until nothing is on its way to another topic. */
static void await_sent(void)
{
    do
        look("t");
    while (last.relaying > 0);
}

TEST(jobs_for_a_topic_of_another_kind_die_where_they_come_from)
{
    open_host(run_to_list, NULL);
    EXPECT_INT(1, redis_int(server, "HSET weir:{l}:meta kind list"));
    add("1");
    do
        look("t");
    while (last.dead < 1 || last.relaying > 0);
    EXPECT_INT(1, last.done_total);
    EXPECT_INT(0, last.failed_total);
    EXPECT_INT(2, last.added_total);
    EXPECT_INT(1, last.dead);
    EXPECT_CONTAINS("t: l is not of kind delay", logged);
    show("a");
    EXPECT_STR("undeliverable: l is not of kind delay", shown);
    EXPECT_INT(0, redis_int(server, "EXISTS weir:{l}:wait weir:{l}:ids"));
    look("one");
    EXPECT_INT(1, last.added_total);
}

static int add_code;

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    add_code = code;
}

TEST(a_name_that_the_host_serves_keeps_its_kind_when_jobs_follow_to_it)
{
    struct weir_topic_options list = {.run = run_other,
                                      .options = {"kind=list"}};
    struct weir_new_job job = {0};

    add_code = 1;
    open_host(run_to_list, NULL);
    EXPECT_INT(1, redis_int(server, "HSET weir:{l}:meta kind list"));
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "l", &list, NULL));
    add("1");
    AWAIT(strstr(logged, "t: l is not of kind delay") != NULL);
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "l", &job, on_added, NULL, NULL));
    AWAIT(add_code != 1);
    EXPECT_INT(WEIR_OK, add_code);
    AWAIT(ran[0] != '\0');
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

TEST(jobs_wait_where_too_many_wait_there_and_none_is_lost)
{
    open_host(run_two_each, NULL);
    set("one", "max_pending=3");
    add("1");
    await_settled(1);
    await_sent();
    add("2"); /* one more may wait: both go */
    await_settled(2);
    await_sent();
    for (int i = 3; i < 8; i++)
        add((const char[]){(char)('0' + i), '\0'});
    await_settled(7);
    while (strstr(logged, "t: one is full (max_pending)") == NULL)
        ev_run(loop, EVRUN_ONCE);
    look("t");
    EXPECT_INT(7, last.done_total);
    EXPECT_TRUE(last.relaying > 0);
    look("one");
    EXPECT_INT(4, last.added_total);
    set("one", "max_pending=1000");
    await_sent();
    look("one");
    EXPECT_INT(14, last.added_total);
    EXPECT_INT(14, last.ready + last.scheduled);
    EXPECT_INT(0, redis_int(server, "EXISTS weir:{t}:relay"));
}

static enum weir_verdict run_failing(void *self, struct weir_job *job)
{
    (void)self;
    return weir_fail(job, "never");
}

TEST(a_dead_job_whose_id_exists_in_the_other_topic_gets_one_that_weir_makes)
{
    open_as(&(struct weir_topic_options){.run = run_failing,
                                         .options = {"on_dead=one"}});
    add_to("one", "b");
    add("a");
    add("b");
    add("c");
    await_settled(3);
    await_sent();
    EXPECT_INT(3, last.failed_total);
    EXPECT_INT(0, last.dead);
    look("one");
    EXPECT_INT(4, last.ready + last.scheduled);
    EXPECT_INT(1, redis_int(server, "HEXISTS weir:{one}:ids a"));
    EXPECT_INT(4, redis_int(server, "HLEN weir:{one}:ids")); /* with "!" */
    EXPECT_STR("", logged);
}

TEST(a_dead_job_stays_where_the_other_topic_is_of_another_kind)
{
    open_as(&(struct weir_topic_options){.run = run_failing,
                                         .options = {"on_dead=l"}});
    EXPECT_INT(1, redis_int(server, "HSET weir:{l}:meta kind list"));
    add("a");
    do
        look("t");
    while (last.dead < 1);
    EXPECT_INT(1, last.failed_total);
    EXPECT_INT(0, last.relaying);
    show("a");
    EXPECT_STR("undeliverable: l is not of kind delay", shown);
}

TEST(dead_jobs_that_go_for_one_that_cannot_be_delivered_are_a_line)
{
    open_as(&(struct weir_topic_options){
        .run = run_failing, .options = {"on_dead=l", "max_dead=1"}});
    EXPECT_INT(1, redis_int(server, "HSET weir:{l}:meta kind list"));
    add("a");
    do
        look("t");
    while (last.dead < 1 || last.relaying > 0);
    EXPECT_TRUE(strstr(logged, "evicted") == NULL);
    add("b");
    while (strstr(logged, "evicted") == NULL)
        look("t");
    EXPECT_CONTAINS("t: 1 dead evicted: no more than max_dead (1) are kept",
                    logged);
    look("t");
    EXPECT_INT(1, last.dead);
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
    await_sent();
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
    await_sent();
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
    await_sent();
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
    EXPECT_INT(0, last.ready + last.scheduled + last.relaying);
    look("one");
    EXPECT_INT(1, last.added_total);
}

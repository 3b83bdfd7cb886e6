/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <ev.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

/* Jobs that handlers add with their verdicts, on a real server. */
static struct redis_proc *server;
static struct ev_loop *loop;
static struct weir_reactor *weir;
static char ran[400]; /* ids in the order of their runs, a blank behind each */
static char logged[400];
static int codes[80], code_count;

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    if (level >= WEIR_LEVEL_WARN)
        (void)snprintf(logged, sizeof(logged), "%s", text);
}

static void open_host(weir_run_fn run, int64_t timeout_ms)
{
    struct weir_options options = {.log = log_line};
    struct weir_topic_options topic = {
        .run = run, .retry = "1h", .timeout_ms = timeout_ms};

    server = redis_start(NULL);
    loop = ev_loop_new(0);
    options.loop = loop;
    options.redis_url = redis_url(server);
    EXPECT_INT(WEIR_OK, weir_reactor_open(&options, &weir, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &topic, NULL));
}

static void close_host(void)
{
    weir_reactor_free(weir);
    ev_loop_destroy(loop);
    redis_stop(server);
}

static void add_to(const char *topic, const char *id)
{
    struct weir_new_job job = {.id = id};

    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, topic, &job, NULL, NULL, NULL));
}

static void add(const char *id)
{
    add_to("t", id);
}

static int64_t now_s(void)
{
    struct timespec now = {0};

    EXPECT_INT(0, clock_gettime(CLOCK_MONOTONIC, &now));
    return now.tv_sec;
}

static struct weir_stats last;
static bool is_asking;

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)arg;
    is_asking = false;
    if (code == WEIR_OK)
        last = *stats;
}

static void look(const char *topic)
{
    is_asking = true;
    EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, topic, on_stats, NULL));
    while (is_asking)
        ev_run(loop, EVRUN_ONCE);
}

static uint64_t settled(void)
{
    return last.done_total + last.retried_total + last.failed_total;
}

/* Run the loop until so many verdicts are settled, and a look after that. */
static void await_settled(uint64_t count)
{
    int64_t until = now_s() + 30;
    int looks = 0;

    while ((looks < 2 || is_asking) && now_s() < until) {
        if (!is_asking) {
            looks += settled() >= count;
            EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "t", on_stats, NULL));
            is_asking = true;
        }
        ev_run(loop, EVRUN_ONCE);
    }
    EXPECT_INT(count, settled());
}

static bool is_id(const struct weir_job *job, const char *id)
{
    struct weir_slice own = weir_job_id(job);

    return own.len == strlen(id) && memcmp(own.ptr, id, own.len) == 0;
}

static void note(const struct weir_job *job)
{
    struct weir_slice id = weir_job_id(job);
    size_t len = strlen(ran);

    (void)snprintf(ran + len, sizeof(ran) - len, "%.*s ", (int)id.len,
                   id.ptr[0] == '~' ? "~" : (const char *)id.ptr);
}

static void follow(struct weir_job *job, const char *id, int64_t delay_ms)
{
    const uint8_t body[] = {0x81, 0xa1, 'n', 7};
    struct weir_follow next = {.id = id,
                               .body = {body, sizeof(body)},
                               .delay_ms = delay_ms,
                               .url = "http://h/",
                               .retry = "5s"};

    codes[code_count++] = weir_job_follow(job, &next);
}

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
    open_host(run_chain, 0);
    add("first");
    await_settled(3);
    EXPECT_INT(0, codes[0]);
    EXPECT_INT(0, codes[1]);
    EXPECT_TRUE(strcmp(ran, "first second ~ ") == 0 ||
                strcmp(ran, "first ~ second ") == 0);
    EXPECT_INT(3, last.added_total);
    EXPECT_INT(0, last.ready + last.scheduled + last.running + last.dead);
    EXPECT_STR("", logged);
    close_host();
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
    open_host(run_again, 0);
    add("again");
    await_settled(4);
    EXPECT_STR("again again again again ", ran);
    EXPECT_STR("", logged);
    close_host();
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
    open_host(run_each, 0);
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
    close_host();
}

static enum weir_verdict run_too_much(void *self, struct weir_job *job)
{
    const uint8_t broken[] = {0xc1};
    struct weir_follow bad = {.id = "has a blank"};

    (void)self;
    codes[code_count++] = weir_job_follow(job, &bad);
    bad = (struct weir_follow){.body = {broken, 1}};
    codes[code_count++] = weir_job_follow(job, &bad);
    bad = (struct weir_follow){.retry = "soon"};
    codes[code_count++] = weir_job_follow(job, &bad);
    for (int i = 0; i < 65; i++)
        follow(job, NULL, 3600000);
    return WEIR_DONE;
}

TEST(bad_ones_and_too_many_are_refused)
{
    open_host(run_too_much, 0);
    add("1");
    await_settled(1);
    EXPECT_INT(WEIR_EINVAL, codes[0]);
    EXPECT_INT(WEIR_EMALFORMED, codes[1]);
    EXPECT_INT(WEIR_EINVAL, codes[2]);
    EXPECT_INT(WEIR_OK, codes[66]);
    EXPECT_INT(WEIR_EFULL, codes[67]);
    EXPECT_INT(64, last.scheduled);
    close_host();
}

static enum weir_verdict run_wide(void *self, struct weir_job *job)
{
    (void)self;
    if (!is_id(job, "~") && weir_job_url(job).len == 0)
        for (int i = 0; i < 20; i++) {
            code_count = 0;
            follow(job, NULL, 3600000 + 1000 * (i % 3));
        }
    return WEIR_DONE;
}

TEST(many_runs_add_many_jobs)
{
    struct weir_new_job job = {0};

    open_host(run_wide, 0);
    for (int i = 0; i < 700; i++)
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, NULL, NULL, NULL));
    await_settled(700);
    EXPECT_INT(14000, last.scheduled);
    EXPECT_STR("", logged);
    close_host();
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
    open_host(run_too_long, 50);
    add("1");
    await_settled(1);
    EXPECT_INT(1, last.scheduled); /* itself */
    EXPECT_INT(1, last.added_total);
    close_host();
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
    open_host(run_deleted, 0);
    add("1");
    while (strstr(logged, "came too late") == NULL)
        ev_run(loop, EVRUN_ONCE);
    add("last");
    await_settled(1);
    EXPECT_INT(2, last.added_total);
    EXPECT_INT(0, last.ready + last.scheduled);
    close_host();
}

/* --- to other topics ------------------------------------------------------ */

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
    open_host(run_spread, 0);
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
    close_host();
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
    open_host(run_to_list, 0);
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
    close_host();
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
    open_host(run_two_each, 0);
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
    close_host();
}

TEST(a_job_whose_jobs_are_never_taken_dies_of_it_where_dead_jobs_go)
{
    open_host(run_two_each, 0);
    set("one", "max_pending=1");
    set("t", "retry=none");
    add("1");
    await_settled(1);
    EXPECT_INT(1, last.dead);
    show("1");
    EXPECT_STR("one or another topic did not take the jobs it adds",
               shown_error);
    close_host();
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
    open_host(run_bad_topics, 0);
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
    close_host();
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
    open_host(run_deleted_away, 0);
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
    close_host();
}

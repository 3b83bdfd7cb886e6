/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <ev.h>
#include <string.h>

#include "tests/harness/oom.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

/* What <weir/weir.h> makes of unusual arguments. */
static struct redis_proc *server;
static struct ev_loop *loop;
static struct weir_reactor *weir;
static int last_code;
static bool is_answered;

static struct weir_options host_options(void)
{
    return (struct weir_options){.loop = loop, .redis_url = redis_url(server)};
}

static void open_host(void)
{
    struct weir_options options;

    server = redis_start(NULL);
    loop = ev_loop_new(0);
    options = host_options();
    EXPECT_INT(WEIR_OK, weir_reactor_open(&options, &weir, NULL));
}

static void close_host(void)
{
    weir_reactor_free(weir);
    ev_loop_destroy(loop);
}

static void late(struct ev_loop *on, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    ev_break(on, EVBREAK_ALL);
}

/* Run the loop until there is an answer; 20 s is a failure. */
static void await_answer(void)
{
    ev_timer timer;

    ev_timer_init(&timer, late, 20., 0.);
    ev_timer_start(loop, &timer);
    while (!is_answered && ev_is_active(&timer))
        ev_run(loop, EVRUN_ONCE);
    ev_timer_stop(loop, &timer);
    EXPECT_TRUE(is_answered);
    is_answered = false;
}

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    last_code = code;
    is_answered = true;
}

static void on_show(int code, const struct weir_job_info *job, void *arg)
{
    (void)job;
    (void)arg;
    last_code = code;
    is_answered = true;
}

TEST(a_delete_without_a_callback_deletes)
{
    struct weir_new_job job = {.id = "a", .delay_ms = 60000};

    open_host();
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, NULL));
    await_answer();
    EXPECT_INT(WEIR_OK, last_code);
    EXPECT_INT(WEIR_OK, weir_reactor_delete(weir, "orders", "a", NULL, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "orders", "a", on_show, NULL));
    await_answer();
    EXPECT_INT(WEIR_ENOTFOUND, last_code);
    close_host();
}

TEST(a_time_is_accepted_up_to_2286)
{
    struct weir_new_job job = {.at_ms = 9999999999999};
    struct weir_error err = {0};

    open_host();
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, &err));
    await_answer();
    EXPECT_INT(WEIR_OK, last_code);
    job.at_ms++;
    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, &err));
    EXPECT_CONTAINS("2286", err.text);
    close_host();
}

static void on_moved(int code, enum weir_job_state was, int64_t due_ms,
                     void *arg)
{
    (void)was;
    (void)due_ms;
    (void)arg;
    last_code = code;
    is_answered = true;
}

TEST(a_job_is_moved_to_2286_at_most)
{
    struct weir_due due = {.at_ms = 9999999999999};

    open_host();
    EXPECT_INT(WEIR_OK, weir_reactor_reschedule(weir, "orders", "none", &due,
                                                on_moved, NULL));
    await_answer();
    EXPECT_INT(WEIR_ENOTFOUND, last_code);
    due.at_ms++;
    EXPECT_INT(WEIR_EINVAL, weir_reactor_reschedule(weir, "orders", "none",
                                                    &due, on_moved, NULL));
    due.at_ms = INT64_MAX;
    EXPECT_INT(WEIR_EINVAL, weir_reactor_reschedule(weir, "orders", "none",
                                                    &due, on_moved, NULL));
    close_host();
}

TEST(a_request_timeout_is_at_most_a_day)
{
    const int64_t bad[] = {-1, 86400001, INT64_MAX};
    struct weir_options options;
    struct weir_error err = {0};
    struct weir_reactor *other = NULL;

    open_host();
    options = host_options();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.request_timeout_ms = bad[i];
        EXPECT_INT(WEIR_EINVAL, weir_reactor_open(&options, &other, &err));
        EXPECT_CONTAINS("request_timeout_ms", err.text);
    }
    options.request_timeout_ms = 86400000;
    EXPECT_INT(WEIR_OK, weir_reactor_open(&options, &other, &err));
    weir_reactor_free(other);
    close_host();
}

static enum weir_verdict run_done(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

TEST(serving_says_so_when_memory_runs_out)
{
    struct weir_topic_options topic = {.run = run_done};
    int rc = WEIR_ENOMEM, failures = 0;

    open_host();
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        struct weir_error err = {0};

        oom_after(n);
        rc = weir_reactor_serve(weir, "orders", &topic, &err);
        oom_off();
        EXPECT_INT(rc, err.code);
        failures += rc == WEIR_ENOMEM;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failures > 0);
    close_host();
}

static void on_canceled(int code, const char *id, void *arg)
{
    struct weir_topic_options topic = {.run = run_done};
    struct weir_error err = {0};

    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_ECANCELED, code);
    EXPECT_INT(WEIR_ECANCELED,
               weir_reactor_serve(weir, "orders", &topic, &err));
    EXPECT_INT(WEIR_ECANCELED, err.code);
    is_answered = true;
}

TEST(a_reactor_that_is_being_freed_serves_nothing)
{
    struct weir_new_job job = {0};

    open_host();
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_canceled, NULL, NULL));
    weir_reactor_free(weir);
    weir = NULL;
    EXPECT_TRUE(is_answered);
    close_host();
}

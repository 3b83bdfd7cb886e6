/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <string.h>

#include "tests/harness/oom.h"
#include "tests/weir/host.h"

/* What <weir/weir.h> makes of unusual arguments. */
static int last_code;
static bool is_answered;

static void await_answer(void)
{
    AWAIT(is_answered);
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

static void open_host(void)
{
    host_open(NULL);
}
TEST_SETUP(open_host)

TEST(a_delete_without_a_callback_deletes)
{
    struct weir_new_job job = {.id = "a", .delay_ms = 60000};

    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, NULL));
    await_answer();
    EXPECT_INT(WEIR_OK, last_code);
    EXPECT_INT(WEIR_OK, weir_reactor_delete(weir, "orders", "a", NULL, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "orders", "a", on_show, NULL));
    await_answer();
    EXPECT_INT(WEIR_ENOTFOUND, last_code);
}

TEST(a_time_is_accepted_up_to_2286)
{
    struct weir_new_job job = {.at_ms = 9999999999999};
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, &err));
    await_answer();
    EXPECT_INT(WEIR_OK, last_code);
    job.at_ms++;
    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, &err));
    EXPECT_CONTAINS("2286", err.text);
}

/* The server keeps no append-only file, and may be too old for the question. */
TEST(a_durability_is_one_that_the_topic_and_the_server_know)
{
    struct weir_new_job job = {.id = "a", .durability = "replica:0"};
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, &err));
    EXPECT_CONTAINS("durability: \"replica:0\" is none of these", err.text);
    job.durability = "server";
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, &err));
    await_answer();
    EXPECT_INT(WEIR_OK, last_code);
    job.durability = "fsync:2";
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, &err));
    await_answer();
    EXPECT_INT(WEIR_EINVAL, last_code);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "l", "list", &err));
    job = (struct weir_new_job){.durability = "replica"};
    EXPECT_INT(WEIR_EINVAL,
               weir_reactor_add(weir, "l", &job, on_added, NULL, &err));
    EXPECT_CONTAINS("its jobs have no durability", err.text);
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
}

TEST(a_request_timeout_is_at_most_a_day)
{
    const int64_t bad[] = {-1, 86400001, INT64_MAX};
    struct weir_options options = {0};
    struct weir_error err = {0};
    struct weir_reactor *other = NULL;

    options.loop = loop;
    options.redis_url = redis_url(server);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.request_timeout_ms = bad[i];
        EXPECT_INT(WEIR_EINVAL, weir_reactor_open(&options, &other, &err));
        EXPECT_CONTAINS("request_timeout_ms", err.text);
    }
    options.request_timeout_ms = 86400000;
    EXPECT_INT(WEIR_OK, weir_reactor_open(&options, &other, &err));
    weir_reactor_free(other);
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

    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_canceled, NULL, NULL));
    weir_reactor_free(weir);
    weir = NULL;
    EXPECT_TRUE(is_answered);
}

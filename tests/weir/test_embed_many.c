/* SPDX-License-Identifier: MIT */
#include <weir/thread.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/oom.h"
#include "tests/weir/host.h"

/* A host on libev: many jobs in one call, and calls from other threads. */
static struct weir_added got[8];
static char got_ids[8][WEIR_MAX_ID + 1];
static int answers, calls, runs, cancels, last_code;

static void on_added(const struct weir_added *added, size_t count, void *arg)
{
    (void)arg;
    EXPECT_TRUE(count <= 8);
    answers++;
    for (size_t i = 0; i < count; i++) {
        got[i] = added[i];
        EXPECT_TRUE(strlen(added[i].id) < sizeof(got_ids[i]));
        memcpy(got_ids[i], added[i].id, strlen(added[i].id) + 1);
    }
    last_code = added[count - 1].code;
}

TEST(one_answer_tells_what_became_of_each_of_many)
{
    struct weir_new_job jobs[4] = {{.id = "a"}, {0}, {.id = "a"}, {.id = "b"}};
    struct weir_new_jobs many = {"orders", jobs, 4, on_added, NULL};

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_add_many(weir, &many, NULL));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, got[0].code);
    EXPECT_STR("a", got_ids[0]);
    EXPECT_INT(WEIR_OK, got[1].code);
    EXPECT_INT('@', got_ids[1][0]);
    EXPECT_INT(WEIR_EEXISTS, got[2].code);
    EXPECT_STR("a", got_ids[2]);
    EXPECT_INT(WEIR_OK, got[3].code);
    EXPECT_STR("b", got_ids[3]);
    host_close();
    EXPECT_INT(1, answers);
}

TEST(who_has_the_key_of_one_of_many_is_told_whatever_its_id_is)
{
    static char holder[WEIR_MAX_ID + 1];
    struct weir_new_job jobs[3] = {{.unique = "k"}, {.id = "a"}, {.id = "b"}};
    struct weir_new_jobs many = {"orders", jobs, 3, on_added, NULL};
    struct weir_new_job first = {.id = holder, .unique = "k"};
    struct weir_error err = {0};

    memset(holder, 'h', WEIR_MAX_ID);
    host_open(NULL);
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &first, NULL, NULL, NULL));
    jobs[1].unique = "k";
    jobs[2].unique_for = "1h";
    EXPECT_INT(WEIR_EINVAL, weir_reactor_add_many(weir, &many, &err));
    EXPECT_CONTAINS("job 2: unique_for, unique_else and max_wait say something",
                    err.text);
    jobs[2].unique = "l";
    EXPECT_INT(WEIR_OK, weir_reactor_add_many(weir, &many, NULL));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_EEXISTS, got[0].code);
    EXPECT_STR(holder, got_ids[0]);
    EXPECT_INT(WEIR_EEXISTS, got[1].code);
    EXPECT_STR(holder, got_ids[1]);
    EXPECT_INT(WEIR_OK, got[2].code);
    EXPECT_INT(WEIR_OK, weir_reactor_submit(weir, &many, NULL));
    AWAIT(answers == 2);
    EXPECT_STR(holder, got_ids[1]);
    EXPECT_INT(WEIR_EEXISTS, got[2].code);
    EXPECT_STR("b", got_ids[2]);
    host_close();
}

TEST(where_one_of_many_is_wrong_none_is_added)
{
    struct weir_new_job jobs[2] = {{.id = "a"}, {.delay_ms = -1}};
    struct weir_new_jobs many = {"orders", jobs, 2, on_added, NULL};
    struct weir_error err = {0};

    host_open(NULL);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_add_many(weir, &many, &err));
    EXPECT_CONTAINS("job 1: delay of -1 ms", err.text);
    many.topic = "no {t}";
    EXPECT_INT(WEIR_EINVAL, weir_reactor_add_many(weir, &many, &err));
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "slow", "sync", NULL));
    many.topic = "slow";
    jobs[1].delay_ms = 5; /* jobs of such a topic have no delay */
    EXPECT_INT(WEIR_EINVAL, weir_reactor_add_many(weir, &many, &err));
    EXPECT_CONTAINS("job 1: topic slow", err.text);
    many.topic = "orders";
    many.count = 1;
    EXPECT_INT(WEIR_OK, weir_reactor_add_many(weir, &many, &err));
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, last_code); /* it was not added before */
}

TEST(what_was_added_and_not_answered_is_canceled_once)
{
    struct weir_new_job jobs[3] = {{0}};
    struct weir_new_jobs many = {"orders", jobs, 3, on_added, NULL};

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_add_many(weir, &many, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_submit(weir, &many, NULL));
    weir_reactor_free(weir);
    weir = NULL;
    EXPECT_INT(2, answers);
    EXPECT_INT(WEIR_ECANCELED, last_code);
}

/* --- calls -- */

static void count_call(int code, struct weir_reactor *reactor, void *arg)
{
    EXPECT_TRUE(reactor == weir && arg == &calls);
    calls++;
    last_code = code;
}

TEST(a_call_runs_in_a_later_turn_also_from_the_loop_itself)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_call(weir, count_call, &calls));
    EXPECT_INT(0, calls);
    AWAIT(calls == 1);
    EXPECT_INT(WEIR_OK, last_code);
}

static void call_again(int code, struct weir_reactor *reactor, void *arg)
{
    struct weir_new_job job = {0};

    EXPECT_INT(WEIR_ECANCELED, code);
    calls++;
    EXPECT_INT(WEIR_ECANCELED,
               weir_reactor_add(reactor, "orders", &job, NULL, NULL, NULL));
    weir_reactor_stop(reactor, NULL, NULL);
    weir_reactor_give_back(reactor);
    weir_reactor_free(reactor);
    if (calls < 3)
        EXPECT_INT(WEIR_OK, weir_reactor_call(reactor, call_again, arg));
}

TEST(calls_not_made_yet_are_canceled_when_the_reactor_is_freed)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_call(weir, count_call, &calls));
    EXPECT_INT(WEIR_OK, weir_reactor_call(weir, call_again, NULL));
    weir_reactor_free(weir);
    EXPECT_INT(3, calls); /* the last one where it is all but gone */
    EXPECT_INT(WEIR_ECANCELED, last_code);
    weir = NULL;
}

static void call_free(int code, struct weir_reactor *reactor, void *arg)
{
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    weir_reactor_free(reactor);
}

TEST(a_call_may_free_the_reactor_and_those_behind_it_are_canceled)
{
    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_call(weir, call_free, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_call(weir, count_call, &calls));
    AWAIT(calls == 1);
    EXPECT_INT(WEIR_ECANCELED, last_code);
    weir = NULL;
}

/* --- freeing while runs are given up -- */

static struct weir_handle handles[3];

static void cancel_free(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)job;
    (void)why;
    cancels++;
    weir_reactor_free(weir);
    EXPECT_INT(WEIR_OK, weir_complete(*(struct weir_handle *)arg, WEIR_DONE, 0,
                                      NULL)); /* nobody else will */
}

static enum weir_verdict run_pending(void *self, struct weir_job *job)
{
    (void)self;
    handles[runs] = weir_job_handle(job);
    weir_job_on_cancel(job, cancel_free, &handles[runs]);
    runs++;
    return WEIR_PENDING;
}

/* A timeout as an option; NULL: the default. */
static void pend_three(const char *timeout)
{
    struct weir_topic_options topic = {.run = run_pending,
                                       .options = {timeout}};
    struct weir_new_job jobs[3] = {{0}};
    struct weir_new_jobs many = {"orders", jobs, 3, on_added, NULL};

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "orders", &topic, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_add_many(weir, &many, NULL));
    AWAIT(runs == 3);
}

TEST(a_cancel_callback_may_free_the_reactor_at_a_timeout)
{
    pend_three("timeout=100ms");
    AWAIT(cancels == 3);
    weir = NULL;
}

TEST(a_cancel_callback_may_free_the_reactor_that_gives_back)
{
    pend_three(NULL);
    weir_reactor_stop(weir, NULL, NULL);
    weir_reactor_give_back(weir);
    EXPECT_INT(3, cancels);
    (void)ev_run(loop, EVRUN_NOWAIT); /* it is freed in this turn */
    weir = NULL;
}

/* --- another thread -- */

static void *submit_one(void *arg)
{
    static char group[] = "customer"; /* outlives the thread */
    struct weir_new_job job = {
        .id = "event",
        .group = group,
        .body = {(const uint8_t *)"\x07", 1},
        .url = "http://x/",
    };
    struct weir_new_jobs many = {"events", &job, 1, on_added, NULL};

    EXPECT_INT(WEIR_OK, weir_reactor_submit(arg, &many, NULL));
    memset(group, '{', sizeof(group) - 1); /* it was copied */
    return NULL;
}

TEST(another_thread_adds_to_a_reactor_on_the_hosts_loop)
{
    pthread_t thread;

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "events", "bounded", NULL));
    EXPECT_INT(0, pthread_create(&thread, NULL, submit_one, weir));
    EXPECT_INT(0, pthread_join(thread, NULL));
    EXPECT_INT(0, answers);
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, last_code);
}

TEST(the_kind_that_was_declared_last_is_what_a_name_means)
{
    struct weir_error err = {0};

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "events", "delay", NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "events", "bounded", NULL));
    EXPECT_INT(WEIR_EINVAL, weir_reactor_declare(weir, "events", "sync", &err));
    EXPECT_CONTAINS("was declared as of kind bounded", err.text);
}

static void on_kind(int code, const char *kind, void *arg)
{
    EXPECT_INT(WEIR_OK, code);
    (void)snprintf(arg, 16, "%s", kind);
    answers++;
}

static void on_canceled(int code, const char *kind, void *arg)
{
    EXPECT_INT(WEIR_ECANCELED, code);
    EXPECT_TRUE(kind == NULL);
    (void)snprintf(arg, 16, "canceled");
}

static void on_code(int code, const char *text, void *arg)
{
    (void)arg;
    (void)text;
    EXPECT_INT(WEIR_OK, code);
    answers++;
}

static void add_one(const char *topic)
{
    struct weir_new_job job = {.id = "a"};
    struct weir_new_jobs many = {topic, &job, 1, on_added, NULL};
    const int before = answers;

    EXPECT_INT(WEIR_OK, weir_reactor_add_many(weir, &many, NULL));
    AWAIT(answers == before + 1);
}

TEST(a_producer_that_asks_for_the_kind_goes_on_with_a_topic_that_changed_it)
{
    const char *const settings[] = {"kind=sync", NULL};
    struct weir_reactor *other;
    char told[16] = "";

    host_open(NULL);
    other = host_reactor(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir, "t", "concurrent", NULL));
    EXPECT_INT(WEIR_OK,
               weir_reactor_set(other, "t", settings, on_code, NULL, NULL));
    AWAIT(answers == 1);
    add_one("t");
    EXPECT_INT(WEIR_EKIND, last_code);
    EXPECT_INT(WEIR_OK, weir_reactor_kind(weir, "t", on_kind, told));
    AWAIT(answers == 3);
    EXPECT_STR("sync", told);
    add_one("t");
    EXPECT_INT(WEIR_OK, last_code);
    weir_reactor_free(other);
}

TEST(a_kind_that_is_asked_for_when_the_reactor_is_freed_is_answered)
{
    char told[16] = "none";

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_kind(weir, "t", on_canceled, told));
    host_close();
    EXPECT_STR("canceled", told);
}

/* --- memory -- */

TEST(without_memory_nothing_is_added_and_nothing_leaks)
{
    struct weir_new_job jobs[2] = {{.id = "a"}, {.id = "b"}};
    struct weir_new_jobs many = {"orders", jobs, 2, on_added, NULL};
    int rc = WEIR_ENOMEM, failed = 0;

    host_open(NULL);
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir_reactor_submit(weir, &many, NULL);
        oom_off();
        failed += rc < 0;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failed > 0);
    AWAIT(answers == 1);
    EXPECT_INT(WEIR_OK, last_code);
    oom_after(0);
    EXPECT_INT(WEIR_ENOMEM, weir_reactor_call(weir, count_call, &calls));
    EXPECT_INT(WEIR_ENOMEM, weir_reactor_add_many(weir, &many, NULL));
    oom_off();
    host_close();
    EXPECT_INT(1, answers);
}

TEST(a_thread_that_lacks_memory_is_not_opened)
{
    struct weir_options options = {.redis_url = "redis://127.0.0.1:1"};
    struct weir_thread *thread = NULL;
    struct weir_error err = {0};
    int rc = WEIR_ENOMEM, failed = 0;

    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir_thread_open(&options, &thread, &err);
        oom_off();
        failed += rc < 0;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failed > 2);
    weir_thread_free(thread);
}

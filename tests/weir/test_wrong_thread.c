/* SPDX-License-Identifier: MIT */
#include <weir/change.h>
#include <weir/past.h>
#include <weir/take.h>
#include <weir/thread.h>
#include <weir/worker.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/weir/host.h"

/* Hosts that use a reactor on another thread than its loop's, or before that
 * runs. */
static int calls; /* of callbacks that are never to run */

static void on_added(int code, const char *id, void *arg)
{
    (void)code;
    (void)id;
    (void)arg;
    calls++;
}

static void on_many(const struct weir_added *added, size_t count, void *arg)
{
    (void)added;
    (void)arg;
    calls += (int)count;
}

static void on_show(int code, const struct weir_job_info *job, void *arg)
{
    (void)code;
    (void)job;
    (void)arg;
    calls++;
}

static void on_delete(int code, enum weir_job_state was, void *arg)
{
    (void)code;
    (void)was;
    (void)arg;
    calls++;
}

static void on_reschedule(int code, enum weir_job_state was, int64_t due_ms,
                          void *arg)
{
    (void)due_ms;
    on_delete(code, was, arg);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)code;
    (void)stats;
    (void)arg;
    calls++;
}

static void on_name(int code, const char *name, void *arg)
{
    (void)code;
    (void)name;
    (void)arg;
    calls++;
}

static void on_counter(const char *name, uint64_t value, void *arg)
{
    (void)name;
    (void)value;
    (void)arg;
    calls++;
}

static void on_count(int code, uint64_t count, void *arg)
{
    (void)code;
    (void)count;
    (void)arg;
    calls++;
}

static void on_setting(int code, const char *key, const char *value, void *arg)
{
    (void)value;
    on_name(code, key, arg);
}

static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    (void)code;
    (void)worker;
    (void)arg;
    calls++;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

#define EXPECT_REFUSED(call) EXPECT_INT(WEIR_ETHREAD, call)

static void on_taken(int code, struct weir_take *const *takes, size_t count,
                     void *arg)
{
    (void)code;
    (void)takes;
    (void)arg;
    calls += (int)count + 1;
}

static void expect_serving_refused(struct weir_reactor *reactor)
{
    struct weir_topic_options topic = {.run = run};
    struct weir_change change = {"other", &topic};
    struct weir_take_options take = {.fn = on_taken};
    struct weir_error err = {0};
    size_t at;

    EXPECT_REFUSED(weir_reactor_take(reactor, "other", &take, NULL));
    EXPECT_REFUSED(weir_reactor_serve(reactor, "other", &topic, &err));
    EXPECT_INT(WEIR_ETHREAD, err.code);
    EXPECT_CONTAINS("weir_reactor_call", err.text);
    EXPECT_REFUSED(weir_reactor_change(reactor, &change, 1, &at, NULL));
    EXPECT_REFUSED(weir_reactor_declare(reactor, "other", "delay", NULL));
    EXPECT_REFUSED(weir_reactor_counters(reactor, "orders", on_counter, NULL));
}

static void expect_jobs_refused(struct weir_reactor *reactor)
{
    struct weir_new_job job = {.id = "a"};
    struct weir_new_jobs jobs = {"orders", &job, 1, on_many, NULL};
    struct weir_old_job old = {.job = job};
    struct weir_due due = {.delay_ms = 1};
    struct weir_list list = {.state = -1, .limit = 1};
    struct weir_error err = {0};

    EXPECT_REFUSED(
        weir_reactor_add(reactor, "orders", &job, on_added, NULL, &err));
    EXPECT_CONTAINS("weir_reactor_submit", err.text);
    EXPECT_REFUSED(weir_reactor_add_many(reactor, &jobs, NULL));
    EXPECT_REFUSED(
        weir_reactor_restore(reactor, "orders", &old, on_added, NULL, NULL));
    EXPECT_REFUSED(weir_reactor_show(reactor, "orders", "a", on_show, NULL));
    EXPECT_REFUSED(
        weir_reactor_delete(reactor, "orders", "a", on_delete, NULL));
    EXPECT_REFUSED(weir_reactor_reschedule(reactor, "orders", "a", &due,
                                           on_reschedule, NULL));
    EXPECT_REFUSED(
        weir_reactor_requeue(reactor, "orders", NULL, on_count, NULL));
    EXPECT_REFUSED(
        weir_reactor_purge_dead(reactor, "orders", NULL, on_count, NULL));
    EXPECT_REFUSED(weir_reactor_purge(reactor, "orders", on_count, NULL));
    EXPECT_REFUSED(weir_reactor_dead(reactor, "orders", 1, on_show, NULL));
    EXPECT_REFUSED(weir_reactor_list(reactor, "orders", -1, 1, on_show, NULL));
    EXPECT_REFUSED(
        weir_reactor_list_from(reactor, "orders", &list, on_show, NULL));
}

static void expect_topics_refused(struct weir_reactor *reactor)
{
    const char *settings[] = {"lease=5s", NULL};

    EXPECT_REFUSED(weir_reactor_stats(reactor, "orders", on_stats, NULL));
    EXPECT_REFUSED(weir_reactor_topics(reactor, on_name, NULL));
    EXPECT_REFUSED(weir_reactor_kind(reactor, "orders", on_name, NULL));
    EXPECT_REFUSED(weir_reactor_pause(reactor, "orders", true, on_name, NULL));
    EXPECT_REFUSED(
        weir_reactor_set(reactor, "orders", settings, on_name, NULL, NULL));
    EXPECT_REFUSED(weir_reactor_settings(reactor, "orders", on_setting, NULL));
    EXPECT_REFUSED(weir_reactor_delete_topic(reactor, "orders", on_name, NULL));
    EXPECT_REFUSED(weir_reactor_workers(reactor, on_worker, NULL));
}

static void expect_all_refused(struct weir_reactor *reactor)
{
    expect_serving_refused(reactor);
    expect_jobs_refused(reactor);
    expect_topics_refused(reactor);
}

static struct weir_thread *open_thread(void)
{
    struct weir_options options = {0};
    struct weir_thread *thread = NULL;

    server = redis_start(NULL);
    options.redis_url = redis_url(server);
    EXPECT_INT(WEIR_OK, weir_thread_open(&options, &thread, NULL));
    return thread;
}

TEST(what_the_host_asks_of_a_reactor_on_its_own_thread_is_refused)
{
    struct weir_topic_options topic = {.run = run};
    struct weir_thread *thread = open_thread();
    struct weir_reactor *reactor = weir_thread_reactor(thread);

    EXPECT_INT(WEIR_OK, weir_reactor_serve(reactor, "orders", &topic, NULL));
    EXPECT_INT(WEIR_OK, weir_thread_start(thread, NULL));
    expect_all_refused(reactor); /* also at once */
    weir_thread_free(thread);
    EXPECT_INT(0, calls);
}

static void *ask(void *arg)
{
    expect_all_refused(arg);
    return NULL;
}

TEST(a_thread_beside_the_hosts_loop_is_refused)
{
    pthread_t other;

    host_open(NULL);
    host_turns(1);
    EXPECT_INT(0, pthread_create(&other, NULL, ask, weir));
    EXPECT_INT(0, pthread_join(other, NULL));
    host_close();
    EXPECT_INT(0, calls);
}

static void *ask_first(void *arg)
{
    struct weir_new_job job = {.id = "a"};

    (void)arg;
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, NULL));
    return NULL;
}

TEST(before_its_first_turn_the_loop_may_go_to_another_thread)
{
    pthread_t other;

    host_open(NULL);
    EXPECT_INT(0, pthread_create(&other, NULL, ask_first, NULL));
    EXPECT_INT(0, pthread_join(other, NULL));
    AWAIT(calls == 1);
}

static atomic_int refusal;

static enum weir_verdict run_beside(void *self, struct weir_job *job)
{
    struct weir_new_job next = {.id = "next"};

    (void)self;
    (void)job;
    atomic_store(&refusal,
                 weir_reactor_add(weir, "other", &next, NULL, NULL, NULL));
    return WEIR_DONE;
}

TEST(a_handler_that_blocks_is_not_on_the_loops_thread)
{
    struct weir_topic_options topic = {.run = run_beside, .blocking = true};
    struct weir_new_job job = {.id = "a"};

    host_open(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "orders", &topic, NULL));
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, NULL, NULL, NULL));
    AWAIT(atomic_load(&refusal) != 0);
    EXPECT_INT(WEIR_ETHREAD, atomic_load(&refusal));
}

static void on_canceled(int code, const char *id, void *arg)
{
    struct weir_new_job job = {.id = "b"};

    (void)id;
    (void)arg;
    EXPECT_INT(WEIR_ECANCELED, code);
    EXPECT_INT(WEIR_ECANCELED,
               weir_reactor_add(weir, "orders", &job, on_added, NULL, NULL));
    calls++;
}

static void *turn(void *arg)
{
    (void)arg;
    (void)ev_run(loop, EVRUN_NOWAIT);
    return NULL;
}

TEST(the_thread_that_frees_a_reactor_hears_that_it_is_over)
{
    struct weir_new_job job = {.id = "a"};
    pthread_t other;

    host_open(NULL);
    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, "orders", &job, on_canceled, NULL, NULL));
    redis_stop(server); /* so that nothing is answered meanwhile */
    EXPECT_INT(0, pthread_create(&other, NULL, turn, NULL));
    EXPECT_INT(0, pthread_join(other, NULL));
    host_close();
    EXPECT_INT(1, calls);
}

TEST(a_thread_takes_nothing_before_it_is_started)
{
    struct weir_new_job job = {.id = "a"};
    struct weir_new_jobs jobs = {"orders", &job, 1, on_many, NULL};
    struct weir_thread *thread = open_thread();
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EINVAL, weir_thread_submit(thread, &jobs, &err));
    EXPECT_CONTAINS("weir_thread_start comes first", err.text);
    EXPECT_INT(WEIR_EINVAL, weir_thread_stop(thread, NULL, NULL));
    EXPECT_INT(WEIR_EINVAL, weir_thread_give_back(thread));
    EXPECT_INT(WEIR_OK, weir_thread_start(thread, NULL));
    EXPECT_INT(WEIR_OK, weir_thread_submit(thread, &jobs, &err));
    while (calls == 0)
        (void)weir_thread_wait(thread, -1);
    weir_thread_free(thread);
    EXPECT_INT(1, calls);
}

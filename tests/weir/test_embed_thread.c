/* SPDX-License-Identifier: MIT */
#include <weir/thread.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

/* A host whose loop is not libev's: a reactor on a thread of its own. */
static struct redis_proc *server;
static struct weir_thread *weir;
static pthread_t host;
static atomic_int runs, cancels;
static int answers, added, told, stops, last_code; /* the host's */

static bool is_host(void)
{
    return pthread_equal(host, pthread_self()) != 0;
}

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    if (level >= WEIR_LEVEL_ERROR)
        printf("  log: %s\n", text);
}

static struct weir_thread *open_thread(void)
{
    struct weir_options options = {
        .redis_url = redis_url(server),
        .log = log_line,
    };
    struct weir_thread *thread = NULL;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, weir_thread_open(&options, &thread, &err));
    return thread;
}

static void close_host(void)
{
    weir_thread_free(weir);
    weir = NULL;
}

static void open_host(void)
{
    host = pthread_self();
    server = redis_start(NULL);
    weir = open_thread();
    test_at_end(close_host);
}
TEST_SETUP(open_host)

static void start(void)
{
    EXPECT_INT(WEIR_OK, weir_thread_start(weir, NULL));
}

static void serve(weir_run_fn run)
{
    struct weir_topic_options topic = {.run = run};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir_thread_reactor(weir), "orders",
                                           &topic, NULL));
}

/* Be a host until `*value` is at least `goal`; 60 s is a failure. */
static void await(const int *value, int goal)
{
    struct patience patience = patience_start(60.);

    while (*value < goal && !patience_ended(&patience))
        (void)weir_thread_wait(weir, 100);
    EXPECT_TRUE(*value >= goal);
}

static void await_atomic(atomic_int *value, int goal)
{
    struct patience patience = patience_start(60.);

    while (atomic_load(value) < goal && !patience_ended(&patience))
        (void)weir_thread_wait(weir, 1);
    EXPECT_TRUE(atomic_load(value) >= goal);
}

static void on_added(const struct weir_added *each, size_t count, void *arg)
{
    (void)arg;
    EXPECT_TRUE(is_host());
    answers++;
    for (size_t i = 0; i < count; i++) {
        added += each[i].code == WEIR_OK;
        last_code = each[i].code;
        EXPECT_TRUE(each[i].code < 0 || each[i].id[0] != '\0');
    }
}

#define JOBS(topic, jobs, count, fn)         \
    (struct weir_new_jobs)                   \
    {                                        \
        (topic), (jobs), (count), (fn), NULL \
    }

static void submit(const char *topic, const char *id)
{
    struct weir_new_job job = {.id = id};

    EXPECT_INT(WEIR_OK,
               weir_thread_submit(weir, &JOBS(topic, &job, 1, on_added), NULL));
}

static enum weir_verdict run_done(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    EXPECT_TRUE(!is_host());
    atomic_fetch_add(&runs, 1);
    return WEIR_DONE;
}

TEST(jobs_submitted_by_the_host_are_answered_there_and_run_on_the_thread)
{
    struct weir_new_job jobs[3] = {{.id = "a"}, {.id = "b"}, {.id = "a"}};

    serve(run_done);
    start();
    EXPECT_INT(WEIR_OK, weir_thread_submit(
                            weir, &JOBS("orders", jobs, 3, on_added), NULL));
    await(&answers, 1);
    EXPECT_INT(2, added);
    EXPECT_INT(WEIR_EEXISTS, last_code);
    await_atomic(&runs, 2);
    close_host();
    EXPECT_INT(1, answers);
    EXPECT_INT(2, atomic_load(&runs));
}

/* It is copied: the server, without a file, refuses what was asked for. */
TEST(a_job_that_the_host_submits_brings_its_durability)
{
    char durability[] = "fsync";
    struct weir_new_job job = {.id = "a", .durability = durability};

    start();
    EXPECT_INT(WEIR_OK, weir_thread_submit(
                            weir, &JOBS("orders", &job, 1, on_added), NULL));
    memset(durability, 'x', sizeof(durability) - 1);
    await(&answers, 1);
    EXPECT_INT(0, added);
    EXPECT_INT(WEIR_EINVAL, last_code);
}

TEST(a_thread_that_never_started_is_freed_with_what_it_was_asked)
{
    struct weir_new_job job = {.id = "a"};

    serve(run_done);
    EXPECT_INT(WEIR_OK,
               weir_reactor_submit(weir_thread_reactor(weir),
                                   &JOBS("orders", &job, 1, on_added), NULL));
    close_host();
    EXPECT_INT(1, answers);
    EXPECT_INT(WEIR_ECANCELED, last_code);
}

TEST(freeing_answers_everything_that_was_asked)
{
    const int most = 2000;

    start();
    for (int i = 0; i < most; i++)
        submit("orders", NULL);
    close_host();
    EXPECT_INT(most, answers);
}

/* --- work for the host ---------------------------------------------------- */

static void finish(void *arg)
{
    struct weir_handle *handle = arg;

    EXPECT_TRUE(is_host());
    told++;
    EXPECT_INT(WEIR_OK, weir_complete(*handle, WEIR_DONE, 0, NULL));
}

static struct weir_handle handles[8];

static enum weir_verdict run_by_host(void *self, struct weir_job *job)
{
    struct weir_handle *handle = &handles[atomic_fetch_add(&runs, 1)];

    (void)self;
    *handle = weir_job_handle(job);
    EXPECT_INT(WEIR_OK, weir_thread_tell(weir, finish, handle));
    return WEIR_PENDING;
}

static struct weir_totals totals;

static void take_totals(int code, struct weir_reactor *reactor, void *arg)
{
    atomic_int *taken = arg;

    EXPECT_INT(WEIR_OK, code);
    weir_reactor_totals(reactor, &totals);
    atomic_fetch_add(taken, 1);
}

static void on_stopped(void *arg)
{
    (void)arg;
    EXPECT_TRUE(is_host());
    stops++;
}

TEST(a_handler_gives_work_to_the_host_which_completes_it)
{
    atomic_int taken = 0;

    serve(run_by_host);
    start();
    for (int i = 0; i < 8; i++)
        submit("orders", NULL);
    await(&told, 8);
    EXPECT_INT(WEIR_OK, weir_thread_stop(weir, on_stopped, NULL));
    await(&stops, 1);
    EXPECT_INT(WEIR_OK, weir_reactor_call(weir_thread_reactor(weir),
                                          take_totals, &taken));
    await_atomic(&taken, 1);
    EXPECT_INT(8, totals.started);
    EXPECT_INT(8, totals.done);
    EXPECT_INT(0, totals.held + totals.unanswered + totals.late);
    EXPECT_INT(1, totals.connections);
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)job;
    EXPECT_INT(WEIR_CANCEL_STOP, why);
    EXPECT_INT(WEIR_OK, weir_complete(*(struct weir_handle *)arg, WEIR_DONE, 0,
                                      NULL)); /* nobody else will */
    atomic_fetch_add(&cancels, 1);
}

static enum weir_verdict run_for_ever(void *self, struct weir_job *job)
{
    (void)self;
    handles[0] = weir_job_handle(job);
    weir_job_on_cancel(job, on_cancel, &handles[0]);
    atomic_fetch_add(&runs, 1);
    return WEIR_PENDING;
}

TEST(what_is_pending_is_given_back_when_the_host_waits_no_longer)
{
    serve(run_for_ever);
    start();
    submit("orders", "a");
    await_atomic(&runs, 1);
    await(&answers, 1); /* nothing is left to wait for but the stop */
    EXPECT_INT(WEIR_OK, weir_thread_stop(weir, on_stopped, NULL));
    EXPECT_INT(WEIR_ETIMEDOUT, weir_thread_wait(weir, 50));
    EXPECT_INT(WEIR_OK, weir_thread_give_back(weir));
    await(&stops, 1);
    EXPECT_INT(1, atomic_load(&cancels));
}

/* --- freeing inside callbacks --------------------------------------------- */

static void on_added_free(const struct weir_added *each, size_t count,
                          void *arg)
{
    on_added(each, count, arg);
    weir_thread_free(weir);
    weir_thread_free(weir);
}

TEST(the_host_may_free_it_where_it_hears_an_answer)
{
    struct weir_new_job job = {0};
    struct patience patience = patience_start(60.);

    serve(run_done);
    start();
    EXPECT_INT(WEIR_OK,
               weir_thread_submit(weir, &JOBS("orders", &job, 1, on_added_free),
                                  NULL));
    submit("orders", NULL);
    while (answers == 0 && !patience_ended(&patience))
        (void)weir_thread_wait(weir, 100);
    EXPECT_INT(2, answers); /* the second was canceled at the latest */
    weir = NULL;            /* and it is freed */
}

static atomic_int is_over;

static void on_over(void *arg)
{
    (void)arg;
    EXPECT_TRUE(!is_host());
    EXPECT_INT(WEIR_ECANCELED, weir_thread_stop(weir, NULL, NULL));
    EXPECT_INT(WEIR_ECANCELED, weir_thread_tell(weir, on_over, NULL));
    atomic_store(&is_over, 1);
}

static enum weir_verdict run_free(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    EXPECT_INT(WEIR_OK, weir_thread_tell(weir, on_over, NULL));
    weir_thread_free(weir);
    return WEIR_DONE;
}

static void await_over(void)
{
    struct patience patience = patience_start(60.);
    struct timespec moment = {.tv_nsec = 1000000};

    while (atomic_load(&is_over) == 0 && !patience_ended(&patience))
        (void)nanosleep(&moment, NULL);
    EXPECT_INT(1, atomic_load(&is_over));
    weir = NULL; /* it is freed */
}

static void ignore(const struct weir_added *each, size_t count, void *arg)
{
    (void)each;
    (void)count;
    (void)arg;
}

TEST(a_handler_may_free_the_thread_that_it_runs_on)
{
    struct weir_new_job job = {0};

    serve(run_free);
    EXPECT_INT(WEIR_OK,
               weir_reactor_submit(weir_thread_reactor(weir),
                                   &JOBS("orders", &job, 1, ignore), NULL));
    start();
    await_over();
}

static void call_free(int code, struct weir_reactor *reactor, void *arg)
{
    (void)reactor;
    (void)arg;
    EXPECT_INT(WEIR_OK, code);
    EXPECT_INT(WEIR_OK, weir_thread_tell(weir, on_over, NULL));
    weir_thread_free(weir);
}

TEST(a_call_may_free_the_thread)
{
    EXPECT_INT(WEIR_OK,
               weir_reactor_call(weir_thread_reactor(weir), call_free, NULL));
    start();
    await_over();
}

/* --- many threads --------------------------------------------------------- */

enum { THREADS = 4, CALLS = 50, BATCH = 20 };

static atomic_int heard;

static void on_heard(const struct weir_added *each, size_t count, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        EXPECT_INT(WEIR_OK, each[i].code);
    atomic_fetch_add(&heard, (int)count);
}

static void *produce(void *arg)
{
    struct weir_new_job jobs[BATCH];
    char ids[BATCH][32];

    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < BATCH; i++) {
            (void)snprintf(ids[i], sizeof(ids[i]), "%d-%d-%d", *(int *)arg,
                           call, i);
            jobs[i] = (struct weir_new_job){.id = ids[i]};
        }
        EXPECT_INT(WEIR_OK, weir_reactor_submit(
                                weir_thread_reactor(weir),
                                &JOBS("orders", jobs, BATCH, on_heard), NULL));
        memset(ids, 'x', sizeof(ids)); /* they were copied */
    }
    return NULL;
}

TEST(jobs_of_many_threads_all_arrive_once)
{
    const int all = THREADS * CALLS * BATCH;
    pthread_t threads[THREADS];
    int numbers[THREADS];

    serve(run_done);
    start();
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        EXPECT_INT(0, pthread_create(&threads[i], NULL, produce, &numbers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT_INT(0, pthread_join(threads[i], NULL));
    await_atomic(&heard, all);
    await_atomic(&runs, all);
    EXPECT_INT(WEIR_OK, weir_thread_stop(weir, on_stopped, NULL));
    await(&stops, 1);
    EXPECT_INT(all, atomic_load(&runs));
}

TEST(two_threads_live_in_one_process)
{
    struct weir_topic_options topic = {.run = run_done};
    struct weir_thread *other;
    struct weir_new_job job = {0};

    other = open_thread();
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir_thread_reactor(other), "other",
                                           &topic, NULL));
    serve(run_done);
    start();
    EXPECT_INT(WEIR_OK, weir_thread_start(other, NULL));
    EXPECT_INT(WEIR_EINVAL, weir_thread_start(other, NULL));
    submit("orders", NULL);
    EXPECT_INT(WEIR_OK, weir_thread_submit(
                            other, &JOBS("other", &job, 1, ignore), NULL));
    await_atomic(&runs, 2);
    await(&answers, 1);
    weir_thread_free(other);
}

/* --- what is said --------------------------------------------------------- */

static atomic_int is_held;

static void hold(int code, struct weir_reactor *reactor, void *arg)
{
    (void)code;
    (void)reactor;
    atomic_store(&is_held, 1);
    while (atomic_load(&is_held) != 0)
        (void)sched_yield();
    (void)arg;
}

static void count_call(int code, struct weir_reactor *reactor, void *arg)
{
    (void)code;
    (void)reactor;
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(a_loop_that_does_not_keep_up_takes_only_so_many_calls)
{
    struct weir_reactor *reactor;
    atomic_int calls = 0;
    int taken = 0, rc = WEIR_OK;

    reactor = weir_thread_reactor(weir);
    EXPECT_INT(WEIR_OK, weir_reactor_call(reactor, hold, NULL));
    start();
    await_atomic(&is_held, 1);
    while (rc == WEIR_OK && taken <= 70000) {
        rc = weir_reactor_call(reactor, count_call, &calls);
        taken += rc == WEIR_OK;
    }
    EXPECT_INT(WEIR_EFULL, rc);
    EXPECT_INT(65536, taken);
    atomic_store(&is_held, 0);
    await_atomic(&calls, taken);
    EXPECT_INT(WEIR_OK, weir_reactor_call(reactor, count_call, &calls));
    await_atomic(&calls, taken + 1);
}

TEST(a_host_that_does_not_listen_is_told_only_so_much)
{
    int rc = WEIR_OK, taken = 0;

    start();
    while (rc == WEIR_OK && taken <= 70000) {
        rc = weir_thread_tell(weir, on_stopped, NULL);
        taken += rc == WEIR_OK;
    }
    EXPECT_INT(WEIR_EFULL, rc);
    EXPECT_INT(65536, taken);
    await(&stops, taken);
    EXPECT_INT(WEIR_OK, weir_thread_tell(weir, on_stopped, NULL));
    await(&stops, taken + 1);
}

TEST(the_descriptor_is_readable_while_there_is_something_to_hear)
{
    struct pollfd readable = {.events = POLLIN};

    readable.fd = weir_thread_fd(weir);
    EXPECT_INT(0, poll(&readable, 1, 0));
    EXPECT_INT(WEIR_OK, weir_thread_tell(weir, on_stopped, NULL));
    EXPECT_INT(1, poll(&readable, 1, 0));
    weir_thread_dispatch(weir);
    EXPECT_INT(1, stops);
    EXPECT_INT(0, poll(&readable, 1, 0));
}

TEST(what_is_wrong_is_said_at_once_or_as_the_jobs_code)
{
    struct weir_new_job jobs[2] = {{.id = "a"}, {.id = "has blank"}};
    struct weir_options options = {.loop = (void *)jobs};
    struct weir_error err = {0};
    struct weir_thread *none;

    EXPECT_INT(WEIR_EINVAL, weir_thread_open(&options, &none, &err));
    EXPECT_CONTAINS("leave loop out", err.text);
    options = (struct weir_options){.redis_url = "http://x"};
    EXPECT_INT(WEIR_EINVAL, weir_thread_open(&options, &none, &err));
    EXPECT_INT(WEIR_OK, weir_reactor_declare(weir_thread_reactor(weir), "plain",
                                             "list", NULL));
    start();
    EXPECT_INT(
        WEIR_EINVAL,
        weir_thread_submit(weir, &JOBS("orders", jobs, 2, on_added), &err));
    EXPECT_CONTAINS("job 1: ", err.text);
    EXPECT_INT(WEIR_EINVAL,
               weir_thread_submit(
                   weir,
                   &(struct weir_new_jobs){"no {t}", jobs, 1, on_added, NULL},
                   &err));
    EXPECT_INT(
        WEIR_EINVAL,
        weir_thread_submit(weir, &JOBS("orders", jobs, 0, on_added), &err));
    EXPECT_INT(
        WEIR_ETOOBIG,
        weir_thread_submit(
            weir, &JOBS("orders", jobs, WEIR_MAX_ADD + 1, on_added), &err));
    submit("plain", "entries-have-no-id");
    await(&answers, 1);
    EXPECT_INT(WEIR_EINVAL, last_code);
}

TEST(the_thread_takes_no_signals)
{
    sigset_t blocked;
    struct timespec none = {0};

    start();
    submit("orders", NULL);
    await(&answers, 1);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    EXPECT_INT(0, pthread_sigmask(SIG_BLOCK, &blocked, NULL));
    EXPECT_INT(0, kill(getpid(), SIGTERM)); /* would end us in another thread */
    EXPECT_INT(SIGTERM, sigtimedwait(&blocked, NULL, &none));
    submit("orders", NULL);
    await(&answers, 2);
}

/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/weir/host.h"

/* Handlers that block, on real threads: <weir/weir.h> on a real server. */
static pthread_t loop_thread;
static atomic_int runs, at_once, most_at_once, wrong;
static atomic_bool goes_on; /* handlers that hold return */
static int logged;

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    EXPECT_TRUE(pthread_equal(loop_thread, pthread_self()));
    if (strstr(text, "from a thread") != NULL)
        logged++;
}

static void open_host(uint32_t threads)
{
    loop_thread = pthread_self();
    host_open(&(struct weir_options){.log = log_line, .threads = threads});
}

/* A timeout as an option; NULL: the default. */
static void serve(weir_run_fn run, const char *timeout)
{
    struct weir_topic_options options = {
        .run = run, .blocking = true, .options = {"retry=1ms...", timeout}};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &options, NULL));
}

static void add_many(int count)
{
    const uint8_t body[] = {0x81, 0xa1, 'n', 7};
    struct weir_new_job job = {.body = {body, sizeof(body)}};

    for (int i = 0; i < count; i++)
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, "t", &job, NULL, NULL, NULL));
}

static int done;
static bool is_asking;

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)arg;
    is_asking = false;
    if (code == WEIR_OK)
        done = (int)stats->done_total;
}

static bool are_done(const char *topic, int count)
{
    if (!is_asking && done < count) {
        is_asking = true;
        EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, topic, on_stats, NULL));
    }
    return !is_asking;
}

/* Run the loop until so many jobs are done on the server. */
static void await_done_of(const char *topic, int count)
{
    AWAIT(are_done(topic, count));
    EXPECT_INT(count, done);
}

static void await_done(int count)
{
    await_done_of("t", count);
}

static void note_most(int now)
{
    int most = atomic_load(&most_at_once);

    while (now > most &&
           !atomic_compare_exchange_weak(&most_at_once, &most, now))
        continue;
}

/* All but those with which a fault of the thread's own comes. */
static bool is_signal_blocked(void)
{
    sigset_t set;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &set);
    return sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGCHLD) == 1 &&
           sigismember(&set, SIGSEGV) == 0 && sigismember(&set, SIGBUS) == 0;
}

static enum weir_verdict run_quick(void *self, struct weir_job *job)
{
    int64_t number = 0;

    (void)self;
    if (pthread_equal(loop_thread, pthread_self()) || !is_signal_blocked() ||
        !weir_job_i64(job, "n", &number) || number != 7 ||
        weir_job_topic(job).len != 1 || weir_job_canceled(job))
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&runs, 1);
    weir_job_count(job, "sevens", (uint64_t)number);
    return WEIR_DONE;
}

static void on_counter(const char *name, uint64_t value, void *arg)
{
    uint64_t *sevens = arg;

    if (name != NULL && strcmp(name, "sevens") == 0)
        *sevens = value;
}

static uint64_t sevens_now(void)
{
    uint64_t sevens = 0;

    EXPECT_INT(WEIR_OK, weir_reactor_counters(weir, "t", on_counter, &sevens));
    EXPECT_INT(WEIR_ENOTFOUND,
               weir_reactor_counters(weir, "u", on_counter, &sevens));
    return sevens;
}

TEST(many_jobs_run_beside_the_loop)
{
    open_host(4);
    serve(run_quick, NULL);
    add_many(5000);
    await_done(5000);
    EXPECT_INT(5000, atomic_load(&runs));
    EXPECT_INT(0, atomic_load(&wrong));
    EXPECT_INT(35000, sevens_now());
}

static enum weir_verdict run_slow(void *self, struct weir_job *job)
{
    const struct timespec pause = {0, 20000000};

    (void)self;
    note_most(atomic_fetch_add(&at_once, 1) + 1);
    (void)nanosleep(&pause, NULL);
    weir_job_log(job, WEIR_LEVEL_ERROR, "from a thread");
    atomic_fetch_sub(&at_once, 1);
    if (weir_job_counters(job).attempt == 1)
        return weir_retry(job, "once more");
    return WEIR_DONE;
}

TEST(threads_run_at_once_and_what_they_say_is_logged_by_the_loop)
{
    open_host(3);
    serve(run_slow, NULL);
    add_many(30);
    await_done(30);
    EXPECT_INT(3, atomic_load(&most_at_once));
    EXPECT_INT(60, logged);
}

static enum weir_verdict run_until_canceled(void *self, struct weir_job *job)
{
    const struct timespec pause = {0, 1000000};

    (void)self;
    if (weir_job_counters(job).attempt > 1)
        return WEIR_DONE;
    while (!weir_job_canceled(job))
        (void)nanosleep(&pause, NULL);
    atomic_fetch_add(&runs, 1);
    return weir_fail(job, "nobody hears this");
}

TEST(a_run_that_times_out_is_retried_and_its_thread_told)
{
    open_host(2);
    serve(run_until_canceled, "timeout=50ms");
    add_many(4);
    await_done(4);
    host_close(); /* waits for the threads, whose runs are long over */
    EXPECT_INT(4, atomic_load(&runs));
}

static enum weir_verdict run_held(void *self, struct weir_job *job)
{
    const struct timespec pause = {0, 1000000};

    (void)self;
    atomic_fetch_add(&runs, 1);
    while (!atomic_load(&goes_on) && !weir_job_canceled(job))
        (void)nanosleep(&pause, NULL);
    atomic_fetch_add(&wrong, 1);
    return WEIR_DONE;
}

static void await_runs(int count)
{
    AWAIT(atomic_load(&runs) >= count);
    EXPECT_INT(count, atomic_load(&runs));
}

TEST(freeing_a_reactor_waits_for_its_threads)
{
    open_host(2);
    serve(run_held, NULL);
    add_many(5);
    await_runs(2);
    host_close();
    EXPECT_INT(2, atomic_load(&wrong)); /* both came back */
}

static bool has_stopped;

static void on_stopped(void *arg)
{
    (void)arg;
    has_stopped = true;
}

TEST(a_stop_waits_for_threads_and_gives_the_rest_back)
{
    open_host(2);
    serve(run_held, NULL);
    add_many(5);
    await_runs(2);
    weir_reactor_stop(weir, on_stopped, NULL);
    for (int i = 0; i < 50; i++)
        ev_run(loop, EVRUN_NOWAIT);
    EXPECT_TRUE(!has_stopped);
    atomic_store(&goes_on, true);
    AWAIT(has_stopped);
}

/* --- topics beside each other --------------------------------------------- */

/* A topic whose runs end when the test lets one of them. */
struct held_topic {
    const char *name, *weight;
    _Atomic int begun, running, may_end;
};

static struct held_topic slow = {"slow", "weight=1", 0, 0, 0};
static struct held_topic other = {"other", "weight=3", 0, 0, 0};

static bool takes_leave(struct held_topic *topic)
{
    int left = atomic_load(&topic->may_end);

    while (left > 0)
        if (atomic_compare_exchange_weak(&topic->may_end, &left, left - 1))
            return true;
    return false;
}

static enum weir_verdict run_topic(void *self, struct weir_job *job)
{
    const struct timespec pause = {0, 1000000};
    struct held_topic *topic = self;

    atomic_fetch_add(&topic->begun, 1);
    atomic_fetch_add(&topic->running, 1);
    while (!takes_leave(topic) && !weir_job_canceled(job))
        (void)nanosleep(&pause, NULL);
    atomic_fetch_sub(&topic->running, 1);
    return WEIR_DONE;
}

static void serve_topic(struct held_topic *topic, int jobs)
{
    const struct weir_topic_options options = {
        .run = run_topic,
        .self = topic,
        .blocking = true,
        .options = {topic->weight, "timeout=1h"}};
    const struct weir_new_job job = {.url = "u"};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, topic->name, &options, NULL));
    for (int i = 0; i < jobs; i++)
        EXPECT_INT(WEIR_OK,
                   weir_reactor_add(weir, topic->name, &job, NULL, NULL, NULL));
}

static bool are_running(int slow_count, int other_count)
{
    return atomic_load(&slow.running) == slow_count &&
           atomic_load(&other.running) == other_count;
}

static void end_all(void)
{
    atomic_store(&slow.may_end, 1000);
    atomic_store(&other.may_end, 1000);
}

TEST(a_topic_runs_while_another_one_holds_all_threads)
{
    open_host(2);
    serve_topic(&slow, 40);
    AWAIT(are_running(2, 0));
    serve_topic(&other, 20);
    for (int i = 1; i <= 20; i++) { /* one behind the other */
        AWAIT(atomic_load(&other.begun) == i && are_running(2, 1));
        atomic_fetch_add(&other.may_end, 1);
    }
    AWAIT(are_running(2, 0));
    EXPECT_INT(2, atomic_load(&slow.begun));
    end_all();
}

TEST(threads_that_become_free_go_by_weight)
{
    open_host(4);
    serve_topic(&slow, 40);
    AWAIT(are_running(4, 0));
    serve_topic(&other, 40);
    AWAIT(are_running(4, 1));
    atomic_fetch_add(&slow.may_end, 3);
    AWAIT(are_running(1, 3));
    for (int i = 0; i < 9; i++) { /* it stays so */
        atomic_fetch_add(&other.may_end, 1);
        AWAIT(atomic_load(&other.begun) == 4 + i && are_running(1, 3));
        await_done_of("other", 1 + i); /* the loop has the next one wait */
    }
    EXPECT_INT(4, atomic_load(&slow.begun));
    end_all();
}

TEST(mistakes_have_a_sentence)
{
    struct weir_options options = {
        .loop = EV_DEFAULT, .redis_url = "unix:///none", .threads = 257};
    struct weir_topic_options topic = {.plugin = "./x.so", .blocking = true};
    struct weir_error err;

    EXPECT_INT(WEIR_EINVAL, weir_reactor_open(&options, &weir, &err));
    EXPECT_STR("threads is 257: wanted 1 to 256, or 0 for 8", err.text);
    options.threads = 1;
    EXPECT_INT(WEIR_OK, weir_reactor_open(&options, &weir, &err));
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "t", &topic, &err));
    EXPECT_STR("topic t: blocking is for functions; a plugin says it itself",
               err.text);
    weir_reactor_free(weir);
    ev_loop_destroy(EV_DEFAULT);
}

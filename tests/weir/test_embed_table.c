/* SPDX-License-Identifier: MIT */
#include <weir/thread.h>

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

/* Handlers of a program that wait on the reactor's loop: timers, descriptors
 * and their end, by a plugin's table that is linked in. */

struct waiter {
    struct weir_loop *loop;
    struct weir_watch *watch;
    pthread_t thread; /* that the handler runs on */
    int ends[2];      /* of a pipe */
    struct weir_handle read_for;
    atomic_int runs, timers, reads, closes, strays;
};

struct wait {
    struct waiter *waiter;
    struct weir_timer *timer;
    struct weir_handle handle;
};

static char logged[400];

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    if (level >= WEIR_LEVEL_WARN)
        (void)snprintf(logged, sizeof(logged), "%s", text);
}

static void note_thread(struct waiter *waiter)
{
    waiter->strays += pthread_equal(waiter->thread, pthread_self()) == 0;
}

static void end_wait(struct wait *wait)
{
    weir_timer_free(wait->timer);
    free(wait);
}

static void on_timer(void *arg)
{
    struct wait *wait = arg;

    note_thread(wait->waiter);
    wait->waiter->timers++;
    (void)weir_complete(wait->handle, WEIR_DONE, 0, NULL);
    end_wait(wait);
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    struct wait *wait = arg;

    (void)job;
    EXPECT_INT(WEIR_CANCEL_STOP, why);
    (void)weir_complete(wait->handle, WEIR_DONE, 0, NULL);
    end_wait(wait);
}

static void on_readable(int fd, unsigned events, void *arg)
{
    struct waiter *waiter = arg;
    char byte;

    note_thread(waiter);
    EXPECT_INT(WEIR_FD_READ, events);
    EXPECT_INT(1, read(fd, &byte, 1));
    waiter->reads++;
    (void)weir_complete(waiter->read_for, WEIR_DONE, 0, NULL);
}

static int open_waiter(const struct weir_open *open, void **ret_self)
{
    struct waiter *waiter = weir_open_self(open);

    if (waiter == NULL || weir_open_loop(open) == NULL)
        return WEIR_EINVAL;
    waiter->loop = weir_open_loop(open);
    EXPECT_INT(0, pipe(waiter->ends));
    waiter->watch =
        weir_watch_new(waiter->loop, waiter->ends[0], on_readable, waiter);
    weir_watch_set(waiter->watch, WEIR_FD_READ);
    *ret_self = waiter;
    return WEIR_OK;
}

static void close_waiter(void *self)
{
    struct waiter *waiter = self;

    note_thread(waiter);
    weir_watch_free(waiter->watch);
    (void)close(waiter->ends[0]);
    (void)close(waiter->ends[1]);
    waiter->closes++;
}

static bool is_called(const struct weir_job *job, const char *name)
{
    struct weir_slice id = weir_job_id(job);

    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static void start_timer(struct waiter *waiter, struct weir_job *job, int64_t ms)
{
    struct wait *wait = calloc(1, sizeof(*wait));

    EXPECT_TRUE(wait != NULL);
    wait->waiter = waiter;
    wait->handle = weir_job_handle(job);
    wait->timer = weir_timer_new(waiter->loop, on_timer, wait);
    weir_job_on_cancel(job, on_cancel, wait);
    weir_timer_start(wait->timer, ms);
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct waiter *waiter = self;

    waiter->thread = pthread_self();
    waiter->runs++;
    if (is_called(job, "timer")) {
        start_timer(waiter, job, 5);
        return WEIR_PENDING;
    }
    if (is_called(job, "long")) {
        start_timer(waiter, job, 3600000);
        return WEIR_PENDING;
    }
    waiter->read_for = weir_job_handle(job);
    EXPECT_INT(1, write(waiter->ends[1], "x", 1));
    return WEIR_PENDING;
}

static const struct weir_plugin table = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "waiter",
    .open = open_waiter,
    .run = run,
    .close = close_waiter,
};

static void await(struct weir_thread *thread, atomic_int *value, int goal)
{
    for (int i = 0; i < 30000 && atomic_load(value) < goal; i++)
        (void)weir_thread_wait(thread, 1);
    EXPECT_INT(goal, atomic_load(value));
}

static void add(struct weir_reactor *reactor, const char *id)
{
    struct weir_new_job job = {.id = id};

    EXPECT_INT(WEIR_OK, weir_reactor_add(reactor, "t", &job, NULL, NULL, NULL));
}

TEST(a_function_waits_on_the_loop_of_a_reactor_on_a_thread_of_its_own)
{
    struct waiter waiter = {.ends = {-1, -1}};
    struct redis_proc *server = redis_start(NULL);
    struct weir_options options = {.redis_url = redis_url(server),
                                   .log = log_line,
                                   .block_warn_ms = 3600000};
    struct weir_topic_options topic = {.table = &table, .self = &waiter};
    struct weir_thread *thread;

    EXPECT_INT(WEIR_OK, weir_thread_open(&options, &thread, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir_thread_reactor(thread), "t",
                                           &topic, NULL));
    add(weir_thread_reactor(thread), "timer");
    add(weir_thread_reactor(thread), "read");
    add(weir_thread_reactor(thread), "long");
    EXPECT_INT(WEIR_OK, weir_thread_start(thread, NULL));
    await(thread, &waiter.runs, 3);
    await(thread, &waiter.timers, 1);
    await(thread, &waiter.reads, 1);
    weir_thread_free(thread);
    EXPECT_TRUE(pthread_equal(waiter.thread, pthread_self()) == 0);
    EXPECT_INT(1, waiter.closes);
    EXPECT_INT(0, waiter.strays);
    EXPECT_STR("", logged);
}

/* --- on a loop of the program's own --------------------------------------- */

static struct weir_reactor *weir;

static void free_all(void *arg)
{
    struct weir_timer **timer = arg;

    weir_timer_free(*timer);
    weir_reactor_free(weir);
    weir = NULL;
}

static int open_and_leave(const struct weir_open *open, void **ret_self)
{
    static struct weir_timer *timer, *left;
    struct weir_loop *share = weir_open_loop(open);

    if (share == NULL)
        return WEIR_EINVAL;
    *ret_self = NULL;
    timer = weir_timer_new(share, free_all, &timer);
    weir_timer_start(timer, 1);
    left = weir_timer_new(share, free_all, &left);
    weir_timer_start(left, 3600000);
    return WEIR_OK;
}

static enum weir_verdict done(void *self, struct weir_job *job)
{
    (void)job;
    *(int *)self += 1;
    return WEIR_DONE;
}

static void open_reactor(struct ev_loop *loop, const char *url)
{
    struct weir_options options = {.redis_url = url,
                                   .log = log_line,
                                   .loop = loop,
                                   .block_warn_ms = 3600000};

    EXPECT_INT(WEIR_OK, weir_reactor_open(&options, &weir, NULL));
}

TEST(a_timer_may_free_the_reactor_and_what_is_left_is_named)
{
    static const struct weir_plugin leaves = {
        .abi = WEIR_PLUGIN_ABI,
        .size = sizeof(struct weir_plugin),
        .name = "leaves",
        .open = open_and_leave,
        .run = done,
    };
    struct redis_proc *server = redis_start(NULL);
    struct ev_loop *loop = ev_loop_new(0);
    struct weir_topic_options topic = {.table = &leaves};

    open_reactor(loop, redis_url(server));
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &topic, NULL));
    ev_run(loop, 0);
    EXPECT_TRUE(weir == NULL);
    EXPECT_CONTAINS("t: plugin leaves was closed and left 1 timers", logged);
    ev_loop_destroy(loop);
}

TEST(a_table_without_open_runs_with_the_self_it_is_served_with)
{
    static const struct weir_plugin plain = {
        .abi = WEIR_PLUGIN_ABI,
        .size = sizeof(struct weir_plugin),
        .name = "plain",
        .run = done,
    };
    int runs = 0;
    struct redis_proc *server = redis_start(NULL);
    struct ev_loop *loop = ev_loop_new(0);
    struct weir_topic_options topic = {.table = &plain, .self = &runs};

    open_reactor(loop, redis_url(server));
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", &topic, NULL));
    add(weir, "1");
    while (runs == 0)
        ev_run(loop, EVRUN_ONCE);
    weir_reactor_free(weir);
    EXPECT_STR("", logged);
    ev_loop_destroy(loop);
}

TEST(a_table_that_cannot_be_served_is_refused_with_a_sentence)
{
    static const struct weir_plugin nameless = {.abi = WEIR_PLUGIN_ABI,
                                                .size =
                                                    sizeof(struct weir_plugin),
                                                .run = done};
    struct ev_loop *loop = ev_loop_new(0);
    struct weir_topic_options topic = {.table = &nameless};
    struct weir_error err = {0};

    open_reactor(loop, "unix:///nowhere");
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "t", &topic, &err));
    EXPECT_CONTAINS("the table of topic t", err.text);
    topic = (struct weir_topic_options){.table = &table, .run = done};
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "t", &topic, &err));
    EXPECT_CONTAINS("one of a function, a plugin, a table", err.text);
    topic = (struct weir_topic_options){.table = &table, .blocking = true};
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "t", &topic, &err));
    EXPECT_CONTAINS("blocking is for functions", err.text);
    weir_reactor_free(weir);
    ev_loop_destroy(loop);
}

/* SPDX-License-Identifier: MIT */

/* Handlers that finish later, and what they wait with. */

#include <weir/test.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/harness/test.h"

static struct weir_error err;

static struct weir_trial *open_trial(const struct weir_trial_options *options)
{
    struct weir_trial *trial = NULL;

    EXPECT_INT(WEIR_OK, weir_trial_open(options, &trial, &err));
    return trial;
}

static void add(struct weir_trial *trial, const char *id, int64_t delay_ms)
{
    struct weir_trial_job job = {.id = id, .delay_ms = delay_ms};

    EXPECT_INT(WEIR_OK, weir_trial_add(trial, &job, &err));
}

/* --- handlers that finish later ------------------------------------------- */

struct later {
    struct weir_handle handle;
    int pending, cancelled;
    enum weir_cancel why;
};

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    struct later *later = arg;

    (void)job;
    later->cancelled++;
    later->why = why;
}

static enum weir_verdict pend(void *self, struct weir_job *job)
{
    struct later *later = self;

    later->handle = weir_job_handle(job);
    weir_job_on_cancel(job, on_cancel, later);
    later->pending++;
    return WEIR_PENDING;
}

TEST(a_pending_run_is_completed_between_two_steps)
{
    struct later later = {0};
    struct weir_trial *trial = open_trial(
        &(struct weir_trial_options){.serve = {.run = pend, .self = &later}});

    add(trial, "a", 0);
    weir_trial_advance(trial, 10000);
    EXPECT_INT(WEIR_TRIAL_RUNNING, weir_trial_state(trial, "a"));
    EXPECT_INT(WEIR_OK, weir_complete(later.handle, WEIR_SNOOZE, 700, NULL));
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_SNOOZE, weir_trial_last(trial)->verdict);
    EXPECT_INT(700, weir_trial_last(trial)->delay_ms);
    EXPECT_INT(10000, weir_trial_last(trial)->elapsed_ms);
    weir_trial_advance(trial, 699);
    EXPECT_INT(1, later.pending);
    weir_trial_advance(trial, 1);
    EXPECT_INT(2, later.pending);
    weir_trial_free(trial);
    EXPECT_INT(1, later.cancelled);
    EXPECT_INT(WEIR_CANCEL_STOP, later.why);
}

TEST(a_pending_run_times_out_in_virtual_time)
{
    struct later later = {0};
    struct weir_trial *trial = open_trial(&(struct weir_trial_options){
        .serve = {.run = pend, .self = &later, .options = {"timeout=30s"}}});

    add(trial, "a", 0);
    weir_trial_advance(trial, 29999);
    EXPECT_INT(0, later.cancelled);
    weir_trial_advance(trial, 1);
    EXPECT_INT(1, later.cancelled);
    EXPECT_INT(WEIR_CANCEL_TIMEOUT, later.why);
    EXPECT_TRUE(weir_trial_last(trial)->timed_out);
    EXPECT_STR("timeout", weir_trial_last(trial)->reason);
    EXPECT_INT(15000, weir_trial_last(trial)->delay_ms);
    EXPECT_INT(1, weir_trial_last(trial)->attempt);
    EXPECT_INT(1, weir_trial_counters(trial, "a").timeouts);
    EXPECT_INT(WEIR_OK, weir_complete(later.handle, WEIR_DONE, 0, NULL));
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_TRIAL_WAITING, weir_trial_state(trial, "a"));
    EXPECT_TRUE(weir_trial_logged(trial, "completed that is over"));
    weir_trial_free(trial);
}

static void *complete_it(void *arg)
{
    const struct later *later = arg;

    EXPECT_INT(WEIR_OK,
               weir_complete(later->handle, WEIR_RETRY, 0, "from afar"));
    return NULL;
}

TEST(a_run_that_another_thread_completes_is_waited_for)
{
    struct later later = {0};
    struct weir_trial *trial = open_trial(
        &(struct weir_trial_options){.serve = {.run = pend, .self = &later}});
    pthread_t thread;

    EXPECT_TRUE(weir_trial_wait(trial, 0));
    add(trial, "a", 0);
    weir_trial_advance(trial, 0);
    EXPECT_TRUE(!weir_trial_wait(trial, 1));
    EXPECT_INT(0, pthread_create(&thread, NULL, complete_it, &later));
    EXPECT_TRUE(weir_trial_wait(trial, 60000));
    EXPECT_INT(0, pthread_join(thread, NULL));
    EXPECT_INT(WEIR_RETRY, weir_trial_last(trial)->verdict);
    EXPECT_STR("from afar", weir_trial_last(trial)->reason);
    weir_trial_free(trial);
}

TEST(a_job_that_waits_for_its_turn_beyond_its_ttl_expires)
{
    struct later later = {0};
    struct weir_trial *trial = open_trial(&(struct weir_trial_options){
        .serve = {.run = pend, .self = &later, .options = {"concurrency=1"}}});
    struct weir_trial_job job = {.id = "b", .ttl_ms = 50};

    add(trial, "a", 0);
    EXPECT_INT(WEIR_OK, weir_trial_add(trial, &job, &err));
    weir_trial_advance(trial, 100);
    EXPECT_INT(1, later.pending);
    EXPECT_INT(WEIR_OK, weir_complete(later.handle, WEIR_DONE, 0, NULL));
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "a"));
    EXPECT_INT(WEIR_TRIAL_EXPIRED, weir_trial_state(trial, "b"));
    EXPECT_INT(1, weir_trial_run_count(trial));
    weir_trial_free(trial);
}

/* --- timers and descriptors ----------------------------------------------- */

struct asker {
    struct weir_loop *loop;
    struct weir_timer *timer;
    struct weir_watch *watch;
    struct weir_handle handle;
    int ends[2];
    int ticks;
};

static struct asker asker; /* of the table below */

static void on_tick(void *arg)
{
    struct asker *self = arg;

    if (++self->ticks < 3)
        weir_timer_start(self->timer, 5000);
    else
        EXPECT_INT(WEIR_OK, weir_complete(self->handle, WEIR_DONE, 0, NULL));
}

static void on_bytes(int fd, unsigned events, void *arg)
{
    const struct asker *self = arg;
    char byte;

    EXPECT_INT(WEIR_FD_READ, events);
    EXPECT_INT(1, read(fd, &byte, 1));
    EXPECT_INT(WEIR_OK, weir_complete(self->handle, WEIR_FAIL, 0, "a byte"));
}

static int open_asker(const struct weir_open *open, void **ret_self)
{
    EXPECT_INT(0, pipe(asker.ends));
    asker.loop = weir_open_loop(open);
    EXPECT_TRUE(asker.loop != NULL);
    if (asker.loop == NULL)
        return WEIR_EINVAL;
    asker.timer = weir_timer_new(asker.loop, on_tick, &asker);
    asker.watch = weir_watch_new(asker.loop, asker.ends[0], on_bytes, &asker);
    EXPECT_TRUE(asker.timer != NULL && asker.watch != NULL);
    weir_watch_set(asker.watch, WEIR_FD_READ);
    *ret_self = &asker;
    return 0;
}

static enum weir_verdict ask(void *self, struct weir_job *job)
{
    asker.handle = weir_job_handle(job);
    weir_timer_start(((struct asker *)self)->timer, 5000);
    return WEIR_PENDING;
}

static void close_asker(void *self)
{
    struct asker *mine = self;

    weir_watch_free(mine->watch);
    weir_timer_free(mine->timer);
}

static void leave_timer(void *self)
{
    weir_watch_free(((struct asker *)self)->watch);
}

static struct weir_plugin asker_table(void (*close)(void *self))
{
    return (struct weir_plugin){
        .abi = WEIR_PLUGIN_ABI,
        .size = sizeof(struct weir_plugin),
        .name = "asker",
        .open = open_asker,
        .run = ask,
        .close = close,
    };
}

TEST(timers_of_an_instance_fire_in_virtual_time)
{
    const struct weir_plugin table = asker_table(close_asker);
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.table = &table});

    add(trial, "a", 1000);
    weir_trial_advance(trial, 15999);
    EXPECT_INT(2, asker.ticks);
    EXPECT_INT(15999, weir_loop_now_ms(asker.loop));
    EXPECT_INT(WEIR_TRIAL_RUNNING, weir_trial_state(trial, "a"));
    weir_trial_advance(trial, 1);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "a"));
    EXPECT_INT(16000, weir_trial_last(trial)->elapsed_ms);
    weir_trial_free(trial);
}

TEST(descriptors_of_an_instance_are_watched)
{
    const struct weir_plugin table = asker_table(close_asker);
    struct weir_trial *trial =
        open_trial(&(struct weir_trial_options){.table = &table});

    add(trial, "a", 0);
    weir_trial_advance(trial, 0);
    EXPECT_INT(1, write(asker.ends[1], "x", 1));
    EXPECT_TRUE(weir_trial_wait(trial, 4000));
    EXPECT_STR("a byte", weir_trial_last(trial)->reason);
    EXPECT_INT(0, asker.ticks);
    add(trial, "b", 0);
    weir_trial_advance(trial, 0);
    EXPECT_INT(1, write(asker.ends[1], "x", 1));
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_TRIAL_DEAD, weir_trial_state(trial, "b"));
    weir_trial_free(trial);
}

static char said[200];

static void keep_line(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    (void)snprintf(said, sizeof(said), "%s", text);
}

TEST(a_timer_that_is_left_behind_is_told)
{
    const struct weir_plugin table = asker_table(leave_timer);
    struct weir_trial *trial = open_trial(
        &(struct weir_trial_options){.table = &table, .log = keep_line});

    weir_trial_free(trial);
    EXPECT_STR("trial: plugin asker was closed and left 1 timers behind; they "
               "are stopped",
               said);
}

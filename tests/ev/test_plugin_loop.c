/* SPDX-License-Identifier: MIT */
#include "adapters/ev/plugin_loop.h"

#include <ev.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/oom.h"
#include "tests/harness/test.h"

/* Timers and watches as plugins have them. */
static struct ev_loop *ev;
static struct weir_loop *loop;
static int depth, calls, depth_inside;
static char logged[512];

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    (void)snprintf(logged, sizeof(logged), "%d %s", (int)level, text);
}

static const struct weir__log log_to = {.fn = log_line};

static struct weir__ev_loop_options loop_options(void)
{
    return (struct weir__ev_loop_options){
        .loop = ev,
        .plugin = "waiter",
        .topic = "mail",
        .log = &log_to,
        .depth = &depth,
    };
}

static void open_loop(void)
{
    struct weir__ev_loop_options options;

    ev = ev_loop_new(0);
    options = loop_options();
    EXPECT_INT(WEIR_OK, weir__ev_loop_open(&options, &loop));
}

static void close_loop(void)
{
    weir__ev_loop_close(loop);
    ev_loop_destroy(ev);
}

static void on_timer(void *arg)
{
    struct weir_timer **timer = arg;

    calls++;
    depth_inside = depth;
    weir_timer_free(*timer);
    *timer = NULL;
}

TEST(a_timer_fires_once_not_before_its_time_and_may_free_itself)
{
    struct weir_timer *timer;
    int64_t start_ms;

    open_loop();
    timer = weir_timer_new(loop, on_timer, &timer);
    start_ms = weir_loop_now_ms(loop);
    weir_timer_start(timer, 30);
    ev_run(ev, 0);
    EXPECT_INT(1, calls);
    EXPECT_TRUE(timer == NULL);
    EXPECT_TRUE(weir_loop_now_ms(loop) - start_ms >= 29);
    EXPECT_INT(1, depth_inside);
    EXPECT_INT(0, depth);
    close_loop();
    EXPECT_STR("", logged);
}

static void only_count(void *arg)
{
    (void)arg;
    calls++;
}

TEST(a_timer_that_is_started_again_forgets_its_first_time)
{
    struct weir_timer *timer, *stopped;

    open_loop();
    timer = weir_timer_new(loop, only_count, NULL);
    stopped = weir_timer_new(loop, only_count, NULL);
    weir_timer_start(timer, 3600 * 1000);
    weir_timer_start(timer, -5);
    weir_timer_start(stopped, 0);
    weir_timer_stop(stopped);
    weir_timer_stop(stopped);
    ev_run(ev, 0); /* ends: nothing else is waited for */
    EXPECT_INT(1, calls);
    weir_timer_free(timer);
    weir_timer_free(stopped);
    weir_timer_free(NULL);
    close_loop();
    EXPECT_STR("", logged);
}

static int pipe_ends[2];
static unsigned seen;

static void on_ready(int fd, unsigned events, void *arg)
{
    struct weir_watch **watch = arg;
    char byte;

    seen |= events;
    calls++;
    depth_inside = depth;
    if ((events & WEIR_FD_WRITE) != 0) {
        EXPECT_INT(pipe_ends[1], fd);
        EXPECT_INT(1, write(fd, "x", 1));
        weir_watch_set(*watch, 0);
        return;
    }
    EXPECT_INT(pipe_ends[0], fd);
    EXPECT_INT(1, read(fd, &byte, 1));
    weir_watch_free(*watch);
    *watch = NULL;
}

TEST(a_watch_tells_when_a_descriptor_is_ready_for_what_was_asked)
{
    struct weir_watch *in, *out;

    open_loop();
    EXPECT_INT(0, pipe(pipe_ends));
    in = weir_watch_new(loop, pipe_ends[0], on_ready, &in);
    out = weir_watch_new(loop, pipe_ends[1], on_ready, &out);
    ev_run(ev, 0); /* ends: they look for nothing yet */
    EXPECT_INT(0, calls);
    weir_watch_set(in, WEIR_FD_READ);
    weir_watch_set(out, WEIR_FD_WRITE);
    ev_run(ev, 0);
    EXPECT_INT(2, calls);
    EXPECT_INT(WEIR_FD_READ | WEIR_FD_WRITE, seen);
    EXPECT_INT(1, depth_inside);
    EXPECT_TRUE(in == NULL);
    weir_watch_free(out);
    weir_watch_free(NULL);
    close_loop();
    EXPECT_STR("", logged);
}

TEST(what_is_left_behind_is_stopped_and_named)
{
    open_loop();
    EXPECT_INT(0, pipe(pipe_ends));
    weir_timer_start(weir_timer_new(loop, only_count, NULL), 0);
    weir_timer_start(weir_timer_new(loop, only_count, NULL), 10);
    weir_watch_set(weir_watch_new(loop, pipe_ends[1], on_ready, NULL),
                   WEIR_FD_WRITE);
    weir__ev_loop_close(loop);
    EXPECT_STR("2 mail: plugin waiter was closed and left 2 timers and 1 "
               "watched descriptors behind; they are stopped",
               logged);
    ev_run(ev, 0); /* ends: nothing is left */
    EXPECT_INT(0, calls);
    ev_loop_destroy(ev);
}

TEST(what_is_no_open_descriptor_gets_no_watch_and_a_sentence)
{
    static const int none[] = {-1, 1000000000};

    open_loop();
    EXPECT_TRUE(weir_watch_new(loop, none[1], on_ready, NULL) == NULL);
    EXPECT_STR("3 mail: plugin waiter wants to watch 1000000000, which is no "
               "open descriptor; it gets no watch",
               logged);
    EXPECT_TRUE(weir_watch_new(loop, none[0], on_ready, NULL) == NULL);
    EXPECT_CONTAINS("wants to watch -1, ", logged);
    close_loop();
}

TEST(log_lines_name_topic_and_plugin)
{
    open_loop();
    weir_loop_log(loop, WEIR_LEVEL_INFO, "hello");
    EXPECT_STR("1 mail: waiter: hello", logged);
    weir_loop_log(loop, WEIR_LEVEL_INFO, NULL);
    EXPECT_STR("1 mail: waiter: ", logged);
    close_loop();
}

TEST(without_memory_there_is_no_timer_and_no_watch)
{
    struct weir__ev_loop_options options;
    struct weir_loop *none = NULL;

    open_loop();
    options = loop_options();
    oom_after(0);
    EXPECT_INT(WEIR_ENOMEM, weir__ev_loop_open(&options, &none));
    EXPECT_TRUE(weir_timer_new(loop, only_count, NULL) == NULL);
    EXPECT_TRUE(weir_watch_new(loop, 0, on_ready, NULL) == NULL);
    oom_off();
    close_loop();
    EXPECT_STR("", logged);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/ev/driver.h"

#include <ev.h>

#include <weir/base.h>

#include "tests/harness/test.h"

static struct ev_loop *loop;
static struct weir__driver *driver;
static int ticks, deferred;
static int64_t answers[8]; /* what tick returns, in turn */
static int64_t tick_ns[8]; /* when it was called */
static ev_timer ending;

static int64_t tick(void *arg)
{
    int64_t wait_ns;

    (void)arg;
    EXPECT_TRUE(ticks < 8);
    tick_ns[ticks] = weir__driver_clock(NULL);
    wait_ns = answers[ticks];
    ticks++;
    if (wait_ns == -2) { /* enough */
        ev_break(loop, EVBREAK_ALL);
        return 0;
    }
    if (wait_ns == -3) { /* a little more */
        ev_now_update(loop);
        ev_timer_start(loop, &ending);
        return -1;
    }
    return wait_ns;
}

static void open_driver(void)
{
    loop = ev_loop_new(0);
    EXPECT_TRUE(loop != NULL);
    EXPECT_INT(WEIR_OK, weir__driver_open(loop, tick, NULL, &driver));
}

static void close_driver(void)
{
    weir__driver_close(driver);
    ev_loop_destroy(loop);
}

TEST(a_deadline_is_met_and_not_before_its_time)
{
    open_driver();
    answers[0] = 30 * 1000000;
    answers[1] = -2;
    ev_run(loop, 0);
    EXPECT_INT(2, ticks);
    EXPECT_TRUE(tick_ns[1] - tick_ns[0] >= 29 * 1000000);
    close_driver();
}

TEST(a_tick_with_more_to_do_is_called_again_without_sleeping)
{
    open_driver();
    answers[3] = -2;
    ev_run(loop, 0);
    EXPECT_INT(4, ticks);
    close_driver();
}

TEST(a_deadline_counts_from_the_end_of_a_long_tick)
{
    int64_t until;

    open_driver();
    answers[0] = 50 * 1000000;
    answers[1] = -2;
    /* The loop's idea of now is old when it starts to wait. */
    until = weir__driver_clock(NULL) + 40 * 1000000;
    while (weir__driver_clock(NULL) < until)
        continue;
    ev_run(loop, 0);
    EXPECT_TRUE(tick_ns[1] - tick_ns[0] >= 49 * 1000000);
    close_driver();
}

TEST(deadlines_are_finer_than_a_millisecond)
{
    int fine = 0;

    for (int i = 0; i < 40; i++) {
        ticks = 0;
        open_driver();
        answers[0] = 200000;
        answers[1] = -2;
        ev_run(loop, 0);
        EXPECT_TRUE(tick_ns[1] - tick_ns[0] >= 150000);
        fine += tick_ns[1] - tick_ns[0] < 900000;
        close_driver();
    }
    EXPECT_TRUE(fine > 0);
}

static void end(struct ev_loop *on, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    ev_break(on, EVBREAK_ALL);
}

TEST(a_deadline_that_passed_wakes_the_loop_once)
{
    open_driver();
    answers[0] = 1000000;
    answers[1] = -3; /* from when it passed, or the two may be one */
    for (int i = 2; i < 8; i++)
        answers[i] = -1;
    ev_timer_init(&ending, end, 0.05, 0.);
    ev_run(loop, 0);
    EXPECT_INT(2, ticks);
    close_driver();
}

static void only_count(void *arg)
{
    (void)arg;
    deferred++;
}

static void defer_and_end(struct ev_loop *on, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    weir__driver_defer(driver, only_count);
    ev_break(on, EVBREAK_ALL);
}

TEST(deferred_work_runs_in_the_same_turn_even_when_the_loop_ends)
{
    ev_timer timer;

    open_driver();
    answers[0] = -1;
    ev_timer_init(&timer, defer_and_end, 0.001, 0.);
    ev_timer_start(loop, &timer);
    ev_run(loop, 0);
    EXPECT_INT(1, deferred);
    close_driver();
}

TEST(closing_with_deferred_work_pending_is_clean)
{
    open_driver();
    weir__driver_defer(driver, only_count);
    close_driver();
    EXPECT_INT(0, deferred);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/ev/driver.h"

#include <ev.h>
#include <time.h>

#include "core/assert.h"
#include "core/mem.h"
#include <weir/base.h>

struct weir__driver {
    struct ev_loop *loop;
    weir__tick_fn tick;
    void *arg;
    void (*deferred)(void *arg); /* NULL: nothing is deferred */
    ev_prepare prepare;
    ev_timer timer;
    ev_idle idle;
    ev_timer reaper; /* never started, only fed */
};

int64_t weir__driver_clock(void *arg)
{
    struct timespec now;
    int rc = clock_gettime(CLOCK_MONOTONIC, &now);

    (void)arg;
    WEIR_ASSERT(rc == 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Ends the poll; the prepare watcher of the next turn ticks. */
static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
}

static void on_idle(struct ev_loop *loop, ev_idle *idle, int events)
{
    (void)loop;
    (void)idle;
    (void)events;
}

/* Timers count from the loop's cached time, which a long turn leaves behind:
 * it is brought up to date before one is armed. */
static void arm(struct weir__driver *driver, int64_t wait_ns)
{
    ev_timer_stop(driver->loop, &driver->timer);
    if (wait_ns == 0) {
        ev_idle_start(driver->loop, &driver->idle);
        return;
    }
    ev_idle_stop(driver->loop, &driver->idle);
    if (wait_ns < 0)
        return;
    ev_now_update(driver->loop);
    ev_timer_set(&driver->timer, (double)wait_ns * 1e-9, 0.);
    ev_timer_start(driver->loop, &driver->timer);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    struct weir__driver *driver = prepare->data;

    (void)loop;
    (void)events;
    arm(driver, driver->tick(driver->arg));
}

static void on_reaper(struct ev_loop *loop, ev_timer *reaper, int events)
{
    struct weir__driver *driver = reaper->data;
    void (*fn)(void *arg) = driver->deferred;

    (void)loop;
    (void)events;
    WEIR_ASSERT(fn != NULL);
    driver->deferred = NULL;
    fn(driver->arg);
}

int weir__driver_open(struct ev_loop *loop, weir__tick_fn tick, void *arg,
                      struct weir__driver **ret_driver)
{
    struct weir__driver *driver = weir__mem_new(sizeof(*driver));

    if (driver == NULL)
        return WEIR_ENOMEM;
    driver->loop = loop;
    driver->tick = tick;
    driver->arg = arg;
    ev_prepare_init(&driver->prepare, on_prepare);
    ev_init(&driver->timer, on_timer);
    ev_idle_init(&driver->idle, on_idle);
    ev_init(&driver->reaper, on_reaper);
    driver->prepare.data = driver;
    driver->reaper.data = driver;
    /* After the host's own prepare watchers, which may add jobs; deferred work
     * after everything else of the turn. */
    ev_set_priority(&driver->prepare, EV_MINPRI);
    ev_set_priority(&driver->reaper, EV_MINPRI);
    ev_prepare_start(loop, &driver->prepare);
    *ret_driver = driver;
    return WEIR_OK;
}

void weir__driver_defer(struct weir__driver *driver, void (*fn)(void *arg))
{
    WEIR_ASSERT(driver->deferred == NULL);
    driver->deferred = fn;
    ev_feed_event(driver->loop, &driver->reaper, EV_CUSTOM);
}

void weir__driver_close(struct weir__driver *driver)
{
    if (driver == NULL)
        return;
    ev_clear_pending(driver->loop, &driver->reaper);
    ev_prepare_stop(driver->loop, &driver->prepare);
    ev_timer_stop(driver->loop, &driver->timer);
    ev_idle_stop(driver->loop, &driver->idle);
    weir__mem_free(driver);
}

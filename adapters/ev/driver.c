/* SPDX-License-Identifier: MIT */
#include "adapters/ev/driver.h"

#include <ev.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/mem.h"
#include <weir/base.h>

/* A deadline that moved by less than this is not set anew: the tick that comes
 * early is harmless, and one this late is not noticed. */
#define EARLY_NS INT64_C(1000000)
#define LATE_NS  INT64_C(20000)

struct weir__driver {
    struct ev_loop *loop;
    weir__tick_fn tick;
    void *arg;
    void (*deferred)(void *arg); /* NULL: nothing is deferred */
    ev_prepare prepare;
    int fd;           /* of the timer; -1: none to be had, `timer` it is */
    int64_t armed_ns; /* for when; 0: it is not armed, -1: it expired */
    ev_io expiry;     /* of fd */
    ev_timer timer;   /* the loop rounds it up to milliseconds */
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

/* The same; reading the expiration is left to the next arming. */
static void on_expiry(struct ev_loop *loop, ev_io *expiry, int events)
{
    struct weir__driver *driver = expiry->data;

    (void)loop;
    (void)events;
    driver->armed_ns = -1;
}

static void set_fd(struct weir__driver *driver, int64_t at_ns)
{
    struct itimerspec spec = {
        .it_value = {.tv_sec = at_ns / 1000000000,
                     .tv_nsec = (long)(at_ns % 1000000000)}};
    int rc = timerfd_settime(driver->fd, TFD_TIMER_ABSTIME, &spec, NULL);

    WEIR_ASSERT(rc == 0);
    driver->armed_ns = at_ns;
}

static void arm_fd(struct weir__driver *driver, int64_t wait_ns)
{
    int64_t at_ns;

    if (wait_ns <= 0) { /* what is armed may stay, what expired is cleared */
        if (driver->armed_ns < 0)
            set_fd(driver, 0);
        return;
    }
    at_ns = weir__driver_clock(NULL) + wait_ns;
    if (driver->armed_ns <= 0 || driver->armed_ns > at_ns + LATE_NS ||
        driver->armed_ns < at_ns - EARLY_NS)
        set_fd(driver, at_ns);
}

/* Timers count from the loop's cached time, which a long turn leaves behind:
 * it is brought up to date before one is armed. */
static void arm_timer(struct weir__driver *driver, int64_t wait_ns)
{
    ev_timer_stop(driver->loop, &driver->timer);
    if (wait_ns <= 0)
        return;
    ev_now_update(driver->loop);
    ev_timer_set(&driver->timer, (double)wait_ns * 1e-9, 0.);
    ev_timer_start(driver->loop, &driver->timer);
}

static void arm(struct weir__driver *driver, int64_t wait_ns)
{
    if (wait_ns == 0)
        ev_idle_start(driver->loop, &driver->idle);
    else
        ev_idle_stop(driver->loop, &driver->idle);
    if (driver->fd >= 0)
        arm_fd(driver, wait_ns);
    else
        arm_timer(driver, wait_ns);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    struct weir__driver *driver = prepare->data;
    int64_t wait_ns = driver->tick(driver->arg);

    (void)events;
    if (wait_ns == WEIR__TICK_ENDS)
        ev_break(loop, EVBREAK_ALL);
    else
        arm(driver, wait_ns);
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
    driver->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (driver->fd >= 0) {
        ev_io_init(&driver->expiry, on_expiry, driver->fd, EV_READ);
        driver->expiry.data = driver;
        ev_io_start(loop, &driver->expiry);
    }
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
    if (driver->fd >= 0) {
        ev_io_stop(driver->loop, &driver->expiry);
        (void)close(driver->fd); /* nothing was written */
    }
    weir__mem_free(driver);
}

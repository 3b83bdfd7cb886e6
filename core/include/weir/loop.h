/* SPDX-License-Identifier: MIT */
#ifndef WEIR_LOOP_H
#define WEIR_LOOP_H

/* Timers and file descriptors for handlers that wait: part of <weir/plugin.h>.
 *
 * A plugin's instance gets its share of the loop in `open`, through
 * weir_open_loop(), and uses it from the loop's thread only. Callbacks run on
 * that thread, between handlers, never inside the functions below, and must not
 * block either. Inside one everything is allowed: completing runs, freeing the
 * very timer or watch.
 *
 * What an instance made it frees, in `close` at the latest. What it leaves is
 * stopped and freed by the host, and logged. */

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What may be asked of a descriptor, or has happened. */
enum weir_fd_event {
    WEIR_FD_READ = 1, /* readable, at its end, or broken */
    WEIR_FD_WRITE = 2 /* writable, or broken */
};

typedef void (*weir_timer_fn)(void *arg);
typedef void (*weir_watch_fn)(int fd, unsigned events, void *arg);

/* The first member of each is part of the ABI, what follows it belongs to the
 * host. */
struct weir_loop {
    const struct weir_loop_ops *ops;
};

struct weir_timer {
    struct weir_loop *loop;
};

struct weir_watch {
    struct weir_loop *loop;
};

/* The host's functions: the port between plugins and whatever loop there is.
 * Call them through the inline functions below. */
struct weir_loop_ops {
    uint32_t size; /* sizeof(struct weir_loop_ops) in the host's build */

    struct weir_timer *(*timer_new)(struct weir_loop *loop, weir_timer_fn fn,
                                    void *arg);
    void (*timer_start)(struct weir_timer *timer, int64_t ms);
    void (*timer_stop)(struct weir_timer *timer);
    void (*timer_free)(struct weir_timer *timer);
    struct weir_watch *(*watch_new)(struct weir_loop *loop, int fd,
                                    weir_watch_fn fn, void *arg);
    void (*watch_set)(struct weir_watch *watch, unsigned events);
    void (*watch_free)(struct weir_watch *watch);
    int64_t (*now_ms)(const struct weir_loop *loop);
    void (*log)(struct weir_loop *loop, enum weir_level level,
                const char *text);
};

/* A timer that is not started; NULL when out of memory. `arg` is kept. */
static inline struct weir_timer *weir_timer_new(struct weir_loop *loop,
                                                weir_timer_fn fn, void *arg)
{
    return loop->ops->timer_new(loop, fn, arg);
}

/* Call it once, `ms` from now; less than 0 counts as 0. A timer that is started
 * already starts anew. */
static inline void weir_timer_start(struct weir_timer *timer, int64_t ms)
{
    timer->loop->ops->timer_start(timer, ms);
}

/* Not started is fine. */
static inline void weir_timer_stop(struct weir_timer *timer)
{
    timer->loop->ops->timer_stop(timer);
}

/* NULL is fine. */
static inline void weir_timer_free(struct weir_timer *timer)
{
    if (timer != NULL)
        timer->loop->ops->timer_free(timer);
}

/* A watch on a descriptor that looks for nothing yet; NULL when out of memory,
 * or when the descriptor is not open, which is logged. One watch for each
 * descriptor. */
static inline struct weir_watch *weir_watch_new(struct weir_loop *loop, int fd,
                                                weir_watch_fn fn, void *arg)
{
    return loop->ops->watch_new(loop, fd, fn, arg);
}

/* Look for these of WEIR_FD_..., again and again, until told otherwise; 0: for
 * nothing. */
static inline void weir_watch_set(struct weir_watch *watch, unsigned events)
{
    watch->loop->ops->watch_set(watch, events);
}

/* Before the descriptor is closed. NULL is fine. */
static inline void weir_watch_free(struct weir_watch *watch)
{
    if (watch != NULL)
        watch->loop->ops->watch_free(watch);
}

/* A clock that only goes forward, in ms since some moment. */
static inline int64_t weir_loop_now_ms(const struct weir_loop *loop)
{
    return loop->ops->now_ms(loop);
}

/* Log a line that names the plugin and the instance's topic. */
static inline void weir_loop_log(struct weir_loop *loop, enum weir_level level,
                                 const char *text)
{
    loop->ops->log(loop, level, text);
}

#ifdef __cplusplus
}
#endif
#endif

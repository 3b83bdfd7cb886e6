/* SPDX-License-Identifier: MIT */
#include "adapters/ev/plugin_loop.h"

#include <ev.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "adapters/ev/driver.h"
#include "core/assert.h"
#include "core/call.h"
#include "core/mem.h"

/* Timers and watches are on one list each, so that what an instance leaves
 * behind is found. */

struct node {
    struct node *next;
    struct node **link; /* what points here */
};

struct loop {
    struct weir_loop port; /* first */
    struct weir__ev_loop_options options;
    char topic[WEIR_MAX_TOPIC + 1];
    struct node *timers, *watches;
};

struct timer {
    struct weir_timer port; /* first */
    struct node node;       /* second */
    ev_timer ev;
    weir_timer_fn fn;
    void *arg;
};

struct watch {
    struct weir_watch port; /* first */
    struct node node;       /* second */
    ev_io ev;
    weir_watch_fn fn;
    void *arg;
};

/* The casts below are from an object's first member. */
static struct loop *loop_of(struct weir_loop *port)
{
    return (struct loop *)port;
}

static struct timer *timer_of(struct weir_timer *port)
{
    return (struct timer *)port;
}

static struct watch *watch_of(struct weir_watch *port)
{
    return (struct watch *)port;
}

static void link_in(struct node **first, struct node *node)
{
    node->next = *first;
    node->link = first;
    if (*first != NULL)
        (*first)->link = &node->next;
    *first = node;
}

static void link_out(struct node *node)
{
    *node->link = node->next;
    if (node->next != NULL)
        node->next->link = node->link;
}

static const struct weir__store *store_of(const struct loop *loop)
{
    return loop->options.store == NULL ? NULL : *loop->options.store;
}

static struct weir__call call_of(const struct loop *loop, const char *what)
{
    return (struct weir__call){
        .what = what, .handler = loop->options.plugin, .topic = loop->topic};
}

static void begin_call(struct loop *loop, struct weir__call *call)
{
    (*loop->options.depth)++;
    weir__call_begin(store_of(loop), call);
    if (loop->options.calling != NULL)
        *loop->options.calling = &loop->port;
}

static void end_call(struct loop *loop, struct weir__call *call)
{
    if (loop->options.calling != NULL)
        *loop->options.calling = NULL;
    (void)weir__call_end(store_of(loop), call); /* has no run */
    (*loop->options.depth)--;
}

/* --- timers --------------------------------------------------------------- */

/* The callback may free the timer. */
static void on_timer(struct ev_loop *ev, ev_timer *watcher, int events)
{
    const struct timer *timer = watcher->data;
    struct loop *loop = loop_of(timer->port.loop);
    struct weir__call call = call_of(loop, "a timer");

    (void)ev;
    (void)events;
    begin_call(loop, &call);
    timer->fn(timer->arg);
    end_call(loop, &call);
}

static struct weir_timer *timer_new(struct weir_loop *port, weir_timer_fn fn,
                                    void *arg)
{
    struct timer *timer = weir__mem_new(sizeof(*timer));

    WEIR_ASSERT(fn != NULL);
    if (timer == NULL)
        return NULL;
    timer->port.loop = port;
    timer->fn = fn;
    timer->arg = arg;
    ev_timer_init(&timer->ev, on_timer, 0., 0.);
    timer->ev.data = timer;
    link_in(&loop_of(port)->timers, &timer->node);
    return &timer->port;
}

/* Counted from now, not from when the loop last woke up. */
static void timer_start(struct weir_timer *port, int64_t ms)
{
    struct timer *timer = timer_of(port);
    struct ev_loop *ev = loop_of(port->loop)->options.loop;

    ev_timer_stop(ev, &timer->ev);
    ev_now_update(ev);
    ev_timer_set(&timer->ev, ms < 0 ? 0. : (double)ms * 1e-3, 0.);
    ev_timer_start(ev, &timer->ev);
}

static void timer_stop(struct weir_timer *port)
{
    ev_timer_stop(loop_of(port->loop)->options.loop, &timer_of(port)->ev);
}

static void timer_free(struct weir_timer *port)
{
    timer_stop(port);
    link_out(&timer_of(port)->node);
    weir__mem_free(timer_of(port));
}

/* --- watches -------------------------------------------------------------- */

static void on_watch(struct ev_loop *ev, ev_io *watcher, int events)
{
    const struct watch *watch = watcher->data;
    struct loop *loop = loop_of(watch->port.loop);
    struct weir__call call = call_of(loop, "a descriptor callback");
    unsigned seen = 0;

    (void)ev;
    if ((events & EV_READ) != 0)
        seen |= WEIR_FD_READ;
    if ((events & EV_WRITE) != 0)
        seen |= WEIR_FD_WRITE;
    begin_call(loop, &call);
    watch->fn(watcher->fd, seen, watch->arg);
    end_call(loop, &call);
}

/* libev would end the process for a number that is no descriptor. */
static bool is_open(const struct loop *loop, int fd)
{
    if (fcntl(fd, F_GETFD) >= 0)
        return true;
    weir__log(loop->options.log, WEIR_LEVEL_ERROR,
              "%s: plugin %s wants to watch %d, which is no open descriptor; "
              "it gets no watch",
              loop->topic, loop->options.plugin, fd);
    return false;
}

static struct weir_watch *watch_new(struct weir_loop *port, int fd,
                                    weir_watch_fn fn, void *arg)
{
    struct watch *watch;

    WEIR_ASSERT(fn != NULL);
    if (!is_open(loop_of(port), fd))
        return NULL;
    watch = weir__mem_new(sizeof(*watch));
    if (watch == NULL)
        return NULL;
    watch->port.loop = port;
    watch->fn = fn;
    watch->arg = arg;
    ev_io_init(&watch->ev, on_watch, fd, 0);
    watch->ev.data = watch;
    link_in(&loop_of(port)->watches, &watch->node);
    return &watch->port;
}

static void watch_set(struct weir_watch *port, unsigned events)
{
    struct watch *watch = watch_of(port);
    struct ev_loop *ev = loop_of(port->loop)->options.loop;
    int wanted = 0;

    if ((events & WEIR_FD_READ) != 0)
        wanted |= EV_READ;
    if ((events & WEIR_FD_WRITE) != 0)
        wanted |= EV_WRITE;
    ev_io_stop(ev, &watch->ev);
    if (wanted == 0)
        return;
    ev_io_set(&watch->ev, watch->ev.fd, wanted);
    ev_io_start(ev, &watch->ev);
}

static void watch_free(struct weir_watch *port)
{
    ev_io_stop(loop_of(port->loop)->options.loop, &watch_of(port)->ev);
    link_out(&watch_of(port)->node);
    weir__mem_free(watch_of(port));
}

/* --- the loop ------------------------------------------------------------- */

static int64_t now_ms(const struct weir_loop *port)
{
    (void)port;
    return weir__driver_clock(NULL) / 1000000;
}

static void log_text(struct weir_loop *port, enum weir_level level,
                     const char *text)
{
    const struct loop *loop = loop_of(port);

    weir__log(loop->options.log, level, "%s: %s: %s", loop->topic,
              loop->options.plugin, text == NULL ? "" : text);
}

static const struct weir_loop_ops ops = {
    .size = sizeof(ops),
    .timer_new = timer_new,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .timer_free = timer_free,
    .watch_new = watch_new,
    .watch_set = watch_set,
    .watch_free = watch_free,
    .now_ms = now_ms,
    .log = log_text,
};

int weir__ev_loop_open(const struct weir__ev_loop_options *options,
                       struct weir_loop **ret_loop)
{
    struct loop *loop = weir__mem_new(sizeof(*loop));

    if (loop == NULL)
        return WEIR_ENOMEM;
    loop->port.ops = &ops;
    loop->options = *options;
    (void)snprintf(loop->topic, sizeof(loop->topic), "%s",
                   options->topic); /* fits */
    *ret_loop = &loop->port;
    return WEIR_OK;
}

void weir__ev_loop_current(const struct weir_loop *port,
                           struct weir_current *ret_current)
{
    const struct loop *loop = (const struct loop *)port; /* its first member */

    *ret_current = (struct weir_current){.handler = loop->options.plugin};
    memcpy(ret_current->topic, loop->topic, sizeof(loop->topic));
}

/* Nodes come after a port, which is what is given to the functions above. */
static size_t free_timers(struct loop *loop)
{
    size_t count = 0;

    for (; loop->timers != NULL; count++) {
        char *start = (char *)loop->timers - offsetof(struct timer, node);

        timer_free((struct weir_timer *)(void *)start);
    }
    return count;
}

static size_t free_watches(struct loop *loop)
{
    size_t count = 0;

    for (; loop->watches != NULL; count++) {
        char *start = (char *)loop->watches - offsetof(struct watch, node);

        watch_free((struct weir_watch *)(void *)start);
    }
    return count;
}

void weir__ev_loop_close(struct weir_loop *port)
{
    struct loop *loop = port == NULL ? NULL : loop_of(port);
    size_t timers, watches;

    if (loop == NULL)
        return;
    timers = free_timers(loop);
    watches = free_watches(loop);
    if (timers + watches > 0)
        weir__log(
            loop->options.log, WEIR_LEVEL_WARN,
            "%s: plugin %s was closed and left %zu timers and %zu watched "
            "descriptors behind; they are stopped",
            loop->topic, loop->options.plugin, timers, watches);
    weir__mem_free(loop);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/trial/loop.h"

#include "core/assert.h"
#include "core/heap.h"
#include "core/mem.h"

#define MS_NS  INT64_C(1000000)
#define MS_MAX (INT64_MAX / MS_NS / 2) /* so long that it never comes */

struct timer {
    struct weir_timer port;      /* first: what the plugin holds */
    struct weir__heap_node node; /* second */
    struct timer *next, **link;  /* among all of them */
    weir_timer_fn fn;
    void *arg;
};

struct weir__trial_loop {
    struct weir_loop port; /* first: what the plugin holds */
    struct weir__trial_loop_options options;
    struct weir__heap due;
    struct timer *timers;
    size_t timer_count;
};

/* The casts are from first members. */
static struct weir__trial_loop *loop_of(struct weir_loop *port)
{
    return (struct weir__trial_loop *)port;
}

static struct timer *timer_of(struct weir_timer *port)
{
    return (struct timer *)port;
}

static struct timer *timer_at(struct weir__heap_node *node)
{
    char *start = (char *)node - offsetof(struct timer, node);

    return (struct timer *)(void *)start;
}

static int64_t clock_ns(const struct weir__trial_loop *loop)
{
    return loop->options.now_ns(loop->options.arg);
}

/* --- timers --------------------------------------------------------------- */

static struct weir_timer *timer_new(struct weir_loop *port, weir_timer_fn fn,
                                    void *arg)
{
    struct weir__trial_loop *loop = loop_of(port);
    struct timer *timer;

    WEIR_ASSERT(fn != NULL);
    if (weir__heap_reserve(&loop->due, loop->timer_count + 1) < 0)
        return NULL;
    timer = weir__mem_new(sizeof(*timer));
    if (timer == NULL)
        return NULL;
    timer->port.loop = port;
    timer->fn = fn;
    timer->arg = arg;
    timer->next = loop->timers;
    timer->link = &loop->timers;
    if (timer->next != NULL)
        timer->next->link = &timer->next;
    loop->timers = timer;
    loop->timer_count++;
    return &timer->port;
}

static void timer_stop(struct weir_timer *port)
{
    struct timer *timer = timer_of(port);

    if (weir__heap_has(&timer->node))
        weir__heap_remove(&loop_of(port->loop)->due, &timer->node);
}

/* 0 ms are 1: a timer that starts itself anew would stop time. */
static void timer_start(struct weir_timer *port, int64_t ms)
{
    struct weir__trial_loop *loop = loop_of(port->loop);
    int64_t at_ns;
    int rc;

    if (ms < 1)
        ms = 1;
    if (ms > MS_MAX)
        ms = MS_MAX;
    at_ns = clock_ns(loop) + ms * MS_NS;
    timer_stop(port);
    rc = weir__heap_push(&loop->due, &timer_of(port)->node, at_ns);
    WEIR_ASSERT(rc == WEIR_OK); /* there was room for each */
}

static void timer_free(struct weir_timer *port)
{
    struct timer *timer = timer_of(port);

    timer_stop(port);
    *timer->link = timer->next;
    if (timer->next != NULL)
        timer->next->link = timer->link;
    loop_of(port->loop)->timer_count--;
    weir__mem_free(timer);
}

/* --- the rest ------------------------------------------------------------- */

/* What comes back belongs to the other loop and is used through it. */
static struct weir_watch *watch_new(struct weir_loop *port, int fd,
                                    weir_watch_fn fn, void *arg)
{
    return weir_watch_new(loop_of(port)->options.watches, fd, fn, arg);
}

static int64_t now_ms(const struct weir_loop *port)
{
    return clock_ns((const struct weir__trial_loop *)port) / MS_NS;
}

static void log_text(struct weir_loop *port, enum weir_level level,
                     const char *text)
{
    weir_loop_log(loop_of(port)->options.watches, level, text);
}

static const struct weir_loop_ops ops = {
    .size = sizeof(ops),
    .timer_new = timer_new,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .timer_free = timer_free,
    .watch_new = watch_new,
    .now_ms = now_ms,
    .log = log_text,
};

int weir__trial_loop_open(const struct weir__trial_loop_options *options,
                          struct weir__trial_loop **ret_loop)
{
    struct weir__trial_loop *loop = weir__mem_new(sizeof(*loop));

    if (loop == NULL)
        return WEIR_ENOMEM;
    loop->port.ops = &ops;
    loop->options = *options;
    *ret_loop = loop;
    return WEIR_OK;
}

void weir__trial_loop_close(struct weir__trial_loop *loop)
{
    if (loop == NULL)
        return;
    if (loop->timer_count > 0)
        weir__log(loop->options.log, WEIR_LEVEL_WARN,
                  "%s: plugin %s was closed and left %zu timers behind; they "
                  "are stopped",
                  loop->options.topic, loop->options.plugin, loop->timer_count);
    while (loop->timers != NULL)
        timer_free(&loop->timers->port);
    weir__heap_fini(&loop->due);
    weir__mem_free(loop);
}

struct weir_loop *weir__trial_loop_port(struct weir__trial_loop *loop)
{
    return &loop->port;
}

bool weir__trial_loop_run(struct weir__trial_loop *loop)
{
    bool is_due = false;

    for (;;) {
        struct weir__heap_node *node = weir__heap_first(&loop->due);
        const struct timer *timer;

        if (node == NULL || node->at_ns > clock_ns(loop))
            return is_due;
        (void)weir__heap_pop(&loop->due); /* that node */
        is_due = true;
        timer = timer_at(node);
        timer->fn(timer->arg); /* may free it */
    }
}

int64_t weir__trial_loop_next_ns(const struct weir__trial_loop *loop)
{
    const struct weir__heap_node *node = weir__heap_first(&loop->due);

    return node == NULL ? -1 : node->at_ns;
}

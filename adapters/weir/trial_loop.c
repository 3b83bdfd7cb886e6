/* SPDX-License-Identifier: MIT */

/* Timers of a plugin in a trial, under the clock of the trial. */

#include "adapters/weir/trial_private.h"

#include "core/assert.h"
#include "core/mem.h"

#define MS_NS  INT64_C(1000000)
#define MS_MAX (INT64_MAX / MS_NS / 2) /* so long that it never comes */

struct weir__trial_timer {
    struct weir_timer port;                 /* first: what the plugin holds */
    struct weir__heap_node node;            /* second */
    struct weir__trial_timer *next, **link; /* among all of them */
    weir_timer_fn fn;
    void *arg;
};

/* The casts are from first members. */
static struct weir__trial_loop *loop_of(struct weir_loop *port)
{
    return (struct weir__trial_loop *)port;
}

static struct weir__trial_timer *timer_of(struct weir_timer *port)
{
    return (struct weir__trial_timer *)port;
}

static struct weir__trial_timer *timer_at(struct weir__heap_node *node)
{
    char *start = (char *)node - offsetof(struct weir__trial_timer, node);

    return (struct weir__trial_timer *)(void *)start;
}

/* --- timers --------------------------------------------------------------- */

static struct weir_timer *timer_new(struct weir_loop *port, weir_timer_fn fn,
                                    void *arg)
{
    struct weir__trial_loop *loop = loop_of(port);
    struct weir__trial_timer *timer;

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
    struct weir__trial_timer *timer = timer_of(port);

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
    at_ns = loop->trial->now_ns + ms * MS_NS;
    timer_stop(port);
    rc = weir__heap_push(&loop->due, &timer_of(port)->node, at_ns);
    WEIR_ASSERT(rc == WEIR_OK); /* there was room for each */
}

static void timer_free(struct weir_timer *port)
{
    struct weir__trial_timer *timer = timer_of(port);

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
    return weir_watch_new(loop_of(port)->watches, fd, fn, arg);
}

static int64_t now_ms(const struct weir_loop *port)
{
    return ((const struct weir__trial_loop *)port)->trial->now_ns / MS_NS;
}

static void log_text(struct weir_loop *port, enum weir_level level,
                     const char *text)
{
    weir_loop_log(loop_of(port)->watches, level, text);
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

void weir__trial_loop_init(struct weir_trial *trial)
{
    trial->timers.port.ops = &ops;
    trial->timers.trial = trial;
}

void weir__trial_loop_fini(struct weir_trial *trial)
{
    struct weir__trial_loop *loop = &trial->timers;

    if (loop->timer_count > 0)
        weir__log(&trial->log, WEIR_LEVEL_WARN,
                  "%s: plugin %s was closed and left %zu timers behind; they "
                  "are stopped",
                  trial->topic, trial->file.copy.name, loop->timer_count);
    while (loop->timers != NULL)
        timer_free(&loop->timers->port);
    weir__heap_fini(&loop->due);
}

bool weir__trial_loop_run(struct weir_trial *trial)
{
    bool is_due = false;

    for (;;) {
        struct weir__heap_node *node = weir__heap_first(&trial->timers.due);
        const struct weir__trial_timer *timer;

        if (node == NULL || node->at_ns > trial->now_ns)
            return is_due;
        (void)weir__heap_pop(&trial->timers.due); /* that node */
        is_due = true;
        timer = timer_at(node);
        timer->fn(timer->arg); /* may free it */
    }
}

int64_t weir__trial_loop_next_ns(const struct weir_trial *trial)
{
    const struct weir__heap_node *node = weir__heap_first(&trial->timers.due);

    return node == NULL ? -1 : node->at_ns;
}

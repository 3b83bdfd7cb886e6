/* SPDX-License-Identifier: MIT */
#include "adapters/cli/until_empty.h"

#include "core/assert.h"
#include "core/mem.h"

#include <string.h>

static const double AGAIN_S = 1.0;

static void on_stats(int code, const struct weir_stats *stats, void *arg);

static void look_later(struct weir__watched *watched)
{
    ev_timer_stop(watched->watch->loop, &watched->again);
    ev_timer_set(&watched->again, AGAIN_S, 0.0);
    ev_timer_start(watched->watch->loop, &watched->again);
}

/* What the last answer said does not hold for ever. */
static void forget(struct weir__watched *watched)
{
    watched->is_at_rest = false;
    watched->watch->is_confirming = false;
    look_later(watched);
}

static void look(struct weir__watched *watched)
{
    if (watched->is_asked) {
        watched->is_ask_again = true;
        return;
    }
    ev_timer_stop(watched->watch->loop, &watched->again);
    if (weir_reactor_stats(watched->watch->reactor, watched->topic, on_stats,
                           watched) == WEIR_OK)
        watched->is_asked = true;
    else
        forget(watched);
}

static void on_again(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    look(timer->data);
}

static bool all_at_rest(const struct weir__watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->topics[i].is_asked || !watch->topics[i].is_at_rest)
            return false;
    }
    return true;
}

static const struct weir__watched *find_left(const struct weir__watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->topics[i].held_back > 0 || watch->topics[i].newer > 0)
            return &watch->topics[i];
    }
    return NULL;
}

static void decide(struct weir__watch *watch)
{
    if (watch->is_over || !all_at_rest(watch))
        return;
    if (watch->is_confirming) {
        watch->is_over = true;
        watch->done(find_left(watch), watch->arg);
        return;
    }
    watch->is_confirming = true;
    for (size_t i = 0; i < watch->count; i++)
        look(&watch->topics[i]);
}

/* What one answer says about its topic. */
static void judge(struct weir__watched *watched, const struct weir_stats *stats)
{
    uint64_t waiting = stats->scheduled + stats->ready;
    uint64_t all = waiting + stats->running; /* ticks come again for ever */
    uint64_t jobs = all > stats->ticks ? all - stats->ticks : 0;

    watched->newer = stats->newer;
    watched->dead = stats->dead;
    watched->is_at_rest =
        stats->newer > 0 ||
        (stats->relaying == 0 &&
         (jobs == 0 || (stats->paused && stats->running == 0)));
    watched->held_back = !watched->is_at_rest ? 0
                         : stats->newer > 0   ? waiting
                                              : jobs;
    watched->elsewhere = 0;
    if (stats->is_elsewhere) {
        watched->is_at_rest = true;
        watched->elsewhere = waiting + stats->running;
        watched->held_back = 0;
    }
    if (!watched->is_at_rest &&
        (stats->ready > 0 || stats->running > 0 || stats->relaying > 0))
        look_later(watched);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct weir__watched *watched = arg;

    WEIR_ASSERT(watched->is_asked);
    watched->is_asked = false;
    if (code == WEIR_ECANCELED)
        return;
    watched->is_at_rest = code == WEIR_ENOTFOUND;
    watched->held_back = 0;
    watched->newer = 0;
    watched->dead = 0;
    if (code == WEIR_OK)
        judge(watched, stats);
    else if (!watched->is_at_rest)
        look_later(watched);
    if (!watched->is_at_rest)
        watched->watch->is_confirming = false;
    if (watched->is_ask_again) {
        watched->is_ask_again = false;
        look(watched);
    }
    decide(watched->watch);
}

static void on_idle(const char *topic, void *arg)
{
    struct weir__watch *watch = arg;

    for (size_t i = 0; i < watch->count; i++) {
        if (strcmp(watch->topics[i].topic, topic) == 0)
            look(&watch->topics[i]);
    }
}

int weir__watch_init(struct weir__watch *watch, size_t count)
{
    memset(watch, 0, sizeof(*watch));
    watch->topics = weir__mem_new(count * sizeof(*watch->topics));
    if (watch->topics == NULL)
        return WEIR_ENOMEM;
    watch->count = count;
    for (size_t i = 0; i < count; i++) {
        watch->topics[i].watch = watch;
        ev_timer_init(&watch->topics[i].again, on_again, AGAIN_S, 0.0);
        watch->topics[i].again.data = &watch->topics[i];
    }
    return WEIR_OK;
}

void weir__watch_start(struct weir__watch *watch)
{
    WEIR_ASSERT(watch->reactor != NULL && watch->done != NULL);
    weir_reactor_on_idle(watch->reactor, on_idle, watch);
    for (size_t i = 0; i < watch->count; i++)
        look(&watch->topics[i]);
}

void weir__watch_fini(struct weir__watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        ev_timer_stop(watch->loop, &watch->topics[i].again);
    weir__mem_free(watch->topics);
    watch->topics = NULL;
    watch->count = 0;
}

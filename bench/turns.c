/* SPDX-License-Identifier: MIT */
#include "bench/turns.h"

#include "bench/say.h"

#include <sys/resource.h>

static void on_woken(struct ev_loop *loop, ev_check *watcher, int events)
{
    struct bench_turns *turns = watcher->data;

    (void)loop;
    (void)events;
    turns->woken_ns = bench_now_ns();
}

static void on_asleep(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    struct bench_turns *turns = watcher->data;
    int64_t ns = bench_now_ns() - turns->woken_ns;

    (void)loop;
    (void)events;
    if (turns->woken_ns != 0 && ns > *turns->longest_ns)
        *turns->longest_ns = ns;
}

/* First of what runs after the wait, last of what runs before it. */
void bench_turns_begin(struct bench_turns *turns, struct ev_loop *loop,
                       int64_t *longest_ns)
{
    *turns = (struct bench_turns){.longest_ns = longest_ns};
    ev_check_init(&turns->woken, on_woken);
    ev_set_priority(&turns->woken, EV_MAXPRI);
    turns->woken.data = turns;
    ev_check_start(loop, &turns->woken);
    ev_prepare_init(&turns->asleep, on_asleep);
    ev_set_priority(&turns->asleep, EV_MINPRI);
    turns->asleep.data = turns;
    ev_prepare_start(loop, &turns->asleep);
}

void bench_turns_end(struct bench_turns *turns, struct ev_loop *loop)
{
    ev_check_stop(loop, &turns->woken);
    ev_prepare_stop(loop, &turns->asleep);
}

int64_t bench_cpu_ns(void)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail for ourselves */
    return ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) *
               INT64_C(1000000000) +
           ((int64_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

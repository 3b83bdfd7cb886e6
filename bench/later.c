/* SPDX-License-Identifier: MIT */
#include "bench/later.h"

#include "bench/say.h"

#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

enum { FIRST_JOBS = 256 };

/* What a handle finds no more is counted as lost or duplicated. */
static void complete(struct bench_later *later, size_t i)
{
    (void)weir_complete(later->jobs[i].handle, WEIR_DONE, 0, NULL);
}

/* --- in the next turn ------------------------------------------------- */

static bool is_done(struct bench_later *later)
{
    return later->handler != BENCH_HANDLER_RANDOM ||
           nrand48(later->random) % 2 == 0;
}

static void complete_some(struct ev_loop *loop, ev_idle *next, int events)
{
    struct bench_later *later = next->data;
    size_t kept = 0;

    (void)events;
    for (size_t i = 0; i < later->count; i++)
        if (is_done(later))
            complete(later, i);
        else
            later->jobs[kept++] = later->jobs[i];
    later->count = kept;
    if (kept == 0)
        ev_idle_stop(loop, next);
}

/* --- after a while ---------------------------------------------------- */

static void set_timer(struct bench_later *later)
{
    int64_t at_ns = later->jobs[later->first].due_ns;
    struct itimerspec spec = {
        .it_value = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S}};

    (void)timerfd_settime(later->timer.fd, TFD_TIMER_ABSTIME, &spec,
                          NULL); /* cannot fail for a time like that */
}

static void complete_due(struct ev_loop *loop, ev_io *timer, int events)
{
    struct bench_later *later = timer->data;
    int64_t now = bench_now_ns();
    uint64_t ticks;

    (void)loop;
    (void)events;
    (void)!read(timer->fd, &ticks, sizeof(ticks)); /* or it came early */
    while (later->first < later->count &&
           later->jobs[later->first].due_ns <= now)
        complete(later, later->first++);
    if (later->first < later->count)
        set_timer(later);
    else
        later->first = later->count = 0;
}

/* --- life ------------------------------------------------------------- */

/* An idle watcher, since a loop with a timer of 0 s waits for a millisecond; of
 * the highest priority, so that no I/O puts it off. */
bool bench_later_init(struct bench_later *later, struct ev_loop *loop,
                      enum bench_handler handler)
{
    int fd = -1;

    *later = (struct bench_later){.loop = loop, .handler = handler};
    ev_idle_init(&later->next, complete_some);
    ev_set_priority(&later->next, EV_MAXPRI);
    later->next.data = later;
    if (handler == BENCH_HANDLER_TIMER) {
        fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (fd < 0)
            return false;
    }
    ev_io_init(&later->timer, complete_due, fd, EV_READ);
    later->timer.data = later;
    if (fd >= 0)
        ev_io_start(loop, &later->timer);
    return true;
}

void bench_later_fini(struct bench_later *later)
{
    ev_idle_stop(later->loop, &later->next);
    ev_io_stop(later->loop, &later->timer);
    if (later->timer.fd >= 0)
        (void)close(later->timer.fd);
    free(later->jobs);
}

/* Those that are done make room, where they are half of it. */
static bool make_room(struct bench_later *later)
{
    size_t cap = later->cap == 0 ? FIRST_JOBS : 2 * later->cap;
    struct bench_late *jobs;

    if (later->first > later->count / 2) {
        later->count -= later->first;
        memmove(later->jobs, later->jobs + later->first,
                later->count * sizeof(later->jobs[0]));
        later->first = 0;
        return true;
    }
    jobs = realloc(later->jobs, cap * sizeof(jobs[0]));
    if (jobs == NULL)
        return false;
    later->jobs = jobs;
    later->cap = cap;
    return true;
}

bool bench_later_put(struct bench_later *later, struct weir_job *job)
{
    struct bench_late late = {.handle = weir_job_handle(job)};

    if (later->count == later->cap && !make_room(later))
        return false;
    if (later->handler == BENCH_HANDLER_TIMER)
        late.due_ns = bench_now_ns() + BENCH_LATER_NS;
    later->jobs[later->count++] = late;
    if (later->handler != BENCH_HANDLER_TIMER)
        ev_idle_start(later->loop, &later->next);
    else if (later->count - later->first == 1)
        set_timer(later);
    return true;
}

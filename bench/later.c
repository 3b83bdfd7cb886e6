/* SPDX-License-Identifier: MIT */
#include "bench/later.h"

#include <stdlib.h>

enum { FIRST_HANDLES = 256 };

static bool is_done(struct bench_later *later)
{
    return !later->is_random || nrand48(later->random) % 2 == 0;
}

/* What a handle finds no more is counted as lost or duplicated. */
static void complete_some(struct ev_loop *loop, ev_idle *next, int events)
{
    struct bench_later *later = next->data;
    size_t kept = 0;

    (void)events;
    for (size_t i = 0; i < later->count; i++)
        if (is_done(later))
            (void)weir_complete(later->handles[i], WEIR_DONE, 0, NULL);
        else
            later->handles[kept++] = later->handles[i];
    later->count = kept;
    if (kept == 0)
        ev_idle_stop(loop, next);
}

/* An idle watcher, since a loop with a timer of 0 s waits for a millisecond; of
 * the highest priority, so that no I/O puts it off. */
void bench_later_init(struct bench_later *later, struct ev_loop *loop,
                      bool is_random)
{
    *later = (struct bench_later){.loop = loop, .is_random = is_random};
    ev_idle_init(&later->next, complete_some);
    ev_set_priority(&later->next, EV_MAXPRI);
    later->next.data = later;
}

void bench_later_fini(struct bench_later *later)
{
    ev_idle_stop(later->loop, &later->next);
    free(later->handles);
}

static bool grow(struct bench_later *later)
{
    size_t cap = later->cap == 0 ? FIRST_HANDLES : 2 * later->cap;
    struct weir_handle *handles =
        realloc(later->handles, cap * sizeof(handles[0]));

    if (handles == NULL)
        return false;
    later->handles = handles;
    later->cap = cap;
    return true;
}

bool bench_later_put(struct bench_later *later, struct weir_job *job)
{
    if (later->count == later->cap && !grow(later))
        return false;
    later->handles[later->count++] = weir_job_handle(job);
    ev_idle_start(later->loop, &later->next);
    return true;
}

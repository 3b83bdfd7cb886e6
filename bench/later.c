/* SPDX-License-Identifier: MIT */
#include "bench/later.h"

#include <stdlib.h>

enum { FIRST_HANDLES = 256 };

/* What a handle finds no more is counted as lost or duplicated. */
static void complete_all(struct ev_loop *loop, ev_idle *next, int events)
{
    struct bench_later *later = next->data;

    (void)events;
    ev_idle_stop(loop, next);
    for (size_t i = 0; i < later->count; i++)
        (void)weir_complete(later->handles[i], WEIR_DONE, 0, NULL);
    later->count = 0;
}

/* An idle watcher, since a loop with a timer of 0 s waits for a millisecond; of
 * the highest priority, so that no I/O puts it off. */
void bench_later_init(struct bench_later *later, struct ev_loop *loop)
{
    *later = (struct bench_later){.loop = loop};
    ev_idle_init(&later->next, complete_all);
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

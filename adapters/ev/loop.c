/* SPDX-License-Identifier: MIT */
#include "adapters/ev/loop.h"

#include <ev.h>
#include <stddef.h>

struct ev_loop *weir__loop_new(void)
{
    return ev_loop_new(EVFLAG_AUTO);
}

void weir__loop_free(struct ev_loop *loop)
{
    if (loop != NULL)
        ev_loop_destroy(loop);
}

static void on_timeout(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
}

void weir__loop_turn(struct ev_loop *loop, int64_t ms)
{
    ev_timer timer;

    ev_now_update(loop);
    ev_timer_init(&timer, on_timeout, (double)ms / 1e3, 0.0);
    ev_timer_start(loop, &timer);
    ev_run(loop, EVRUN_ONCE);
    ev_timer_stop(loop, &timer);
}

/* SPDX-License-Identifier: MIT */
#include "tests/weir/host.h"

struct redis_proc *server;
struct ev_loop *loop;
struct weir_reactor *weir;
struct patience host_patience;

enum { TICK_MS = 2 };

static ev_timer tick;
static int ticks;

static void on_tick(struct ev_loop *on, ev_timer *timer, int events)
{
    (void)on;
    (void)timer;
    (void)events;
    ticks++;
}

struct weir_reactor *host_reactor(const struct weir_options *options)
{
    struct weir_options own = {0};
    struct weir_reactor *reactor = NULL;

    if (options != NULL)
        own = *options;
    own.loop = loop;
    own.redis_url = redis_url(server);
    EXPECT_INT(WEIR_OK, weir_reactor_open(&own, &reactor, NULL));
    return reactor;
}

void host_open_at(struct redis_proc *running,
                  const struct weir_options *options)
{
    server = running;
    loop = ev_loop_new(0);
    EXPECT_TRUE(loop != NULL);
    ev_timer_init(&tick, on_tick, TICK_MS / 1e3, TICK_MS / 1e3);
    ev_timer_start(loop, &tick);
    weir = host_reactor(options);
    test_at_end(host_close);
}

void host_open(const struct weir_options *options)
{
    host_open_at(redis_start(NULL), options);
}

void host_open_on(const struct redis_options *options)
{
    host_open_at(redis_start(options), NULL);
}

void host_close(void)
{
    if (loop == NULL)
        return;
    weir_reactor_free(weir);
    weir = NULL;
    ev_timer_stop(loop, &tick);
    ev_loop_destroy(loop);
    loop = NULL;
}

void host_turn(void)
{
    EXPECT_TRUE(!patience_ended(&host_patience));
    (void)ev_run(loop, EVRUN_ONCE);
}

void host_turns(int count)
{
    host_patience = patience_start(60.);
    while (count-- > 0)
        host_turn();
}

void host_pass(int ms)
{
    int end = ticks + ms / TICK_MS;

    AWAIT(ticks > end);
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "adapters/redis/store/port.h"
#include "adapters/weir/facade.h"

/* Servers for handlers: the reactor's own, or another one by its address. */

static int open_redis(struct weir_redis_source *port, const char *url,
                      struct weir_redis **ret_redis, char *error,
                      size_t error_cap)
{
    const struct weir__redis_source *source =
        (const struct weir__redis_source *)port; /* its first member */
    struct weir_reactor *reactor = source->reactor;
    const struct weir__redis_options redis = {
        .loop = reactor->loop,
        .worker = reactor->name,
        .seed = reactor->seed,
        .wait_ms = reactor->request_timeout_ms,
        .clock = weir__driver_clock,
        .log = &reactor->log,
    };
    const struct weir__redis_port_options options = {
        .store = &reactor->store,
        .url = url,
        .redis = &redis,
        .loop = reactor->loop,
        .depth = &reactor->depth,
        .calling = &reactor->calling,
        .share = source->share,
    };
    struct weir_error err;
    int rc = weir__redis_port_open(&options, ret_redis, &err);

    if (rc < 0)
        (void)snprintf(error, error_cap, "%s", err.text); /* cut */
    return rc;
}

void weir__facade_redis(struct weir__redis_source *source,
                        struct weir_reactor *reactor,
                        const struct weir_loop *share)
{
    source->port.open = open_redis;
    source->reactor = reactor;
    source->share = share;
}

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_PORT_H
#define WEIR_STORE_PORT_H

/* A handler's commands to a server: fills <weir/redis.h>, by the connections of
 * a store. */

#include <weir/redis.h>

#include "adapters/redis/redis.h"

struct weir_loop;

struct weir__redis_port_options {
    /* Whose connections are used; kept; NULL there: it is closed. */
    struct weir__store *const *store;
    /* Or an address, and how to open a store of the port's own: without url,
     * events and depth, borrowed. NULL: that store. */
    const char *url;
    const struct weir__redis_options *redis;
    struct ev_loop *loop; /* kept */
    int *depth;           /* its callbacks on the stack; kept, counted */
    /* Set to `share`, whose instance it is, while its callbacks run; kept. */
    const struct weir_loop *volatile *calling;
    const struct weir_loop *share;
};

/* WEIR_EINVAL (the address), WEIR_ENOMEM. */
int weir__redis_port_open(const struct weir__redis_port_options *options,
                          struct weir_redis **ret_redis,
                          struct weir_error *err);

#endif

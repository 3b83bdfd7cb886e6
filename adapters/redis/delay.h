/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_DELAY_H
#define WEIR_REDIS_DELAY_H

/* The store of `delay` topics on a Redis server: fills the port of
 * core/store.h over two connections, one for commands and one subscribed to
 * this worker's wake-up channel. The data model is in docs/packs.md. */

#include "adapters/redis/url.h"
#include "core/error.h"
#include "core/store.h"

struct ev_loop;

struct weir__delay_options {
    struct ev_loop *loop;              /* kept */
    const struct weir__redis_url *url; /* copied */
    const char *worker;                /* copied; name on the server */
    uint64_t seed;                     /* of back-off jitter */
    int64_t wait_ms; /* how long requests wait for a connection; 0: 10,000 */
    int64_t (*clock)(void *arg); /* monotonic ns, for claimed_ns */
    void *clock_arg;
    const struct weir__log *log;             /* kept */
    const struct weir__store_events *events; /* copied */
    void *arg;                               /* for events->connection */
    /* Counts the store's callbacks on the stack; kept; may be NULL. The store
     * must not be closed while it is not 0. */
    int *depth;
};

/* WEIR_ENOMEM. */
int weir__delay_open(const struct weir__delay_options *options,
                     struct weir__store **ret_store);

#endif

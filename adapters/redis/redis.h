/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_REDIS_H
#define WEIR_REDIS_REDIS_H

/* A store on a Redis server; it fills the port of core/store.h and keeps topics
 * of all kinds. */

#include "adapters/redis/url.h"
#include "core/error.h"
#include "core/store.h"

struct ev_loop;

struct weir__redis_options {
    struct ev_loop *loop;              /* kept */
    const struct weir__redis_url *url; /* copied */
    const char *worker;                /* copied; name on the server */
    uint64_t seed;                     /* of back-off jitter */
    int64_t wait_ms; /* how long requests wait for a connection; 0: 10,000 */
    int64_t (*clock)(void *arg); /* monotonic ns, for claimed_ns */
    void *clock_arg;
    const struct weir__log *log; /* kept */
    const struct weir__log
        *blocked_log;      /* kept; for the keeper's thread; may be
                                            NULL */
    int64_t block_warn_ms; /* a call that holds the loop for less is not logged
                              by the keeper */
    const struct weir__store_events *events; /* copied */
    void *arg;                               /* for events->connection */
    /* Counts the store's callbacks on the stack; kept; may be NULL. The store
     * must not be closed while it is not 0. */
    int *depth;
};

/* Open a store; its connection comes up, and stays up, by itself. WEIR_ENOMEM.
 */
int weir__redis_open(const struct weir__redis_options *options,
                     struct weir__store **ret_store);

/* Whether it looks like what the op `token` says. */
bool weir__token_is_sound(const char *token);

#endif

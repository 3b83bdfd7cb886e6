/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_PLACE_H
#define WEIR_STORE_PLACE_H

/* Which server a command is for. All keys of a topic are at one place, and one
 * server at a time serves it; what is sent to a place runs in that order. */

#include "adapters/redis/conn/conn.h"

struct weir__confirms;
struct weir__redis;
struct weir__request;

/* A server that keeps jobs, and the store's connections to it. */
struct weir__server {
    struct weir__redis *store;
    struct weir__conn *commands;
    struct weir__conn *wakes;
    uint64_t connection; /* number of the last one that stood, of all */
    bool is_up;          /* it stands */
    int64_t down_ns;     /* since when none does; 0: there was none */
    struct weir__confirms *confirms; /* NULL: nothing was to be confirmed */
};

struct weir__place {
    struct weir__server *server;
};

/* Send one command (see weir__conn_send); `request` may be NULL. Where that is
 * not possible the request is done a little later with the code. */
void weir__place_send(struct weir__place *place, struct weir__buf *bytes,
                      const struct weir__script *script, unsigned flags,
                      struct weir__request *request);

/* The same by another connection of the store. */
void weir__redis_send_by(struct weir__redis *store, struct weir__conn *conn,
                         struct weir__buf *bytes,
                         const struct weir__script *script, unsigned flags,
                         struct weir__request *request);

/* The same without a request, and with the codes of weir__conn_send. */
int weir__place_command(struct weir__place *place, struct weir__buf *bytes,
                        const struct weir__script *script, unsigned flags,
                        weir__reply_fn fn, void *arg);

/* Let what was sent leave, outside of a flush of the store. */
void weir__place_flush(struct weir__place *place);

/* Bytes of the commands that wait for its server or its answers. */
size_t weir__place_queued(const struct weir__place *place);

#endif

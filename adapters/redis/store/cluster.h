/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_CLUSTER_H
#define WEIR_STORE_CLUSTER_H

/* The servers of a store. Where the first one says that it is a node of a
 * cluster, a map of the cluster says which server has which slot. It is asked
 * for anew where a server names another one, where one is lost, and each
 * minute: one question at a time, 100 ms apart, 1 s where there was no answer,
 * of whichever server answers. What one tells of others may be old: a place
 * leaves a server that is there for one that says itself that it has the slot.
 * The address that was given stays connected: it is there to be asked when all
 * others are gone. Where it has several hosts they are tried in turn until one
 * tells the map. When no server that there is a connection to answers within
 * 1 s, the other nodes of the map are tried in turn, and then the hosts. */

#include "adapters/redis/cluster/redirect.h"
#include "adapters/redis/store/place.h"

struct weir__cluster_map;

enum { WEIR__CLUSTER_WAIT_MS = 30000 }; /* a failover may take that long */

/* WEIR_ENOMEM. The first server exists, and is not connected to. */
int weir__cluster_init(struct weir__redis *store);
void weir__cluster_fini(struct weir__redis *store);

/* Where to connect to. */
const struct weir__redis_host *
weir__cluster_host_of(const struct weir__server *server);

/* Who has the slot, as far as is known; connected to now if it was not. NULL:
 * nobody, or out of memory. */
struct weir__server *weir__cluster_server(struct weir__redis *store,
                                          uint16_t slot);

/* It is a cluster, with several servers perhaps. */
bool weir__cluster_is_one(const struct weir__redis *store);

/* Borrowed until the loop's next turn; NULL: it is none. */
struct weir__cluster_map *weir__cluster_map_of(const struct weir__redis *store);

/* The last one that was asked said that the user may not. */
bool weir__cluster_is_denied(const struct weir__redis *store);

/* A server redirected a command: so it is a cluster. */
void weir__cluster_redirected(struct weir__server *server,
                              const struct weir__redirect *redirect);

/* Something was not where it was looked for: ask anew. */
void weir__cluster_ask(struct weir__redis *store);

/* Its connection was lost, or stands. */
void weir__cluster_lost(struct weir__server *server);

/* It answers nothing, and a place leaves it: where it has no slot any more it
 * may be an old primary that hears nothing, and is not waited for. */
void weir__cluster_abandon(struct weir__server *server);

/* What the handshake was told: `on_slots` of the connections. */
const char *weir__cluster_slots(const struct redisReply *reply, void *arg);

/* Each minute: a server that has had no place for that long is closed. */
void weir__cluster_end_spare(struct weir__redis *store);

/* Places are not settled: look at them every 20 ms. */
void weir__cluster_tick_soon(struct weir__redis *store);

#endif

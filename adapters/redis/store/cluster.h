/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_CLUSTER_H
#define WEIR_STORE_CLUSTER_H

/* The servers of a store. Where the first one says that it is a node of a
 * cluster, a map of the cluster says which server has which slot. It is asked
 * for anew where a server names another one, where one is lost, and each
 * minute: one question at a time, 100 ms apart, 1 s where there was no answer,
 * of whichever server answers. The address that was given stays connected: it
 * is there to be asked when all others are gone. Where it has several hosts
 * they are tried in turn until one tells the map, and again when no server that
 * is known answers. */

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

/* A server redirected a command. */
void weir__cluster_redirected(struct weir__server *server,
                              const struct weir__redirect *redirect);

/* Its connection was lost, or stands. */
void weir__cluster_lost(struct weir__server *server);

/* What the handshake was told: `on_slots` of the connections. */
const char *weir__cluster_slots(const struct redisReply *reply, void *arg);

/* Places are not settled: look at them every 20 ms. */
void weir__cluster_tick_soon(struct weir__redis *store);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLUSTER_MAP_H
#define WEIR_CLUSTER_MAP_H

/* Which node of a cluster has which slots, as one of them tells it. A map does
 * not change: news are another one. It is shared by references, also between
 * threads, and says nothing of connections.
 *
 * A slot has no node where none was told, or one whose address nobody knows. */

#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/url.h"

struct redisReply;
struct weir__cluster_map;

enum {
    WEIR__CLUSTER_NODES_MAX = 1024,
    WEIR__CLUSTER_ID_MAX = 40,
    WEIR__CLUSTER_IP_MAX = 45
};

/* A primary that has slots. */
struct weir__cluster_node {
    struct weir__redis_host host; /* where it is to be asked */
    /* The address of a host that is a name; "": not told, look it up. */
    char ip[WEIR__CLUSTER_IP_MAX + 1];
    char id[WEIR__CLUSTER_ID_MAX + 1]; /* "": not told */
};

/* Read an answer to CLUSTER SLOTS, also an error, of the node that was asked at
 * `asked` (see endpoint.h). The caller gets a reference: to `known`, which may
 * be NULL, where nothing changed since. WEIR_ESERVER: the answer is wrong, and
 * one sentence in `err` says why; WEIR_ENOMEM. */
int weir__cluster_map_read(const struct redisReply *reply,
                           const struct weir__redis_host *asked,
                           struct weir__cluster_map *known,
                           struct weir__cluster_map **ret_map,
                           struct weir_error *err);

/* The same map, but for one slot, which is at `host`: so a node says with
 * MOVED. The caller gets a reference: to `map` where it says so already.
 * WEIR_EFULL: it has too many nodes; WEIR_ENOMEM. */
int weir__cluster_map_with(struct weir__cluster_map *map, uint16_t slot,
                           const struct weir__redis_host *host,
                           struct weir__cluster_map **ret_map);

struct weir__cluster_map *weir__cluster_map_ref(struct weir__cluster_map *map);

/* NULL is fine. */
void weir__cluster_map_unref(struct weir__cluster_map *map);

/* Borrowed from the map; NULL: the slot has no node. */
const struct weir__cluster_node *
weir__cluster_map_find(const struct weir__cluster_map *map, uint16_t slot);

/* Its nodes, sorted by address; `index` is below the count. */
size_t weir__cluster_map_count(const struct weir__cluster_map *map);
const struct weir__cluster_node *
weir__cluster_map_node(const struct weir__cluster_map *map, size_t index);

/* One of its nodes is there. */
bool weir__cluster_map_names(const struct weir__cluster_map *map,
                             const struct weir__redis_host *host);

/* How many slots have a node. */
size_t weir__cluster_map_covered(const struct weir__cluster_map *map);

/* Whether the slot is at another address than before, or at none any more. */
bool weir__cluster_map_has_moved(const struct weir__cluster_map *before,
                                 const struct weir__cluster_map *now,
                                 uint16_t slot);

/* Asserts what holds of every map. */
void weir__cluster_map_check(const struct weir__cluster_map *map);

#endif

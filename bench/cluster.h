/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_CLUSTER_H
#define WEIR_BENCH_CLUSTER_H

/* Servers as nodes of a cluster. Everything BLOCKS; `err` holds the
 * sentence. */

#include "adapters/redis/cluster/map.h"
#include "bench/server.h"

/* What the server at `host` says of slots: the caller gets a reference, or NULL
 * where the server is no node of a cluster. WEIR_ESERVER: some slots are with
 * nobody. */
int bench_cluster_read(struct redisContext *control,
                       const struct weir__redis_host *host,
                       struct weir__cluster_map **ret_map,
                       struct weir_error *err);

/* Make a cluster of our own servers, the slots spread evenly. */
int bench_cluster_form(struct bench_server *server, struct weir_error *err);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SPREAD_FIXTURE_H
#define WEIR_TEST_SPREAD_FIXTURE_H

/* Stores on a cluster of three primaries, that are given the address of the
 * first node, and topics of which it is known where they lie. */

#include "tests/harness/cluster_proc.h"
#include "tests/redis/store/store_fixture.h"

enum { SPREAD_NODES = 3 };

extern struct cluster_proc *spread;

/* Slots without a server are no matter to the others. Ends with the test. */
void spread_start(const struct cluster_options *options);

/* A topic of kind delay at the node, the `nth` from 0 on. The host listens to
 * it beside those that it has, and works with it. */
struct weir__store_topic *spread_open(struct host *host, int node, int nth);

/* The same of another kind. */
struct weir__store_topic *spread_open_kind(struct host *host, const char *kind,
                                           int node, int nth);

/* What a node answers. */
#define spread_text(node, ...) \
    redis_text(cluster_node(spread, node), __VA_ARGS__)
#define spread_int(node, ...) redis_int(cluster_node(spread, node), __VA_ARGS__)

#endif

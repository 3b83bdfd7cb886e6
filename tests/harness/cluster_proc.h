/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_CLUSTER_PROC_H
#define WEIR_TEST_CLUSTER_PROC_H

/* A cluster for one test: nodes as redis_proc has servers, on ports of
 * 127.0.0.1, with a node timeout of 2 s and the slots spread evenly. Nodes have
 * numbers: the primaries from 0 on, behind them the first replica of each, then
 * the second of each, then those that were added. No replica is elected unless
 * a test awaits an election: a primary may be without a CPU for 2 s.
 *
 * Everything here BLOCKS and ends the test with a sentence when it fails. */

#include <weir/weir.h>

#include "adapters/redis/cluster/map.h"
#include "tests/harness/redis_proc.h"

struct cluster_proc;
struct redisReply;

/* Zeroed or NULL: three primaries without replicas. */
struct cluster_options {
    int primaries;
    int replicas;         /* of each */
    bool appendonly;      /* data survives a restart */
    const char *endpoint; /* cluster-preferred-endpoint-type, from 7.0 on; nodes
                             announce the name "localhost" then; kept */
};

/* Start and wait until all nodes agree. Ends with the test. */
struct cluster_proc *cluster_start(const struct cluster_options *options);

/* --- facts --------------------------------------------------------------- */

struct redis_proc *cluster_node(const struct cluster_proc *cluster, int node);
int cluster_count(const struct cluster_proc *cluster); /* of nodes, all */
const char *cluster_id(const struct cluster_proc *cluster, int node);

/* 127.0.0.1 and its port. */
struct weir__redis_host cluster_host(const struct cluster_proc *cluster,
                                     int node);

/* redis://127.0.0.1:PORT,..., of all nodes that run. Valid until the next
 * one. */
const char *cluster_url(struct cluster_proc *cluster);

/* What all nodes that run say of slots: a reference; NULL: they do not
 * agree. */
struct weir__cluster_map *cluster_map(struct cluster_proc *cluster);

/* Who has the slot in that map; -1: nobody, or there is none. */
int cluster_owner(struct cluster_proc *cluster, uint16_t slot);

/* The state that the node itself tells is "ok". */
bool cluster_is_ok(struct cluster_proc *cluster, int node);

/* A name of a topic whose slot the node has: "t1", "t2", ... of these the
 * `nth`, from 0 on. */
void cluster_topic(struct cluster_proc *cluster, int node, int nth,
                   char name[WEIR_MAX_TOPIC + 1]);

/* A command to one node, words ended by NULL; released with freeReplyObject. */
struct redisReply *cluster_ask(struct cluster_proc *cluster, int node,
                               const char **words);

/* --- faults -------------------------------------------------------------- */

/* Until it is started again, on its port and with its data. */
void cluster_kill(struct cluster_proc *cluster, int node);
void cluster_restart(struct cluster_proc *cluster, int node);

/* SIGSTOP and SIGCONT. */
void cluster_pause(struct cluster_proc *cluster, int node);
void cluster_resume(struct cluster_proc *cluster, int node);

/* Wait until all nodes that run agree on who has which slot, all slots are with
 * one of these, and each says that the cluster is ok. */
void cluster_await(struct cluster_proc *cluster);

/* Allow elections and wait until one has given the slot to another node than
 * `old`, and for the above; returns which. */
int cluster_await_promoted(struct cluster_proc *cluster, int old,
                           uint16_t slot);

/* A replica of a primary that was killed or paused takes over without an
 * election, and the nodes that run agree. */
void cluster_take_over(struct cluster_proc *cluster, int replica);

/* A replica takes over from its primary, which lives on. */
void cluster_fail_over(struct cluster_proc *cluster, int replica);

/* --- slots --------------------------------------------------------------- */

/* The steps of a move, and all three of them. After the first one the slot is
 * open until the last one. */
void cluster_open_slot(struct cluster_proc *cluster, uint16_t slot, int to);
void cluster_move_keys(struct cluster_proc *cluster, uint16_t slot, int to);
void cluster_close_slot(struct cluster_proc *cluster, uint16_t slot, int to);
void cluster_move_slot(struct cluster_proc *cluster, uint16_t slot, int to);

/* Move one key of an open slot. */
void cluster_move_key(struct cluster_proc *cluster, const char *key, int to);

/* --- nodes --------------------------------------------------------------- */

/* One more, without slots; returns its number. */
int cluster_add(struct cluster_proc *cluster);

/* One without slots is none of the cluster any more, and is stopped. */
void cluster_forget(struct cluster_proc *cluster, int node);

#endif

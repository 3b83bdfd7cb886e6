/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_NODES_H
#define WEIR_WEB_NODES_H

/* What the server says of itself, or each primary of its cluster: a thread asks
 * INFO on connections of its own, which may block. It does so when somebody
 * looks, and not again within 5 s. */

#include <weir/base.h>

struct weir__nodes;

struct weir__node {
    char name[280]; /* "10.0.0.7:6379", "unix:/run/redis.sock" */
    bool is_up;
    bool is_primary;
    char why[200];    /* it is not up, or its cluster is not known; or "" */
    char version[48]; /* "redis 7.0.15" */
    uint64_t replicas, clients;
    uint64_t memory_bytes, memory_max_bytes; /* maximum 0: none is set */
    /* How many bytes of changes the last of its replicas is behind; 0 where
     * there are none. */
    uint64_t behind_bytes;
    int64_t evicted; /* keys that the server dropped for want of memory */
};

/* `url` is copied. WEIR_ENOMEM, WEIR_ESYSTEM. */
int weir__nodes_open(const char *url, struct weir__nodes **ret_nodes);

/* BLOCKS until the thread has its answer, 1 s for each host that is silent.
 * NULL is fine. */
void weir__nodes_close(struct weir__nodes *nodes);

/* What was found last, and have it found again when it is older than 5 s: the
 * caller frees `*ret_list` with weir__mem_free. 0 before the first answer,
 * which nobody waits for, and without memory. */
size_t weir__nodes_list(struct weir__nodes *nodes,
                        struct weir__node **ret_list);

#endif

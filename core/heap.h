/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HEAP_H
#define WEIR_HEAP_H

/* Deadlines: a binary min-heap of nodes that are embedded in what has the
 * deadline. The heap owns its array and never the nodes: an owner removes its
 * node before it goes. Knows no clock. Equal deadlines leave in the order in
 * which they were set. A zeroed heap is empty, a zeroed node is in no heap. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Written by the heap only; `at_ns` may be read while the node is in it. */
struct weir__heap_node {
    int64_t at_ns;
    uint64_t order; /* breaks ties */
    size_t slot;    /* place in the heap, from 1; 0: in none */
};

struct weir__heap {
    struct weir__heap_node **nodes;
    size_t len;
    size_t cap;
    uint64_t next_order;
};

/* Release the array; nodes still in it are told that they are out. */
void weir__heap_fini(struct weir__heap *heap);

static inline bool weir__heap_has(const struct weir__heap_node *node)
{
    return node->slot != 0;
}

/* Make room for `count` nodes: as many pushes then cannot fail. WEIR_ENOMEM. */
int weir__heap_reserve(struct weir__heap *heap, size_t count);

/* Keeps `node`, which is in no heap, until it is popped or removed.
 * WEIR_ENOMEM. O(log n), as the three below. */
int weir__heap_push(struct weir__heap *heap, struct weir__heap_node *node,
                    int64_t at_ns);

/* Take out the earliest; NULL when there is none. */
struct weir__heap_node *weir__heap_pop(struct weir__heap *heap);

/* Take out a node of this heap. */
void weir__heap_remove(struct weir__heap *heap, struct weir__heap_node *node);

/* Move a node of this heap to another deadline, behind those that have it
 * already. Cannot fail. */
void weir__heap_update(struct weir__heap *heap, struct weir__heap_node *node,
                       int64_t at_ns);

/* Look at the earliest; NULL when there is none. */
struct weir__heap_node *weir__heap_first(const struct weir__heap *heap);

/* Assert the order of the whole heap. */
void weir__heap_check(const struct weir__heap *heap);

#endif

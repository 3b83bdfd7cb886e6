/* SPDX-License-Identifier: MIT */
#include "core/heap.h"

#include <weir/base.h>

#include "core/assert.h"
#include "core/mem.h"

enum { HEAP_FIRST_CAP = 16 };

static bool before(const struct weir__heap_node *one,
                   const struct weir__heap_node *other)
{
    if (one->at_ns != other->at_ns)
        return one->at_ns < other->at_ns;
    return one->order < other->order;
}

static void put(struct weir__heap *heap, struct weir__heap_node *node,
                size_t slot)
{
    WEIR_ASSERT(slot >= 1 && slot <= heap->len);
    heap->nodes[slot - 1] = node;
    node->slot = slot;
}

static struct weir__heap_node *at(const struct weir__heap *heap, size_t slot)
{
    return heap->nodes[slot - 1];
}

/* Both move a hole and write the node once, where the hole ends. */
static void sift_up(struct weir__heap *heap, struct weir__heap_node *node,
                    size_t hole)
{
    while (hole > 1 && before(node, at(heap, hole / 2))) {
        put(heap, at(heap, hole / 2), hole);
        hole /= 2;
    }
    put(heap, node, hole);
}

static void sift_down(struct weir__heap *heap, struct weir__heap_node *node,
                      size_t hole)
{
    while (hole <= heap->len / 2) {
        size_t child = hole * 2;

        if (child < heap->len && before(at(heap, child + 1), at(heap, child)))
            child++;
        if (before(node, at(heap, child)))
            break;
        put(heap, at(heap, child), hole);
        hole = child;
    }
    put(heap, node, hole);
}

static void sift(struct weir__heap *heap, struct weir__heap_node *node,
                 size_t hole)
{
    if (hole > 1 && before(node, at(heap, hole / 2)))
        sift_up(heap, node, hole);
    else
        sift_down(heap, node, hole);
}

static bool is_in(const struct weir__heap *heap,
                  const struct weir__heap_node *node)
{
    return node->slot >= 1 && node->slot <= heap->len &&
           at(heap, node->slot) == node;
}

void weir__heap_fini(struct weir__heap *heap)
{
    for (size_t i = 0; i < heap->len; i++)
        heap->nodes[i]->slot = 0;
    weir__mem_free(heap->nodes);
    *heap = (struct weir__heap){0};
}

int weir__heap_reserve(struct weir__heap *heap, size_t count)
{
    size_t cap = heap->cap == 0 ? HEAP_FIRST_CAP : heap->cap;
    struct weir__heap_node **nodes;

    if (count <= heap->cap)
        return WEIR_OK;
    while (cap < count)
        cap *= 2;
    nodes = weir__mem_grow(heap->nodes, cap, sizeof(struct weir__heap_node *));
    if (nodes == NULL)
        return WEIR_ENOMEM;
    heap->nodes = nodes;
    heap->cap = cap;
    return WEIR_OK;
}

int weir__heap_push(struct weir__heap *heap, struct weir__heap_node *node,
                    int64_t at_ns)
{
    int rc = weir__heap_reserve(heap, heap->len + 1);

    WEIR_ASSERT(node->slot == 0);
    if (rc < 0)
        return rc;
    node->at_ns = at_ns;
    node->order = heap->next_order++;
    heap->len++;
    sift_up(heap, node, heap->len);
    return WEIR_OK;
}

struct weir__heap_node *weir__heap_pop(struct weir__heap *heap)
{
    struct weir__heap_node *node = weir__heap_first(heap);

    if (node != NULL)
        weir__heap_remove(heap, node);
    return node;
}

void weir__heap_remove(struct weir__heap *heap, struct weir__heap_node *node)
{
    struct weir__heap_node *last;
    size_t hole = node->slot;

    WEIR_ASSERT(is_in(heap, node));
    last = at(heap, heap->len);
    heap->len--;
    node->slot = 0;
    if (last != node)
        sift(heap, last, hole);
}

void weir__heap_update(struct weir__heap *heap, struct weir__heap_node *node,
                       int64_t at_ns)
{
    WEIR_ASSERT(is_in(heap, node));
    node->at_ns = at_ns;
    node->order = heap->next_order++;
    sift(heap, node, node->slot);
}

struct weir__heap_node *weir__heap_first(const struct weir__heap *heap)
{
    return heap->len == 0 ? NULL : at(heap, 1);
}

void weir__heap_check(const struct weir__heap *heap)
{
    WEIR_ASSERT(heap->len <= heap->cap);
    for (size_t slot = 1; slot <= heap->len; slot++) {
        WEIR_ASSERT(at(heap, slot)->slot == slot);
        WEIR_ASSERT(at(heap, slot)->order < heap->next_order);
        WEIR_ASSERT(slot == 1 || before(at(heap, slot / 2), at(heap, slot)));
    }
}

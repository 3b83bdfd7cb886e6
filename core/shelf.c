/* SPDX-License-Identifier: MIT */
#include "core/shelf.h"

#include <stdint.h>

#include "core/assert.h"
#include "core/mem.h"

/* Sizes are rounded up to this, so that blocks of about one size fit. */
enum { GRAIN = 8192 };

static void *pick(struct weir__shelf *shelf, size_t at, size_t *size)
{
    void *block = shelf->kept[at].block;

    *size = shelf->kept[at].size;
    shelf->kept[at] = shelf->kept[--shelf->count];
    return block;
}

/* The newest that fits is the warmest; what is much larger stays. */
void *weir__shelf_take(struct weir__shelf *shelf, size_t *size)
{
    size_t want = *size;

    for (size_t at = shelf->count; at > 0; at--) {
        size_t has = shelf->kept[at - 1].size;

        if (has >= want && has / 4 <= want)
            return pick(shelf, at - 1, size);
    }
    if (want > SIZE_MAX - GRAIN)
        return NULL;
    *size = (want + GRAIN - 1) / GRAIN * GRAIN;
    return weir__mem_grow(NULL, *size, 1);
}

void weir__shelf_put(struct weir__shelf *shelf, void *block, size_t size)
{
    WEIR_ASSERT(block != NULL);
    if (size > WEIR__SHELF_BYTES) {
        weir__mem_free(block);
        return;
    }
    if (shelf->count == WEIR__SHELF_BLOCKS) { /* the oldest goes */
        weir__mem_free(shelf->kept[0].block);
        shelf->kept[0] = shelf->kept[--shelf->count];
    }
    shelf->kept[shelf->count].block = block;
    shelf->kept[shelf->count].size = size;
    shelf->count++;
}

void weir__shelf_fini(struct weir__shelf *shelf)
{
    for (size_t at = 0; at < shelf->count; at++)
        weir__mem_free(shelf->kept[at].block);
    shelf->count = 0;
}

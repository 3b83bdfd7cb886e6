/* SPDX-License-Identifier: MIT */
#include "core/block_cache.h"

#include <stdint.h>

#include "core/assert.h"
#include "core/mem.h"

/* Sizes are rounded up to this, so that blocks of about one size fit. */
enum { GRAIN = 8192 };

static void *pick(struct weir__block_cache *cache, size_t at, size_t *size)
{
    void *block = cache->kept[at].block;

    *size = cache->kept[at].size;
    cache->kept[at] = cache->kept[--cache->count];
    return block;
}

/* The newest that fits is the warmest; what is much larger stays. */
void *weir__block_cache_take(struct weir__block_cache *cache, size_t *size)
{
    size_t want = *size;

    for (size_t at = cache->count; at > 0; at--) {
        size_t has = cache->kept[at - 1].size;

        if (has >= want && has / 4 <= want)
            return pick(cache, at - 1, size);
    }
    if (want > SIZE_MAX - GRAIN)
        return NULL;
    *size = (want + GRAIN - 1) / GRAIN * GRAIN;
    return weir__mem_grow(NULL, *size, 1);
}

void weir__block_cache_put(struct weir__block_cache *cache, void *block,
                           size_t size)
{
    WEIR_ASSERT(block != NULL);
    if (size > WEIR__CACHE_BYTES) {
        weir__mem_free(block);
        return;
    }
    if (cache->count == WEIR__CACHE_BLOCKS) { /* the oldest goes */
        weir__mem_free(cache->kept[0].block);
        cache->kept[0] = cache->kept[--cache->count];
    }
    cache->kept[cache->count].block = block;
    cache->kept[cache->count].size = size;
    cache->count++;
}

void weir__block_cache_fini(struct weir__block_cache *cache)
{
    for (size_t at = 0; at < cache->count; at++)
        weir__mem_free(cache->kept[at].block);
    cache->count = 0;
}

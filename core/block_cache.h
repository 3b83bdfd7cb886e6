/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BLOCK_CACHE_H
#define WEIR_BLOCK_CACHE_H

/* A few freed blocks, kept for the next that are wanted. The C library gives
 * large ones back to the system at once, and each page of the next one is a
 * fault again. */

#include <stddef.h>

enum {
    WEIR__CACHE_BLOCKS = 8,
    WEIR__CACHE_BYTES = 512 * 1024 /* of one block: larger ones are freed */
};

/* Zeroed: empty. */
struct weir__block_cache {
    struct {
        void *block;
        size_t size;
    } kept[WEIR__CACHE_BLOCKS];
    size_t count;
};

/* A block of at least `*size` bytes, which becomes its true size; what is in it
 * is not defined. NULL when out of memory. */
void *weir__block_cache_take(struct weir__block_cache *cache, size_t *size);

/* Takes the block, which has that size. */
void weir__block_cache_put(struct weir__block_cache *cache, void *block,
                           size_t size);

/* Frees what is kept. */
void weir__block_cache_fini(struct weir__block_cache *cache);

#endif

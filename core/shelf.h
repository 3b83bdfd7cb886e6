/* SPDX-License-Identifier: MIT */
#ifndef WEIR_SHELF_H
#define WEIR_SHELF_H

/* A few freed blocks, kept for the next that are wanted. The C library gives
 * large ones back to the system at once, and each page of the next one is a
 * fault again. */

#include <stddef.h>

enum {
    WEIR__SHELF_BLOCKS = 8,
    WEIR__SHELF_BYTES = 512 * 1024 /* of one block: larger ones are freed */
};

/* Zeroed: empty. */
struct weir__shelf {
    struct {
        void *block;
        size_t size;
    } kept[WEIR__SHELF_BLOCKS];
    size_t count;
};

/* A block of at least `*size` bytes, which becomes its true size; what is in it
 * is not defined. NULL when out of memory. */
void *weir__shelf_take(struct weir__shelf *shelf, size_t *size);

/* Takes the block, which has that size. */
void weir__shelf_put(struct weir__shelf *shelf, void *block, size_t size);

/* Frees what is kept. */
void weir__shelf_fini(struct weir__shelf *shelf);

#endif

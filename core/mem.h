/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MEM_H
#define WEIR_MEM_H

/* The only door to the heap for weir's own memory: the allocation-failure
 * tests replace these three at link time. Third-party code allocates on its
 * own. */

#include <stddef.h>

/* NULL when out of memory; the bytes are zero. `size` 0 counts as 1. */
void *weir__mem_new(size_t size);

/* Make room for `count` elements of `size` bytes. Takes `ptr` on success; on
 * failure (also overflow) returns NULL and `ptr` stays valid. */
void *weir__mem_grow(void *ptr, size_t count, size_t size);

/* NULL is fine. */
void weir__mem_free(void *ptr);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_BYTES_H
#define WEIR_TEST_BYTES_H

/* Literal bytes as slices, and copies in blocks of exactly their size, so that
 * a sanitizer sees a read beyond the end. */

#include <string.h>

#include "core/mem.h"
#include "core/text.h"

/* The bytes of a string literal, zeros included, without its NUL. */
#define BYTES(literal) weir__slice_of(literal, sizeof(literal) - 1)

/* A copy, released with weir__mem_free. */
static inline uint8_t *exact_copy(struct weir_slice bytes)
{
    uint8_t *copy = weir__mem_new(bytes.len);

    if (copy != NULL && bytes.len > 0)
        memcpy(copy, bytes.ptr, bytes.len);
    return copy;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "core/mem.h"

#include <stdint.h>
#include <stdlib.h>

void *weir__mem_new(size_t size)
{
    return calloc(1, size == 0 ? 1 : size);
}

void *weir__mem_grow(void *ptr, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    return realloc(ptr, count * size == 0 ? 1 : count * size);
}

void weir__mem_free(void *ptr)
{
    free(ptr);
}

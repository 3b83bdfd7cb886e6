/* SPDX-License-Identifier: MIT */
#include "tests/harness/oom.h"

#include <stdbool.h>

#include "core/mem.h"

/* The names are the linker's: --wrap leads calls of f to __wrap_f and calls of
 * __real_f to f. */
void *__wrap_weir__mem_new(size_t size);
void *__real_weir__mem_new(size_t size);
void *__wrap_weir__mem_grow(void *ptr, size_t count, size_t size);
void *__real_weir__mem_grow(void *ptr, size_t count, size_t size);

static bool is_on;
static int left; /* allocations that still succeed */

void oom_after(int count)
{
    is_on = true;
    left = count;
}

void oom_off(void)
{
    is_on = false;
}

static bool fails(void)
{
    return is_on && left-- <= 0;
}

void *__wrap_weir__mem_new(size_t size)
{
    return fails() ? NULL : __real_weir__mem_new(size);
}

void *__wrap_weir__mem_grow(void *ptr, size_t count, size_t size)
{
    return fails() ? NULL : __real_weir__mem_grow(ptr, count, size);
}

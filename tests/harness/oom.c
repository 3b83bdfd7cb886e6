/* SPDX-License-Identifier: MIT */
#include "tests/harness/oom.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "core/mem.h"

/* The names are the linker's: --wrap leads calls of f to __wrap_f and calls of
 * __real_f to f. */
void *__wrap_weir__mem_new(size_t size);
void *__real_weir__mem_new(size_t size);
void *__wrap_weir__mem_grow(void *ptr, size_t count, size_t size);
void *__real_weir__mem_grow(void *ptr, size_t count, size_t size);

/* Of all threads. */
static atomic_bool is_on, is_once;
static atomic_int left; /* allocations that still succeed */

static void begin(int count, bool once)
{
    atomic_store(&left, count);
    atomic_store(&is_once, once);
    atomic_store(&is_on, true);
}

void oom_after(int count)
{
    begin(count, false);
}

void oom_once_after(int count)
{
    begin(count, true);
}

void oom_off(void)
{
    atomic_store(&is_on, false);
}

static bool fails(void)
{
    int before;

    if (!atomic_load(&is_on))
        return false;
    before = atomic_fetch_sub(&left, 1);
    return before == 0 || (before < 0 && !atomic_load(&is_once));
}

void *__wrap_weir__mem_new(size_t size)
{
    return fails() ? NULL : __real_weir__mem_new(size);
}

void *__wrap_weir__mem_grow(void *ptr, size_t count, size_t size)
{
    return fails() ? NULL : __real_weir__mem_grow(ptr, count, size);
}

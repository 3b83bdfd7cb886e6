/* SPDX-License-Identifier: MIT */
#include "adapters/ev/fork.h"

#include <pthread.h>
#include <stdatomic.h>

/* The count belongs to the process, not to a reactor: fork copies the count,
 * and only the child of a fork writes it. getpid() would be a call of the
 * kernel for each add, and process ids come again. */
static atomic_uint forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_child(void)
{
    (void)atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, on_child); /* else forks are not seen */
}

unsigned weir__forks(void)
{
    (void)pthread_once(&once, watch); /* cannot fail */
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_MONOTONIC_H
#define WEIR_REDIS_MONOTONIC_H

/* The time since some moment in the past, whatever becomes of the date. */

#include <stdint.h>
#include <time.h>

static inline int64_t weir__monotonic_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* this clock is there */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t weir__monotonic_ms(void)
{
    return weir__monotonic_ns() / 1000000;
}

#endif

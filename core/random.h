/* SPDX-License-Identifier: MIT */
#ifndef WEIR_RANDOM_H
#define WEIR_RANDOM_H

/* Seeded random numbers for jitter and names: splitmix64 (Steele, Lea and
 * Flood, "Fast splittable pseudorandom number generators", 2014). Not for
 * secrets. The state belongs to the caller; equal seeds repeat. */

#include <stdint.h>

static inline uint64_t weir__random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif

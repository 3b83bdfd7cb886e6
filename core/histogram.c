/* SPDX-License-Identifier: MIT */
#include "core/histogram.h"

#include "core/assert.h"

/* A bucket's number is the position of a value's highest bit and the two bits
 * below it; the values below 4 have no such bits and are their own buckets. */

static size_t highest_bit(uint64_t value)
{
    size_t bit = 0;

    for (size_t step = 32; step > 0; step /= 2) {
        if (value >> step == 0)
            continue;
        value >>= step;
        bit += step;
    }
    return bit;
}

size_t weir__bucket_of(int64_t us)
{
    uint64_t value = us < 0 ? 0 : (uint64_t)us;
    size_t bit, bucket;

    if (value < 4)
        return (size_t)value;
    bit = highest_bit(value);
    bucket = (bit - 1) * 4 + (size_t)(value >> (bit - 2) & 3);
    return bucket < WEIR__BUCKETS ? bucket : WEIR__BUCKETS - 1;
}

int64_t weir__bucket_top_us(size_t bucket)
{
    WEIR_ASSERT(bucket < WEIR__BUCKETS);
    if (bucket < 4)
        return (int64_t)bucket;
    return ((int64_t)(bucket % 4 + 5) << (bucket / 4 - 1)) - 1;
}

int64_t weir__bucket_quantile_us(const uint64_t counts[WEIR__BUCKETS],
                                 unsigned permille)
{
    uint64_t total = 0, rank, seen = 0;
    size_t bucket = 0;

    WEIR_ASSERT(permille <= 1000);
    for (size_t i = 0; i < WEIR__BUCKETS; i++)
        total += counts[i];
    if (total == 0)
        return -1;
    /* total * permille / 1000, rounded up, without overflow */
    rank = total / 1000 * permille + (total % 1000 * permille + 999) / 1000;
    if (rank == 0)
        rank = 1;
    for (; bucket < WEIR__BUCKETS - 1; bucket++) {
        seen += counts[bucket];
        if (seen >= rank)
            break;
    }
    return weir__bucket_top_us(bucket);
}

/* SPDX-License-Identifier: MIT */
#include "bench/numbers.h"

#include "core/assert.h"

#include <math.h>
#include <stdlib.h>

static int order_doubles(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static int order_integers(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return (one > other) - (one < other);
}

double bench_median(double *values, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[kept++] = values[i];
    if (kept == 0)
        return (double)NAN;
    qsort(values, kept, sizeof(values[0]), order_doubles);
    if (kept % 2 == 1)
        return values[kept / 2];
    return (values[kept / 2 - 1] + values[kept / 2]) / 2;
}

void bench_sort(int64_t *values, size_t count)
{
    if (count > 0)
        qsort(values, count, sizeof(values[0]), order_integers);
}

int64_t bench_percentile(const int64_t *sorted, size_t count, double percent)
{
    double rank = ceil((double)count * percent / 100.0);

    WEIR_ASSERT(count > 0 && percent >= 0 && percent <= 100);
    return sorted[rank < 1.0 ? 0 : (size_t)rank - 1];
}

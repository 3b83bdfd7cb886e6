/* SPDX-License-Identifier: MIT */
#include "bench/stamps.h"

#include "bench/numbers.h"
#include "core/error.h"

#include <stdlib.h>

int bench_stamps_read(const struct bench_team *team, int64_t per_ms,
                      struct bench_row *row, struct weir_error *err)
{
    static const struct {
        enum bench_figure figure;
        double percent;
    } points[] = {{BENCH_p50_ms, 50},
                  {BENCH_p90_ms, 90},
                  {BENCH_p99_ms, 99},
                  {BENCH_max_ms, 100}};
    size_t jobs = (size_t)team->arena->tally->jobs, count = 0;
    int64_t *values = calloc(jobs, sizeof(values[0])), early = 0;

    if (values == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    for (size_t i = 0; i < jobs; i++) {
        int64_t value = atomic_load(&team->arena->stamp[i]);

        if (value != BENCH_NO_STAMP)
            values[count++] = value;
        early += value != BENCH_NO_STAMP && value < 0;
    }
    bench_sort(values, count);
    for (size_t i = 0; i < 4 && count > 0; i++)
        row->figure[points[i].figure] =
            (double)bench_percentile(values, count, points[i].percent) /
            (double)per_ms;
    row->figure[BENCH_early] = (double)early;
    row->figure[BENCH_measured] = (double)count;
    free(values);
    return WEIR_OK;
}

/* SPDX-License-Identifier: MIT */
#include "bench/tally.h"

#include "core/assert.h"

size_t bench_tally_size(int64_t jobs)
{
    WEIR_ASSERT(jobs >= 0);
    return sizeof(struct bench_tally) + (size_t)jobs;
}

struct bench_tally *bench_tally_init(void *memory, int64_t jobs)
{
    struct bench_tally *tally = memory;

    tally->jobs = jobs;
    return tally;
}

bool bench_tally_mark(struct bench_tally *tally, int64_t number)
{
    uint8_t before = 0;

    if (number < 0 || number >= tally->jobs) {
        atomic_fetch_add(&tally->foreign, 1);
        return false;
    }
    while (before < UINT8_MAX &&
           !atomic_compare_exchange_weak_explicit(
               &tally->runs[number], &before, (uint8_t)(before + 1),
               memory_order_relaxed, memory_order_relaxed))
        ; /* another process counted */
    return before == 0;
}

int64_t bench_tally_lost(const struct bench_tally *tally)
{
    int64_t lost = 0;

    for (int64_t i = 0; i < tally->jobs; i++)
        lost +=
            atomic_load_explicit(&tally->runs[i], memory_order_relaxed) == 0;
    return lost;
}

int64_t bench_tally_duplicated(const struct bench_tally *tally)
{
    int64_t twice = 0;

    for (int64_t i = 0; i < tally->jobs; i++)
        twice +=
            atomic_load_explicit(&tally->runs[i], memory_order_relaxed) > 1;
    return twice;
}

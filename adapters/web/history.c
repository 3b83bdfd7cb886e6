/* SPDX-License-Identifier: MIT */
#include "adapters/web/history.h"

#include "core/assert.h"

static size_t place(int64_t step)
{
    return (size_t)(step % WEIR__HISTORY_POINTS);
}

static void forget(struct weir__history *history, int64_t step)
{
    history->rate[place(step)] = -1.0f;
    history->lateness_ms[place(step)] = -1.0f;
}

static void begin(struct weir__history *history, int64_t now_ms, uint64_t total)
{
    history->step = now_ms / WEIR__HISTORY_STEP_MS;
    history->at_ms = now_ms;
    history->total = total;
}

/* A total that fell began again from 0. */
static void end(struct weir__history *history, int64_t now_ms, uint64_t total,
                int64_t lateness_us)
{
    const size_t at = place(history->step);
    const uint64_t grown =
        total >= history->total ? total - history->total : total;

    history->rate[at] =
        (float)((double)grown * 1000.0 / (double)(now_ms - history->at_ms));
    history->lateness_ms[at] =
        lateness_us < 0 ? -1.0f : (float)((double)lateness_us / 1000.0);
}

void weir__history_take(struct weir__history *history, int64_t now_ms,
                        uint64_t total, int64_t lateness_us)
{
    const int64_t step = now_ms / WEIR__HISTORY_STEP_MS;
    int64_t from = history->step + 1;

    WEIR_ASSERT(now_ms > 0);
    if (history->step == 0 ||
        step < history->step) { /* or the clock went back */
        for (int64_t i = 0; i < WEIR__HISTORY_POINTS; i++)
            forget(history, i);
        begin(history, now_ms, total);
        return;
    }
    if (step == history->step)
        return;
    if (now_ms > history->at_ms)
        end(history, now_ms, total, lateness_us);
    if (step - from >= WEIR__HISTORY_POINTS)
        from = step - WEIR__HISTORY_POINTS + 1;
    for (; from <= step; from++)
        forget(history, from);
    begin(history, now_ms, total);
}

/* Of the points that are over; the one that is being measured is none. */
static size_t place_of_age(const struct weir__history *history, size_t age)
{
    WEIR_ASSERT(age < WEIR__HISTORY_POINTS);
    return place(history->step + WEIR__HISTORY_POINTS - 1 - (int64_t)age);
}

float weir__history_rate(const struct weir__history *history, size_t age)
{
    return history->step == 0 ? -1.0f
                              : history->rate[place_of_age(history, age)];
}

float weir__history_lateness_ms(const struct weir__history *history, size_t age)
{
    return history->step == 0
               ? -1.0f
               : history->lateness_ms[place_of_age(history, age)];
}

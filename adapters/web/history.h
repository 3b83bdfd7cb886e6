/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_HISTORY_H
#define WEIR_WEB_HISTORY_H

/* How a topic did in the last hour: rate and lateness, a point for each 30 s.
 * The caller hands in the time. 1 KiB a topic, so 10 MiB for 10,000 of them,
 * and no more however long it runs. */

#include <weir/base.h>

enum {
    WEIR__HISTORY_POINTS = 120,
    WEIR__HISTORY_STEP_MS = 30000, /* one point stands for */
};

/* Zeroed: nothing is known yet. */
struct weir__history {
    int64_t step;   /* the point that is being measured: time / step; 0: none */
    int64_t at_ms;  /* when it began */
    uint64_t total; /* jobs done by then */
    /* Points by step modulo their number; below 0: not known. */
    float rate[WEIR__HISTORY_POINTS];        /* jobs done a second */
    float lateness_ms[WEIR__HISTORY_POINTS]; /* p99 */
};

/* What is so now: `total` jobs were done since the topic exists, and
 * `lateness_us` is the p99 (below 0: not known). Closes the points that are
 * over; those that nobody looked at stay unknown. */
void weir__history_take(struct weir__history *history, int64_t now_ms,
                        uint64_t total, int64_t lateness_us);

/* The point that ended `age` steps before the newest one; `age` is below
 * WEIR__HISTORY_POINTS. Below 0: not known. */
float weir__history_rate(const struct weir__history *history, size_t age);
float weir__history_lateness_ms(const struct weir__history *history,
                                size_t age);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_SAY_H
#define WEIR_BENCH_SAY_H

/* Talk on stderr: sentences, and a bar where stderr is a terminal. */

#include <stdbool.h>
#include <stdint.h>
#include <weir/base.h>

/* "weir-bench: ..." on a line of its own. */
WEIR_PRINTF(1, 2)
void bench_complain(const char *format, ...);

/* How far a case is: `step` of `steps` runs are behind us. */
struct bench_progress {
    bool is_shown; /* at all */
    bool is_drawn; /* stands on the terminal now */
    int step, steps;
    int64_t drawn_ns;
    const char *label; /* borrowed */
};

void bench_progress_init(struct bench_progress *progress, const char *label,
                         int steps);

/* Draw it; `part` of this run is done, 0 to 1. Ten times a second at most. */
void bench_progress_draw(struct bench_progress *progress, double part);

/* Take it away, so that something else can be said. */
void bench_progress_clear(struct bench_progress *progress);

/* Monotonic time, and the time of day, in ns. */
int64_t bench_now_ns(void);
int64_t bench_wall_ns(void);

/* Wait that long. */
void bench_rest_ns(int64_t ns);

#endif

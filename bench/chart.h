/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_CHART_H
#define WEIR_BENCH_CHART_H

/* A chart in HTML and SVG: a line for each value, with a dot for each repeat,
 * and beside it, as text, what the dots show. */

#include "bench/row.h"

#include <stdio.h>

/* A line of a chart: one figure of one row. */
struct bench_mark {
    const char *label;
    const struct bench_row *row;
    enum bench_figure figure;
};

/* What repeats came to: the least, the most, and what part of the median lies
 * between them in %. All NAN where there are none. */
struct bench_extent {
    double least, most, percent;
};
struct bench_extent bench_mark_extent(const struct bench_mark *mark);

/* Whether a line has something to draw: a value above 0. */
bool bench_mark_is_drawn(const struct bench_mark *mark);

/* Write it. The scale begins at 0, but is logarithmic where the largest value
 * is at least 100 times the smallest above 0. */
void bench_chart_put(FILE *file, const struct bench_mark *marks, size_t count);

#endif

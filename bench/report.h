/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_REPORT_H
#define WEIR_BENCH_REPORT_H

/* The page of `compare`: table and bar charts in one HTML file that needs
 * nothing else, for a phone as for paper. */

#include "bench/row.h"

#include <weir/base.h>

struct bench_report {
    const char *path;
    const enum bench_figure *columns;
    size_t column_count;
    int64_t delay_ms;
};

/* Whether the file can be written, before hours are spent. WEIR_EINVAL. */
int bench_report_check(const char *path, struct weir_error *err);

/* Write the rows that were printed. WEIR_EINVAL. */
int bench_report_write(const struct bench_report *report,
                       const struct bench_output *output,
                       struct weir_error *err);

#endif

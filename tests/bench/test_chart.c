/* SPDX-License-Identifier: MIT */
#include "bench/chart.h"
#include "bench/html.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows with two repeats each, and the chart of them. */
struct rig {
    struct bench_row repeats[3][2], rows[3];
    struct bench_mark marks[3];
    char *page; /* owned */
    size_t len;
};

static void put_row(struct rig *rig, size_t i, enum bench_figure figure,
                    double one, double other)
{
    struct bench_row *row = &rig->rows[i];

    bench_row_init(row, "test");
    (void)snprintf(row->label, sizeof(row->label), "row %zu", i);
    row->repeat = 2;
    row->repeats = rig->repeats[i];
    rig->repeats[i][0].figure[figure] = one;
    rig->repeats[i][1].figure[figure] = other;
    row->figure[figure] = (one + other) / 2;
    rig->marks[i] = (struct bench_mark){row->label, row, figure};
}

static const char *draw(struct rig *rig, size_t count)
{
    FILE *file;

    free(rig->page);
    file = open_memstream(&rig->page, &rig->len);
    EXPECT_TRUE(file != NULL);
    bench_chart_put(file, rig->marks, count);
    EXPECT_INT(0, fclose(file));
    return rig->page;
}

static bool has(const char *page, const char *part)
{
    return strstr(page, part) != NULL;
}

TEST(rows_that_differ_by_100_have_a_log_scale_and_no_bars)
{
    struct rig rig = {0};

    put_row(&rig, 0, BENCH_p50_ms, 1, 3);     /* 2 */
    put_row(&rig, 1, BENCH_p50_ms, 190, 208); /* 199 */
    EXPECT_TRUE(!has(draw(&rig, 2), "log scale"));
    EXPECT_TRUE(has(rig.page, "<rect"));
    put_row(&rig, 1, BENCH_p50_ms, 190, 210); /* 200 */
    EXPECT_TRUE(has(draw(&rig, 2), "log scale"));
    EXPECT_TRUE(!has(rig.page, "<rect"));
    EXPECT_TRUE(has(rig.page, ">100</text>"));
    free(rig.page);
}

TEST(a_scale_ends_with_a_step_above_every_repeat)
{
    struct rig rig = {0};

    put_row(&rig, 0, BENCH_drain_per_s, 900000, 1300000);
    EXPECT_TRUE(has(draw(&rig, 1), "x=\"0.00%\" y=\"13\">0</text>"));
    EXPECT_TRUE(has(rig.page, "x=\"100.00%\" y=\"13\">1.5M</text>"));
    EXPECT_TRUE(has(rig.page, "width=\"73.33%\""));
    EXPECT_TRUE(has(rig.page, "cx=\"86.67%\""));
    EXPECT_TRUE(has(rig.page, "repeat 2: 1,300,000"));
    free(rig.page);
}

TEST(a_dot_stands_where_its_value_is_on_a_log_scale)
{
    struct rig rig = {0};

    put_row(&rig, 0, BENCH_p99_ms, 1, 1);
    put_row(&rig, 1, BENCH_p99_ms, 1000, 1000);
    put_row(&rig, 2, BENCH_p99_ms, 10, 0);
    (void)draw(&rig, 3);
    EXPECT_TRUE(has(rig.page, "cx=\"33.33%\""));
    EXPECT_TRUE(!has(rig.page, "repeat 2: 0.000"));
    EXPECT_TRUE(has(rig.page, "<td>0.000</td>"));
    free(rig.page);
}

TEST(the_spread_is_that_of_the_repeats_that_have_a_value)
{
    struct rig rig = {0};
    struct bench_extent extent;

    put_row(&rig, 0, BENCH_drain_per_s, 90, 110);
    extent = bench_mark_extent(&rig.marks[0]);
    EXPECT_TRUE(extent.least == 90 && extent.most == 110);
    EXPECT_TRUE(extent.percent == 20);
    EXPECT_TRUE(has(draw(&rig, 1), "<td>20 %</td>"));
    put_row(&rig, 0, BENCH_drain_per_s, (double)NAN, 110);
    extent = bench_mark_extent(&rig.marks[0]);
    EXPECT_TRUE(extent.least == 110 && extent.most == 110);
    EXPECT_TRUE(isnan(extent.percent));
    rig.rows[0].repeats = NULL;
    EXPECT_TRUE(isnan(bench_mark_extent(&rig.marks[0]).most));
    free(rig.page);
}

TEST(every_figure_has_a_title)
{
    for (enum bench_figure i = 0; i < BENCH_FIGURE_COUNT; i++)
        EXPECT_TRUE(bench_senses[i].title != NULL &&
                    bench_unit_names[bench_senses[i].unit] != NULL);
}

TEST(a_command_is_written_as_a_shell_reads_it)
{
    char words[][24] = {"/usr/bin/weir-bench", "--redis", "redis://h?a=1&b=2",
                        "it's<", ""};
    char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    EXPECT_TRUE(file != NULL);
    bench_html_command(file, argv);
    EXPECT_INT(0, fclose(file));
    EXPECT_STR("weir-bench --redis 'redis://h?a=1&amp;b=2' "
               "'it'\\''s&lt;' ''",
               text);
    free(text);
}

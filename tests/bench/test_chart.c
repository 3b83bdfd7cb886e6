/* SPDX-License-Identifier: MIT */
#include "bench/chart.h"
#include "bench/html.h"
#include "bench/origin.h"
#include "bench/small.h"
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

static struct bench_row row_of(const char *kind, int64_t consumers,
                               const char *auto_ack, const char *parking)
{
    struct bench_row row;

    bench_row_init(&row, "compare");
    (void)snprintf(row.label, sizeof(row.label), "%s, %d", kind,
                   (int)consumers);
    row.kind = kind;
    row.consumers = consumers;
    row.auto_ack = auto_ack;
    row.parking = parking;
    row.jobs = 1000;
    row.figure[BENCH_drain_per_s] = 2000;
    row.figure[BENCH_ratio] = 4;
    row.figure[BENCH_lost] = 0;
    row.figure[BENCH_duplicated] = 7;
    return row;
}

TEST(a_published_line_stands_beside_the_row_that_answers_to_it)
{
    struct bench_row rows[] = {row_of("concurrent", 10, "no", "atomic"),
                               row_of("concurrent", 10, "no", "two-step"),
                               row_of("delay", 10, NULL, NULL)};
    struct bench_output output = {.rows = rows, .row_count = 3};
    char *page = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&page, &len);

    EXPECT_TRUE(file != NULL);
    rows[1].figure[BENCH_drain_per_s] = 4000;
    bench_origin_put(file, &output);
    EXPECT_INT(0, fclose(file));
    EXPECT_TRUE(has(page, ">concurrent</th><td>10</td><td>-</td><td>no</td>"
                          "<td>7,279</td><td>8.45</td><td>none</td>"
                          "<td>none</td><td>250</td><td>4.00</td><td>0</td>"
                          "<td>7</td></tr>"));
    EXPECT_TRUE(has(page, ">sync</th><td>10</td><td>no</td><td>-</td>"
                          "<td>-</td><td>-</td><td>many</td><td>many</td>"
                          "<td>-</td><td>-</td><td>-</td><td>-</td></tr>"));
    EXPECT_TRUE(has(page, ">concurrent, 10</th><td>10</td><td>-</td>"
                          "<td>no</td><td colspan=\"4\"></td><td>500</td>"));
    EXPECT_TRUE(has(page, ">delay, 10</th>"));
    free(page);
}

/* What is said of one row. */
static const char *small_of(struct bench_row row, int64_t repeat)
{
    static char text[BENCH_SMALL_CAP];
    struct bench bench = {.options.repeat = repeat,
                          .output = {.rows = &row, .row_count = 1}};

    bench_small_text(&bench, text);
    return text;
}

TEST(a_set_is_small_by_repeats_jobs_time_and_what_was_timed)
{
    struct bench_row row;

    bench_row_init(&row, "test");
    row.jobs = 2000;
    row.figure[BENCH_drain_per_s] = 100000;
    EXPECT_STR("", small_of(row, 3));
    EXPECT_STR("--repeat 2 (3 at least)", small_of(row, 2));
    row.figure[BENCH_enqueue_per_s] = 160000;
    EXPECT_STR("runs of 12.5 ms (20 at least)", small_of(row, 3));
    row.figure[BENCH_enqueue_per_s] = 1;
    row.jobs = 1999;
    row.figure[BENCH_drain_per_s] = 1;
    EXPECT_STR("rows of 1999 jobs (2000 at least)", small_of(row, 3));
    bench_row_init(&row, "test");
    row.jobs = 100;
    row.figure[BENCH_p99_ms] = 1;
    EXPECT_STR("", small_of(row, 3));
    row.figure[BENCH_measured] = 99;
    EXPECT_STR("p99 of 99 jobs (100 at least)", small_of(row, 3));
}

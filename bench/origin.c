/* SPDX-License-Identifier: MIT */
#include "bench/origin.h"

#include "bench/html.h"

#include <math.h>
#include <string.h>

/* A line of the published table. NULL: the queue has no such option. */
struct line {
    const char *kind, *lock, *auto_ack;
    int64_t consumers;
    double ms; /* 0: none is given */
    const char *lost, *duplicated;
};

static const char closed[] = "when closed";

static const struct line lines[] = {
    {"concurrent", NULL, "no", 1, 53936, "none", "none"},
    {"concurrent", NULL, "yes", 1, 13130, closed, "none"},
    {"sync", "yes", NULL, 1, 55420, "none", "none"},
    {"sync", "no", NULL, 1, 20012, "none", "none"},
    {"concurrent", NULL, "no", 10, 7279, "none", "none"},
    {"concurrent", NULL, "yes", 10, 1181, closed, "none"},
    {"sync", "yes", NULL, 10, 61532, "none", "none"},
    {"sync", "no", NULL, 10, 0, "many", "many"},
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

static const double slowest_ms = 61532; /* that loses and repeats nothing */

static bool is_same(const char *one, const char *other)
{
    return one == other ||
           (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* Parking was in two steps there. */
static bool answers(const struct bench_row *row, const struct line *line)
{
    return is_same(row->kind, line->kind) && is_same(row->lock, line->lock) &&
           is_same(row->auto_ack, line->auto_ack) &&
           row->consumers == line->consumers &&
           (row->parking == NULL || strcmp(row->parking, "two-step") == 0);
}

static void put_cell(FILE *file, enum bench_figure figure, double value)
{
    char text[40];

    bench_figure_text(figure, value, text, sizeof(text));
    bench_html_put(file, "td", text);
}

static void put_words(FILE *file, const char *text)
{
    bench_html_put(file, "td", text != NULL ? text : "-");
}

/* What was measured here; `row` may be NULL. */
static void put_here(FILE *file, const struct bench_row *row)
{
    const double *figure = row != NULL ? row->figure : NULL;

    if (figure == NULL) {
        for (int i = 0; i < 4; i++)
            put_words(file, NULL);
        return;
    }
    put_cell(file, BENCH_lost,
             (double)row->jobs * 1000 / figure[BENCH_drain_per_s]);
    put_cell(file, BENCH_ratio, figure[BENCH_ratio]);
    put_cell(file, BENCH_lost, figure[BENCH_lost]);
    put_cell(file, BENCH_duplicated, figure[BENCH_duplicated]);
}

static void put_line(FILE *file, const struct line *line,
                     const struct bench_output *output)
{
    double ms = line->ms > 0 ? line->ms : (double)NAN;
    const struct bench_row *row = NULL;

    for (size_t i = 0; i < output->row_count && row == NULL; i++)
        if (answers(&output->rows[i], line))
            row = &output->rows[i];
    (void)fprintf(file, "<tr>");
    bench_html_put(file, "th scope=\"row\"", line->kind);
    (void)fprintf(file, "<td>%d</td>", (int)line->consumers);
    put_words(file, line->lock);
    put_words(file, line->auto_ack);
    put_cell(file, BENCH_lost, ms);
    put_cell(file, BENCH_ratio, slowest_ms / ms);
    put_words(file, line->lost);
    put_words(file, line->duplicated);
    put_here(file, row);
    (void)fprintf(file, "</tr>\n");
}

/* A row that nothing was published of. */
static void put_own(FILE *file, const struct bench_row *row)
{
    for (size_t i = 0; i < LINES; i++)
        if (answers(row, &lines[i]))
            return;
    (void)fprintf(file, "<tr>");
    bench_html_put(file, "th scope=\"row\"", row->label);
    (void)fprintf(file, "<td>%d</td>", (int)row->consumers);
    put_words(file, row->lock);
    put_words(file, row->auto_ack);
    (void)fprintf(file, "<td colspan=\"4\"></td>");
    put_here(file, row);
    (void)fprintf(file, "</tr>\n");
}

static void put_heading(FILE *file)
{
    (void)fprintf(
        file,
        "<div class=\"wide\"><table>\n<tr><th></th><th colspan=\"3\"></th>"
        "<th colspan=\"4\" scope=\"colgroup\">published</th>"
        "<th colspan=\"4\" scope=\"colgroup\">this run</th></tr>\n"
        "<tr><th></th><th>consumers</th><th>lock</th><th>auto-ack</th>"
        "<th>ms</th><th>x slowest</th><th>lost</th><th>duplicated</th>"
        "<th>drain ms</th><th>x slowest</th><th>lost</th><th>duplicated</th>"
        "</tr>\n");
}

void bench_origin_put(FILE *file, const struct bench_output *output)
{
    (void)fprintf(
        file,
        "<h2>Beside the published table</h2>\n<p>Published: README.md of "
        "github.com/Cuner/delay-queue, section 2, lines 26 to 33, commit "
        "d443cd1 of May 2018. 100,000 messages with a delay of 1 s, pushed "
        "before they are consumed (its RedisDelayQueueTest.java), on one "
        "machine, which is not named. Its time is that of consuming them, so "
        "that the drain answers to it, with parking in two steps. This run "
        "has %lld messages and another machine: x slowest says more than "
        "milliseconds. Lost when closed are those in flight then, which "
        "weir-bench crash counts.</p>\n",
        output->row_count > 0 ? (long long)output->rows[0].jobs : 0);
    put_heading(file);
    for (size_t i = 0; i < LINES; i++)
        put_line(file, &lines[i], output);
    for (size_t i = 0; i < output->row_count; i++)
        put_own(file, &output->rows[i]);
    (void)fprintf(file, "</table></div>\n");
}

/* SPDX-License-Identifier: MIT */
#include "bench/chart.h"

#include "bench/html.h"
#include "bench/numbers.h"
#include "core/assert.h"

#include <math.h>

enum { LOG_FROM = 100, STEPS_MAX = 5, DECADES_MAX = 5, HEIGHT = 22 };

/* From 0 to `high` in steps that are added, or from `low` on in steps that are
 * multiplied by. */
struct scale {
    bool is_log;
    double low, high, step;
};

/* --- values ----------------------------------------------------------- */

static int64_t repeats_of(const struct bench_mark *mark)
{
    return mark->row->repeats != NULL ? mark->row->repeat : 0;
}

static double repeat_of(const struct bench_mark *mark, int64_t i)
{
    return mark->row->repeats[i].figure[mark->figure];
}

static double value_of(const struct bench_mark *mark)
{
    return mark->row->figure[mark->figure];
}

struct bench_extent bench_mark_extent(const struct bench_mark *mark)
{
    struct bench_extent extent = {(double)NAN, (double)NAN, (double)NAN};
    double values[100], middle;
    size_t count = 0;

    WEIR_ASSERT(repeats_of(mark) <= 100);
    for (int64_t i = 0; i < repeats_of(mark); i++) {
        values[count++] = repeat_of(mark, i);
        extent.least = fmin(extent.least, repeat_of(mark, i));
        extent.most = fmax(extent.most, repeat_of(mark, i));
    }
    middle = bench_median(values, count);
    if (middle > 0 && extent.least < extent.most)
        extent.percent = 100 * (extent.most - extent.least) / middle;
    return extent;
}

bool bench_mark_is_drawn(const struct bench_mark *mark)
{
    return value_of(mark) > 0 || bench_mark_extent(mark).most > 0;
}

/* --- the scale -------------------------------------------------------- */

static struct scale scale_linear(double most)
{
    static const double steps[] = {1, 2, 5, 10};
    double decade = pow(10, floor(log10(most / STEPS_MAX)));
    struct scale scale = {.high = most};

    for (size_t i = 0; i < 4; i++) {
        scale.step = steps[i] * decade;
        if (most / scale.step <= STEPS_MAX)
            break;
    }
    scale.high = ceil(most / scale.step) * scale.step;
    return scale;
}

static struct scale scale_log(double least, double most)
{
    double first = floor(log10(least)), last = ceil(log10(most));
    double decades = ceil((last - first) / DECADES_MAX);

    return (struct scale){.is_log = true,
                          .low = pow(10, first),
                          .high = pow(10, last),
                          .step = pow(10, decades)};
}

/* fmin and fmax leave out what is NAN. */
static struct scale scale_of(const struct bench_mark *marks, size_t count)
{
    double least = (double)NAN, most = (double)NAN;
    double low = (double)NAN, high = (double)NAN; /* of repeats as well */

    for (size_t i = 0; i < count; i++) {
        struct bench_extent extent = bench_mark_extent(&marks[i]);
        double value = value_of(&marks[i]);

        if (value > 0) {
            least = fmin(least, value);
            most = fmax(most, value);
        }
        low = fmin(low, extent.least > 0 ? extent.least : least);
        high = fmax(high, fmax(extent.most, most));
    }
    if (most / least >= LOG_FROM)
        return scale_log(fmin(low, least), high);
    return scale_linear(high);
}

/* Where a value lies, in % of the width. */
static double place(const struct scale *scale, double value)
{
    double at = scale->is_log
                    ? log(value / scale->low) / log(scale->high / scale->low)
                    : value / scale->high;

    return isnan(at) || at < 0 ? 0 : at * 100;
}

static double next_tick(const struct scale *scale, double tick)
{
    return scale->is_log ? tick * scale->step : tick + scale->step;
}

/* Some more, since sums and products are not exact. */
static bool is_within(const struct scale *scale, double tick)
{
    return tick <= scale->high * 1.0001;
}

/* --- drawing ---------------------------------------------------------- */

static void put_grid(FILE *file, const struct scale *scale)
{
    for (double tick = scale->low; is_within(scale, tick);
         tick = next_tick(scale, tick))
        (void)fprintf(file,
                      "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" "
                      "y2=\"%d\"/>",
                      place(scale, tick), place(scale, tick), HEIGHT);
}

static void put_dots(FILE *file, const struct scale *scale,
                     const struct bench_mark *mark)
{
    char text[40];

    for (int64_t i = 0; i < repeats_of(mark); i++) {
        double value = repeat_of(mark, i);

        if (!(value > 0) && (scale->is_log || isnan(value)))
            continue;
        bench_figure_text(mark->figure, value, text, sizeof(text));
        (void)fprintf(file,
                      "<circle cx=\"%.2f%%\" cy=\"%d\" r=\"3.5\"><title>"
                      "repeat %d: %s</title></circle>",
                      place(scale, value), HEIGHT / 2, (int)i + 1, text);
    }
}

/* A bar says nothing where the scale has no 0. */
static void put_track(FILE *file, const struct scale *scale,
                      const struct bench_mark *mark)
{
    double value = value_of(mark), at = place(scale, value);
    struct bench_extent extent = bench_mark_extent(mark);
    char text[40];

    bench_figure_text(mark->figure, value, text, sizeof(text));
    (void)fprintf(file, "<svg role=\"img\" height=\"%d\" aria-label=\"%s\">",
                  HEIGHT, text);
    put_grid(file, scale);
    if (!scale->is_log && value > 0)
        (void)fprintf(file, "<rect y=\"5\" height=\"12\" width=\"%.2f%%\"/>",
                      at);
    if (extent.least < extent.most)
        (void)fprintf(file,
                      "<line class=\"range\" x1=\"%.2f%%\" x2=\"%.2f%%\" "
                      "y1=\"11\" y2=\"11\"/>",
                      place(scale, extent.least), place(scale, extent.most));
    put_dots(file, scale, mark);
    if (value > 0)
        (void)fprintf(file,
                      "<line class=\"median\" x1=\"%.2f%%\" x2=\"%.2f%%\" "
                      "y1=\"2\" y2=\"20\"/>",
                      at, at);
    (void)fprintf(file, "</svg>");
}

static void put_axis(FILE *file, const struct scale *scale)
{
    (void)fprintf(file, "<tfoot><tr><td></td><td class=\"track\"><svg "
                        "aria-hidden=\"true\" height=\"18\">");
    for (double tick = scale->low; is_within(scale, tick);
         tick = next_tick(scale, tick)) {
        double shown = tick >= 1e6   ? tick / 1e6
                       : tick >= 1e3 ? tick / 1e3
                                     : tick;

        (void)fprintf(file, "<text x=\"%.2f%%\" y=\"13\">%g%s</text>",
                      place(scale, tick), shown,
                      tick >= 1e6   ? "M"
                      : tick >= 1e3 ? "k"
                                    : "");
    }
    (void)fprintf(file, "</svg></td><td colspan=\"4\"></td></tr></tfoot>");
}

static void put_cell(FILE *file, enum bench_figure figure, double value)
{
    char text[40];

    bench_figure_text(figure, value, text, sizeof(text));
    (void)fprintf(file, "<td>%s</td>", text);
}

static void put_line(FILE *file, const struct scale *scale,
                     const struct bench_mark *mark)
{
    struct bench_extent extent = bench_mark_extent(mark);

    (void)fprintf(file, "<tr>");
    bench_html_put(file, "th scope=\"row\"", mark->label);
    (void)fprintf(file, "<td class=\"track\">");
    put_track(file, scale, mark);
    (void)fprintf(file, "</td>");
    put_cell(file, mark->figure, value_of(mark));
    put_cell(file, mark->figure, extent.least);
    put_cell(file, mark->figure, extent.most);
    if (isnan(extent.percent))
        (void)fprintf(file, "<td>-</td></tr>\n");
    else
        (void)fprintf(file, "<td>%.0f %%</td></tr>\n", extent.percent);
}

/* Each repeat as text. */
static void put_repeats(FILE *file, const struct bench_mark *marks,
                        size_t count)
{
    int64_t columns = 0;

    for (size_t i = 0; i < count; i++)
        if (!isnan(bench_mark_extent(&marks[i]).most) &&
            repeats_of(&marks[i]) > columns)
            columns = repeats_of(&marks[i]);
    if (columns == 0)
        return;
    (void)fprintf(file, "<details><summary>Each repeat</summary><div "
                        "class=\"wide\"><table><tr><th></th>");
    for (int64_t i = 0; i < columns; i++)
        (void)fprintf(file, "<th scope=\"col\">%d</th>", (int)i + 1);
    (void)fprintf(file, "</tr>\n");
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(file, "<tr>");
        bench_html_put(file, "th scope=\"row\"", marks[i].label);
        for (int64_t k = 0; k < repeats_of(&marks[i]); k++)
            put_cell(file, marks[i].figure, repeat_of(&marks[i], k));
        (void)fprintf(file, "</tr>\n");
    }
    (void)fprintf(file, "</table></div></details>\n");
}

/* How the repeats became the value. */
static const char *value_heading(const struct bench_mark *marks, size_t count)
{
    static const char *const headings[] = {"median", "worst", "value"};
    enum bench_merge merge = bench_figures[marks[0].figure].merge;

    for (size_t i = 1; i < count; i++)
        if (bench_figures[marks[i].figure].merge != merge)
            return "value";
    return headings[merge];
}

void bench_chart_put(FILE *file, const struct bench_mark *marks, size_t count)
{
    struct scale scale = scale_of(marks, count);

    WEIR_ASSERT(count > 0 && scale.high > 0);
    (void)fprintf(file,
                  "<div class=\"wide\"><table class=\"chart\"><tr><th></th>"
                  "<th class=\"track\">%s</th><th>%s</th><th>least</th>"
                  "<th>most</th><th>spread</th></tr>\n",
                  scale.is_log ? "log scale" : "", value_heading(marks, count));
    for (size_t i = 0; i < count; i++)
        put_line(file, &scale, &marks[i]);
    put_axis(file, &scale);
    (void)fprintf(file, "</table></div>\n");
    put_repeats(file, marks, count);
}

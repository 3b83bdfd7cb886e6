/* SPDX-License-Identifier: MIT */
#include "bench/report.h"

#include "bench/chart.h"
#include "bench/flags.h"
#include "bench/html.h"
#include "bench/small.h"
#include "core/assert.h"
#include "core/error.h"

#include <errno.h>
#include <json-c/json.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#57616b;--line:#d5dae0;"
    "--bar:#bcd3ec;--edge:#1f5f9f;--bad:#b3261e;--panel:#f5f7f9;--paper:#fff}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#a3adb7;"
    "--line:#343c44;--bar:#27486a;--edge:#8ec3f5;--bad:#ff8a80;"
    "--panel:#1c2228;--paper:#14181c}}\n"
    "*{box-sizing:border-box}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--paper);max-width:78rem;margin:0 auto;padding:1rem}\n"
    "h1{font-size:1.6rem;margin:.5rem 0 0}h2{font-size:1.25rem;"
    "margin:2.5rem 0 .5rem;border-bottom:1px solid var(--line)}\n"
    "h3{font-size:1rem;margin:1.8rem 0 .2rem}h3 small{font-weight:400;"
    "color:var(--soft);margin-left:.5rem}\n"
    ".lead::first-letter{text-transform:uppercase}p{margin:.3rem "
    "0}p,dt,summary{color:var(--soft)}\n"
    ".warning{border:2px solid var(--bad);border-radius:.4rem;"
    "padding:.4rem .8rem;margin:1rem 0;color:var(--ink)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;"
    "background:var(--panel);padding:.8rem 1rem;border-radius:.4rem;"
    "font-size:.9rem}dd{margin:0;overflow-wrap:anywhere}"
    "dd span{white-space:nowrap;margin-right:.8rem}\n"
    "code{font:.85rem/1.5 ui-monospace,monospace}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:"
    "tabular-nums;font-size:.875rem}\n"
    "th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);"
    "text-align:right;white-space:nowrap}\n"
    "th[colspan]{text-align:center}th:not([scope=row]){font-weight:600;color:"
    "var(--soft)}\n"
    "th[scope=row]{font-weight:400;color:var(--ink);text-align:left;"
    "white-space:pre}\n"
    "td.bad{color:var(--bad);font-weight:700}\n"
    ".chart th,.chart td{padding:0 .5rem;border:0}\n"
    ".chart .track{width:100%;min-width:12rem;padding:0 1rem;"
    "text-align:left}\n"
    "svg{width:100%;display:block;overflow:visible}\n"
    ".grid{stroke:var(--line)}.range{stroke:var(--edge);stroke-width:2}"
    ".median{stroke:var(--ink);stroke-width:3}rect{fill:var(--bar)}"
    "circle{fill:var(--paper);stroke:var(--edge);stroke-width:1.5}"
    "svg text{fill:var(--soft);font-size:12px;text-anchor:middle}\n"
    "details{margin:.3rem 0}summary{cursor:pointer;font-size:.875rem}\n"
    "@media(max-width:36rem){dl{grid-template-columns:1fr}dt{margin-top:.3rem}"
    ".chart tr{display:grid;grid-template-columns:repeat(4,1fr)}"
    ".chart th:first-child,.chart td:first-child,.chart .track{"
    "grid-column:1/-1}}\n"
    "@media print{:root{--ink:#000;--soft:#333;--line:#bbb;--bar:#ddd;"
    "--edge:#000;--bad:#000;--panel:#fff;--paper:#fff}body{max-width:none;"
    "padding:0;font-size:11px}tr,h3,.chart{break-inside:avoid}"
    "h2,h3{break-after:avoid}.wide{overflow:visible}table{font-size:9px}"
    "details::details-content{content-visibility:visible;"
    "display:contents}rect{print-color-adjust:exact}}\n";

/* --- where it was measured -------------------------------------------- */

/* The value of a member, "" when there is none. */
static const char *word(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;

    if (!json_object_object_get_ex(object, name, &value))
        return "";
    return json_object_get_string(value);
}

/* A line of the list; what is not known is left out. */
static void put_fact(FILE *file, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    bench_html_put(file, "dt", name);
    bench_html_put(file, "dd", text);
    (void)fputc('\n', file);
}

static void put_date(FILE *file)
{
    time_t now = (time_t)(bench_wall_ns() / 1000000000);
    struct tm utc = {0};
    char date[40];

    (void)gmtime_r(&now, &utc);
    (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &utc);
    put_fact(file, "Written", date);
}

static void put_machine(FILE *file, struct json_object *host)
{
    char text[400];
    double memory_gb = strtod(word(host, "memory_mb"), NULL) / 1024;

    (void)snprintf(text, sizeof(text), "%s, %s cores, %.1f GiB",
                   word(host, "cpu"), word(host, "cores"), memory_gb);
    put_fact(file, "Machine", text);
    (void)snprintf(text, sizeof(text), "%s, %s", word(host, "kernel"),
                   word(host, "arch"));
    put_fact(file, "Kernel", text);
    put_fact(file, "CPU governor",
             word(host, "governor")[0] != '\0' ? word(host, "governor")
                                               : "not told by the kernel");
    put_fact(file, "Load before", word(host, "load"));
}

static void put_server(FILE *file, const struct bench *bench)
{
    struct json_object *server = bench->output.server, *settings = NULL;
    const struct bench_row *row = &bench->output.rows[0];
    char text[400];

    (void)snprintf(text, sizeof(text), "%s %s, %s, over %s%s%s",
                   word(server, "name"), word(server, "version"),
                   bench->options.server.redis == NULL ? "private"
                                                       : "somebody else's",
                   row->transport != NULL ? row->transport : "?",
                   word(server, "allocator")[0] != '\0' ? ", " : "",
                   word(server, "allocator"));
    put_fact(file, "Server", text);
    if (!json_object_object_get_ex(server, "settings", &settings) ||
        json_object_object_length(settings) == 0)
        return;
    (void)fprintf(file, "<dt>Its settings</dt><dd>");
    json_object_object_foreach(settings, name, value)
    {
        (void)fprintf(file, "<span>");
        bench_html_text(file, name);
        (void)fputc(' ', file);
        bench_html_put(file, "b", json_object_get_string(value));
        (void)fprintf(file, "</span> ");
    }
    (void)fprintf(file, "</dd>\n");
}

static void put_where(FILE *file, const struct bench *bench,
                      const struct bench_options *options, char *const *argv)
{
    struct json_object *build = bench->output.build;
    char text[BENCH_OPTIONS_TEXT_CAP];

    (void)fprintf(file, "<dl>\n<dt>Command</dt><dd><code>");
    bench_html_command(file, argv);
    (void)fprintf(file, "</code></dd>\n");
    bench_options_text(options, text, sizeof(text));
    put_fact(file, "With defaults", text);
    put_date(file);
    put_machine(file, bench->output.host);
    put_server(file, bench);
    (void)snprintf(
        text, sizeof(text), "weir %s%s%s, %s, %s", word(build, "weir"),
        word(build, "commit")[0] != '\0' ? ", commit " : "",
        word(build, "commit"), word(build, "compiler"), word(build, "type"));
    put_fact(file, "Build", text);
    (void)fprintf(file, "</dl>\n");
}

/* --- figures ---------------------------------------------------------- */

/* The mark beside the colour is for who does not see it. */
static void put_cell(FILE *file, enum bench_figure figure, double value)
{
    bool is_bad =
        value > 0 && (figure == BENCH_lost || figure == BENCH_duplicated ||
                      figure == BENCH_early);
    char text[40];

    bench_figure_text(figure, value, text, sizeof(text));
    (void)fprintf(file, "<td%s%s</td>",
                  is_bad ? " class=\"bad\">&#9650; " : ">", text);
}

static void put_table(FILE *file, const struct bench *bench)
{
    const struct bench_output *output = &bench->output;

    (void)fprintf(file, "<div class=\"wide\"><table>\n<tr><th></th>");
    for (size_t i = 0; i < output->column_count; i++)
        bench_html_put(file, "th scope=\"col\"",
                       bench_figures[output->columns[i]].heading);
    (void)fprintf(file, "</tr>\n");
    for (size_t i = 0; i < output->row_count; i++) {
        (void)fprintf(file, "<tr>");
        bench_html_put(file, "th scope=\"row\"", output->rows[i].label);
        for (size_t k = 0; k < output->column_count; k++)
            put_cell(file, output->columns[k],
                     output->rows[i].figure[output->columns[k]]);
        (void)fprintf(file, "</tr>\n");
    }
    (void)fprintf(file, "</table></div>\n");
}

static const char *direction(enum bench_figure figure)
{
    switch (bench_senses[figure].better) {
    case BENCH_HIGHER:
        return " &middot; more is better";
    case BENCH_LOWER:
        return " &middot; less is better";
    case BENCH_NEITHER:
        break;
    }
    return "";
}

/* The rows that have the figure; `*ret_drawn`: one of them is above 0. */
static size_t marks_of(const struct bench_output *output,
                       enum bench_figure figure, struct bench_mark *marks,
                       bool *ret_drawn)
{
    size_t count = 0;

    *ret_drawn = false;
    for (size_t i = 0; i < output->row_count; i++) {
        const struct bench_row *row = &output->rows[i];

        if (isnan(row->figure[figure]))
            continue;
        marks[count] = (struct bench_mark){row->label, row, figure};
        *ret_drawn |= bench_mark_is_drawn(&marks[count]);
        count++;
    }
    return count;
}

static void put_figure(FILE *file, const struct bench_output *output,
                       enum bench_figure figure, struct bench_mark *marks)
{
    bool is_drawn;
    size_t count = marks_of(output, figure, marks, &is_drawn);

    if (count == 0)
        return;
    (void)fprintf(file, "<h3>%s<small>", bench_figures[figure].heading);
    bench_html_text(file, bench_senses[figure].title);
    (void)fprintf(file, " &middot; %s%s</small></h3>\n",
                  bench_unit_names[bench_senses[figure].unit],
                  direction(figure));
    if (is_drawn)
        bench_chart_put(file, marks, count);
    else
        (void)fprintf(file, "<p>0 in every repeat of every row.</p>\n");
}

static bool is_column(const struct bench_output *output,
                      enum bench_figure figure)
{
    for (size_t i = 0; i < output->column_count; i++)
        if (output->columns[i] == figure)
            return true;
    return false;
}

/* Figures that the table has no column for. */
static void put_others(FILE *file, const struct bench_output *output,
                       struct bench_mark *marks)
{
    bool is_open = false, is_drawn;

    for (enum bench_figure i = 0; i < BENCH_FIGURE_COUNT; i++) {
        if (is_column(output, i) || marks_of(output, i, marks, &is_drawn) == 0)
            continue;
        if (!is_open)
            (void)fprintf(file, "<details><summary>Also measured</summary>\n");
        is_open = true;
        put_figure(file, output, i, marks);
    }
    if (is_open)
        (void)fprintf(file, "</details>\n");
}

static void put_figures(FILE *file, const struct bench_output *output,
                        struct bench_mark *marks)
{
    (void)fprintf(file,
                  "<h2>Figure by figure</h2>\n<p>A dot is a repeat, the thick "
                  "stroke their median, the worst of them, or, of counts that "
                  "add up, the repeat that handled the median. Spread is "
                  "what lies between the least and the most, in %% of the "
                  "median.</p>\n");
    for (size_t i = 0; i < output->column_count; i++)
        put_figure(file, output, output->columns[i], marks);
    put_others(file, output, marks);
}

static void put_warning(FILE *file, const struct bench *bench)
{
    char small[BENCH_SMALL_CAP];

    bench_small_text(bench, small);
    if (small[0] == '\0')
        return;
    (void)fprintf(file, "<p class=\"warning\">&#9650; Too small to mean "
                        "much: ");
    bench_html_text(file, small);
    (void)fprintf(file, ".</p>\n");
}

/* --- the page --------------------------------------------------------- */

static int put_page(FILE *file, const struct bench *bench,
                    const struct bench_options *options, char *const *argv)
{
    const struct bench_case *which = bench->which;
    struct bench_mark *marks =
        calloc(bench->output.row_count, sizeof(marks[0]));

    if (marks == NULL)
        return -ENOMEM;
    (void)fprintf(file,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<meta "
                  "charset=\"utf-8\">\n<meta name=\"viewport\" "
                  "content=\"width=device-width,initial-scale=1\">\n"
                  "<title>weir-bench %s</title>\n<style>\n%s</style>\n"
                  "<h1>weir-bench %s</h1>\n<p class=\"lead\">",
                  which->name, style, which->name);
    bench_html_text(file, which->summary);
    (void)fprintf(file, ".</p>\n");
    put_warning(file, bench);
    put_where(file, bench, options, argv);
    (void)fprintf(file, "<h2>Results</h2>\n<p>");
    bench_html_text(file, which->details);
    (void)fprintf(file, "</p>\n");
    put_table(file, bench);
    if (which->put_more != NULL)
        which->put_more(file, &bench->output);
    put_figures(file, &bench->output, marks);
    (void)fprintf(file, "</html>\n");
    free(marks);
    return 0;
}

/* --- the file --------------------------------------------------------- */

static int cannot(const char *path, const char *why, struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL, "--report: cannot write %s: %s",
                           path, why);
}

/* Where it is written until it is complete. False: the path is too long. */
static bool part_of(const char *path, char part[PATH_MAX])
{
    return snprintf(part, PATH_MAX, "%s.part", path) < PATH_MAX;
}

int bench_report_check(const char *path, struct weir_error *err)
{
    char part[PATH_MAX];
    struct stat found;

    if (path[0] == '\0')
        return cannot("\"\"", strerror(ENOENT), err);
    if (!part_of(path, part))
        return cannot(path, strerror(ENAMETOOLONG), err);
    if (stat(path, &found) == 0) {
        if (!S_ISREG(found.st_mode))
            return cannot(path, "it is not a file", err);
        if (access(path, W_OK) < 0)
            return cannot(path, strerror(errno), err);
    } else if (errno != ENOENT) {
        return cannot(path, strerror(errno), err);
    }
    if (stat(part, &found) < 0 && errno != ENOENT)
        return cannot(path, strerror(errno), err);
    if (access(dirname(part), W_OK | X_OK) < 0)
        return cannot(path, strerror(errno), err);
    return WEIR_OK;
}

int bench_report_write(const struct bench *bench,
                       const struct bench_options *options, char *const *argv,
                       struct weir_error *err)
{
    const char *path = options->report;
    char part[PATH_MAX];
    FILE *file = part_of(path, part) ? fopen(part, "w") : NULL;
    bool ok;

    WEIR_ASSERT(bench->output.row_count > 0);
    if (file == NULL)
        return cannot(path, strerror(errno), err);
    ok = put_page(file, bench, options, argv) == 0 && ferror(file) == 0;
    ok = fclose(file) == 0 && ok;
    if (ok && rename(part, path) == 0)
        return WEIR_OK;
    (void)cannot(path, strerror(errno), err);
    (void)unlink(part);
    return WEIR_EINVAL;
}

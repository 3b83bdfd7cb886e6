/* SPDX-License-Identifier: MIT */
#include "bench/report.h"

#include "bench/say.h"
#include "core/error.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#5c6670;--line:#d5dae0;"
    "--bar:#2f6fb2;--bad:#b3261e;--paper:#fff}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#9aa4ae;"
    "--line:#3a424a;--bar:#6ea8e0;--bad:#ff8a80;--paper:#14181c}}\n"
    "*{box-sizing:border-box}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--paper);max-width:62rem;margin:0 auto;padding:1rem}\n"
    "h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.1rem;margin:2rem 0 "
    ".5rem}\n"
    "p{color:var(--soft);margin:.3rem 0}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:"
    "tabular-nums;font-size:.9rem}\n"
    "th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);"
    "text-align:right;white-space:nowrap}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "td.bad{color:var(--bad);font-weight:600}\n"
    ".chart{display:grid;grid-template-columns:max-content 1fr;gap:.3rem "
    ".8rem;align-items:center;font-size:.9rem}\n"
    ".chart svg{width:100%;height:1.4rem;display:block}\n"
    ".chart rect{fill:var(--bar)}\n"
    ".chart text{fill:var(--ink);font:13px system-ui,sans-serif}\n"
    "@media(max-width:36rem){.chart{grid-template-columns:1fr;gap:0}}\n"
    "@media print{:root{--ink:#000;--soft:#333;--line:#999;--bar:#555;"
    "--bad:#000;--paper:#fff}body{max-width:none;padding:0;font-size:11px}"
    "h2,.chart{break-inside:avoid}.wide{overflow:visible}"
    "table{font-size:9px}rect{print-color-adjust:exact}}\n";

static void put_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<')
            (void)fputs("&lt;", file);
        else if (*text == '>')
            (void)fputs("&gt;", file);
        else if (*text == '&')
            (void)fputs("&amp;", file);
        else
            (void)fputc(*text, file);
    }
}

/* The value of a member, "" when there is none. */
static const char *word(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;

    if (!json_object_object_get_ex(object, name, &value))
        return "";
    return json_object_get_string(value);
}

static void put_head(FILE *file, const struct bench_report *report,
                     const struct bench_output *output)
{
    const struct bench_row *row = &output->rows[0];
    time_t now = (time_t)(bench_wall_ns() / 1000000000);
    struct tm utc = {0};
    char date[32];

    (void)gmtime_r(&now, &utc);
    (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &utc);
    (void)fprintf(file,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<meta "
                  "charset=\"utf-8\">\n<meta name=\"viewport\" "
                  "content=\"width=device-width,initial-scale=1\">\n"
                  "<title>weir-bench compare</title>\n<style>\n%s</style>\n"
                  "<h1>Delay queues compared</h1>\n<p>%lld messages of %lld "
                  "bytes, delay %lld ms, median of %lld runs, %s.</p>\n<p>",
                  style, (long long)row->jobs, (long long)row->payload_bytes,
                  (long long)report->delay_ms, (long long)row->repeat, date);
    put_text(file, word(output->server, "name"));
    (void)fputc(' ', file);
    put_text(file, word(output->server, "version"));
    (void)fprintf(file, " (%s, persistence %s) on ",
                  row->transport != NULL ? row->transport : "?",
                  row->persistence != NULL ? row->persistence : "?");
    put_text(file, word(output->host, "cpu"));
    (void)fprintf(file, ", %s cores; weir %s, %s, %s.</p>\n",
                  word(output->host, "cores"), word(output->build, "weir"),
                  word(output->build, "compiler"), word(output->build, "type"));
}

static void put_cell(FILE *file, enum bench_figure figure, double value)
{
    bool is_bad =
        (figure == BENCH_lost || figure == BENCH_duplicated) && value > 0;
    char text[40];

    bench_figure_text(figure, value, text, sizeof(text));
    (void)fprintf(file, "<td%s>%s</td>", is_bad ? " class=\"bad\"" : "", text);
}

static void put_table(FILE *file, const struct bench_report *report,
                      const struct bench_output *output)
{
    (void)fprintf(file, "<div class=\"wide\"><table>\n<tr><th>queue, "
                        "consumers</th>");
    for (size_t i = 0; i < report->column_count; i++)
        (void)fprintf(file, "<th>%s</th>",
                      bench_figure_heading(report->columns[i]));
    (void)fprintf(file, "</tr>\n");
    for (size_t i = 0; i < output->row_count; i++) {
        (void)fprintf(file, "<tr><td>");
        put_text(file, output->rows[i].label);
        (void)fprintf(file, "</td>");
        for (size_t k = 0; k < report->column_count; k++)
            put_cell(file, report->columns[k],
                     output->rows[i].figure[report->columns[k]]);
        (void)fprintf(file, "</tr>\n");
    }
    (void)fprintf(file, "</table></div>\n");
}

/* One bar: as long a part of three quarters of the width as the value is of
 * the largest, its text behind it. */
static void put_bar(FILE *file, enum bench_figure figure, double value,
                    double largest)
{
    double width = isnan(value) || largest <= 0 ? 0 : value / largest * 75;
    char text[40];

    bench_figure_text(figure, value, text, sizeof(text));
    (void)fprintf(file,
                  "<svg role=\"img\" aria-label=\"%s\"><rect y=\"3\" "
                  "height=\"16\" width=\"%.2f%%\"/><text x=\"%.2f%%\" dx=\"6\""
                  " y=\"16\">%s</text></svg>\n",
                  text, width, width, text);
}

static void put_chart(FILE *file, const struct bench_output *output,
                      enum bench_figure figure, const char *title)
{
    double largest = 0;

    for (size_t i = 0; i < output->row_count; i++)
        if (output->rows[i].figure[figure] > largest)
            largest = output->rows[i].figure[figure];
    (void)fprintf(file, "<h2>%s</h2>\n<div class=\"chart\">\n", title);
    for (size_t i = 0; i < output->row_count; i++) {
        (void)fprintf(file, "<span>");
        put_text(file, output->rows[i].label);
        (void)fprintf(file, "</span>");
        put_bar(file, figure, output->rows[i].figure[figure], largest);
    }
    (void)fprintf(file, "</div>\n");
}

static int cannot(const char *path, struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL, "--report: cannot write %s: %s",
                           path, strerror(errno));
}

int bench_report_check(const char *path, struct weir_error *err)
{
    FILE *file = fopen(path, "a");

    if (file == NULL)
        return cannot(path, err);
    (void)fclose(file);
    return WEIR_OK;
}

int bench_report_write(const struct bench_report *report,
                       const struct bench_output *output,
                       struct weir_error *err)
{
    FILE *file = fopen(report->path, "w");

    if (file == NULL)
        return cannot(report->path, err);
    put_head(file, report, output);
    put_table(file, report, output);
    put_chart(file, output, BENCH_drain_per_s,
              "Messages drained per second (longer is better)");
    put_chart(file, output, BENCH_elapsed_ms,
              "First add to last settle, ms (shorter is better)");
    put_chart(file, output, BENCH_server_us_per_job,
              "Server CPU time per message, us (shorter is better)");
    put_chart(file, output, BENCH_lost, "Messages lost");
    put_chart(file, output, BENCH_duplicated,
              "Messages handled more than once");
    (void)fprintf(file, "<p>x slowest: drain rate over that of the slowest row "
                        "that neither lost nor repeated a message. Lost and "
                        "duplicated are counted by number, the worst of the "
                        "runs.</p>\n</html>\n");
    if (ferror(file) != 0 || fclose(file) != 0)
        return cannot(report->path, err);
    return WEIR_OK;
}

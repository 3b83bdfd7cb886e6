/* SPDX-License-Identifier: MIT */
#include "bench/row.h"

#include "bench/numbers.h"
#include "core/assert.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_WIDTH = 34, REPEATS_MAX = 100 };

void bench_row_init(struct bench_row *row, const char *case_name)
{
    *row = (struct bench_row){
        .case_name = case_name,
        .consumers = -1,
        .batch = -1,
        .jobs = -1,
        .payload_bytes = -1,
        .topics = -1,
        .backlog = -1,
        .concurrency = -1,
        .repeat = -1,
        .nodes = -1,
        .node = -1,
    };
    for (size_t i = 0; i < BENCH_FIGURE_COUNT; i++)
        row->figure[i] = (double)NAN;
}

static double worst(const double *values, size_t count)
{
    double most = (double)NAN;

    for (size_t i = 0; i < count; i++)
        most = isnan(most) || values[i] > most ? values[i] : most;
    return most;
}

/* The repeat whose `handled` is the median, of two the lower one; NULL: the
 * case has no `handled`. */
static const struct bench_row *median_repeat(const struct bench_row *repeats,
                                             size_t count)
{
    for (size_t k = 0; k < count; k++) {
        double handled = repeats[k].figure[BENCH_handled];
        size_t before = 0;

        for (size_t i = 0; i < count; i++)
            before += repeats[i].figure[BENCH_handled] < handled ||
                      (repeats[i].figure[BENCH_handled] == handled && i < k);
        if (!isnan(handled) && before == (count - 1) / 2)
            return &repeats[k];
    }
    return NULL;
}

static void merge(struct bench_row *row, const struct bench_row *repeats,
                  size_t count)
{
    const struct bench_row *whole = median_repeat(repeats, count);

    WEIR_ASSERT(count > 0 && count <= REPEATS_MAX);
    for (size_t i = 0; i < BENCH_FIGURE_COUNT; i++) {
        double values[REPEATS_MAX];

        for (size_t k = 0; k < count; k++)
            values[k] = repeats[k].figure[i];
        if (bench_figures[i].merge == BENCH_MEDIAN)
            row->figure[i] = bench_median(values, count);
        else if (bench_figures[i].merge == BENCH_WHOLE && whole != NULL)
            row->figure[i] = whole->figure[i];
        else
            row->figure[i] = worst(values, count);
    }
    row->repeat = (int64_t)count;
}

/* A copy that the output owns; NULL: out of memory. */
static struct bench_row *keep(struct bench_output *output,
                              const struct bench_row *repeats, size_t count)
{
    size_t kept = output->repeats_count;
    struct bench_row **all =
        realloc(output->repeats, (kept + 1) * sizeof(all[0]));

    if (all == NULL)
        return NULL;
    output->repeats = all;
    all[kept] = calloc(count, sizeof(all[kept][0]));
    if (all[kept] == NULL)
        return NULL;
    memcpy(all[kept], repeats, count * sizeof(repeats[0]));
    output->repeats_count++;
    return all[kept];
}

bool bench_row_merge(struct bench_output *output, struct bench_row *row,
                     const struct bench_row *repeats, size_t count)
{
    merge(row, repeats, count);
    row->repeats = keep(output, repeats, count);
    return row->repeats != NULL;
}

/* --- the table -------------------------------------------------------- */

static int column_width(enum bench_figure figure)
{
    int len = (int)strlen(bench_figures[figure].heading);

    return len < 10 ? 10 : len;
}

static void print_heading(const struct bench_output *output)
{
    (void)printf("%-*s", LABEL_WIDTH, "");
    for (size_t i = 0; i < output->column_count; i++)
        (void)printf("  %*s", column_width(output->columns[i]),
                     bench_figures[output->columns[i]].heading);
    (void)printf("\n");
}

static void print_table_row(const struct bench_output *output,
                            const struct bench_row *row)
{
    char text[40];

    if (output->row_count == 1)
        print_heading(output);
    (void)printf("%-*s", LABEL_WIDTH, row->label);
    for (size_t i = 0; i < output->column_count; i++) {
        enum bench_figure figure = output->columns[i];

        bench_figure_text(figure, row->figure[figure], text, sizeof(text));
        (void)printf("  %*s", column_width(figure), text);
    }
    (void)printf("\n");
}

/* --- JSON ------------------------------------------------------------- */

static void put_text(struct json_object *object, const char *name,
                     const char *text)
{
    (void)json_object_object_add(
        object, name, text != NULL ? json_object_new_string(text) : NULL);
}

static void put_number(struct json_object *object, const char *name,
                       int64_t number)
{
    (void)json_object_object_add(
        object, name, number >= 0 ? json_object_new_int64(number) : NULL);
}

static void put_bool(struct json_object *object, const char *name,
                     const char *text)
{
    (void)json_object_object_add(
        object, name,
        text != NULL ? json_object_new_boolean(strcmp(text, "yes") == 0)
                     : NULL);
}

static void put_figure(struct json_object *object, size_t i, double value)
{
    struct json_object *json = NULL;
    char text[64];

    if (!isnan(value)) {
        (void)snprintf(text, sizeof(text), "%.*f", bench_figures[i].digits,
                       value);
        json = json_object_new_double_s(value, text);
    }
    (void)json_object_object_add(object, bench_figures[i].name, json);
}

static void put_labels(struct json_object *object, const struct bench_row *row)
{
    put_text(object, "case", row->case_name);
    put_text(object, "kind", row->kind);
    put_text(object, "label", row->label);
    put_number(object, "consumers", row->consumers);
    put_bool(object, "lock", row->lock);
    put_text(object, "parking", row->parking);
    put_bool(object, "auto_ack", row->auto_ack);
    put_text(object, "ids", row->ids);
    put_text(object, "transport", row->transport);
    put_text(object, "persistence", row->persistence);
    put_number(object, "batch", row->batch);
    put_number(object, "jobs", row->jobs);
    put_number(object, "payload_bytes", row->payload_bytes);
    put_number(object, "repeat", row->repeat);
    if (row->handler != NULL)
        put_text(object, "handler", row->handler);
    if (row->concurrency >= 0)
        put_number(object, "concurrency", row->concurrency);
    if (row->topics >= 0)
        put_number(object, "topics", row->topics);
    if (row->backlog >= 0)
        put_number(object, "backlog", row->backlog);
    if (row->nodes >= 0)
        put_number(object, "nodes", row->nodes);
    if (row->node >= 0)
        put_number(object, "node", row->node);
}

static bool print_json_row(const struct bench_output *output,
                           const struct bench_row *row)
{
    struct json_object *object = json_object_new_object();
    const char *text;

    if (object == NULL)
        return false;
    put_labels(object, row);
    for (size_t i = 0; i < BENCH_FIGURE_COUNT; i++)
        if (i < BENCH_FIGURES_FIXED || !isnan(row->figure[i]))
            put_figure(object, i, row->figure[i]);
    (void)json_object_object_add(object, "server",
                                 json_object_get(output->server));
    (void)json_object_object_add(object, "host", json_object_get(output->host));
    (void)json_object_object_add(object, "build",
                                 json_object_get(output->build));
    text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
    if (text != NULL)
        (void)printf("%s\n", text);
    (void)json_object_put(object);
    return text != NULL;
}

bool bench_output_row(struct bench_output *output, const struct bench_row *row)
{
    struct bench_row *rows = realloc(output->rows, (output->row_count + 1) *
                                                       sizeof(output->rows[0]));
    bool ok = true;

    if (rows == NULL)
        return false;
    output->rows = rows;
    output->rows[output->row_count++] = *row;
    if (output->json)
        ok = print_json_row(output, row);
    else
        print_table_row(output, row);
    (void)fflush(stdout);
    return ok;
}

void bench_output_fini(struct bench_output *output)
{
    (void)json_object_put(output->server);
    (void)json_object_put(output->host);
    (void)json_object_put(output->build);
    free(output->rows);
    for (size_t i = 0; i < output->repeats_count; i++)
        free(output->repeats[i]);
    free(output->repeats);
    *output = (struct bench_output){0};
}

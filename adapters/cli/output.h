/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_OUTPUT_H
#define WEIR_CLI_OUTPUT_H

/* What commands print on stdout: JSON objects with fixed names, and text for
 * people. Functions that make a json_object return NULL when out of memory;
 * the caller releases with json_object_put. */

#include "adapters/cli/cli.h"

#include <json-c/json.h>
#include <stdio.h>
#include <weir/weir.h>

/* An object with all the fields of a job. */
struct json_object *weir__job_json(const char *topic,
                                   const struct weir_job_info *job);

/* The same as lines "name  value". */
void weir__job_print(const char *topic, const struct weir_job_info *job);

struct json_object *weir__stats_json(const struct weir_stats *stats);

/* Text of foreign bytes; what is not UTF-8 becomes U+FFFD. */
struct json_object *weir__text_json(struct weir_slice text);

/* Put `value` (taken) under `name`; false when either is missing memory. */
bool weir__json_put(struct json_object *object, const char *name,
                    struct json_object *value);

/* JSON null, which json-c keeps as NULL, under `name`. */
bool weir__json_put_null(struct json_object *object, const char *name);

/* One line to stdout; takes `object`. False when out of memory, said. */
bool weir__json_print_line(struct json_object *object);

/* {"topic":TOPIC,WORD:count}, or "WORD count"; false when out of memory,
 * said. */
bool weir__print_count(const struct weir__cli *cli, const char *topic,
                       const char *word, uint64_t count);

/* `before` and a value to stdout, on a line that goes on; NULL is null. False
 * when out of memory: then nothing is printed. */
bool weir__print_json(const char *before, struct json_object *object);

/* Foreign bytes to stdout, as core/visible.h shows them. */
void weir__print_text(struct weir_slice text);

/* A table: columns as wide as their widest cell, numbers to the right. Cells
 * are copied. A zeroed struct with `columns` set is an empty one. */
enum { WEIR__TABLE_COLUMNS = 16 };

struct weir__table {
    size_t columns; /* at most WEIR__TABLE_COLUMNS */
    size_t rows;
    size_t widest[WEIR__TABLE_COLUMNS]; /* cell of each, in bytes */
    char (*cells)[64];
};
bool weir__table_add(struct weir__table *table, const char *const *row);
void weir__table_print(const struct weir__table *table);
void weir__table_fini(struct weir__table *table);

#endif

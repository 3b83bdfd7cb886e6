/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_OUTPUT_H
#define WEIR_CLI_OUTPUT_H

/* What commands print on stdout: JSON objects with fixed names, and text for
 * people. A json_object that is NULL says that there was no memory for it; who
 * has one releases it with json_object_put. */

#include "adapters/cli/cli.h"

#include <json-c/json.h>
#include <stdio.h>
#include <weir/weir.h>
#include <weir/worker.h>

/* A field of an object, made by a function below. */
struct weir__field {
    const char *name;          /* NULL: no field */
    struct json_object *value; /* owned; NULL: null, or no memory */
    bool is_null, is_end;
};

/* `value` is taken; NULL: out of memory. */
struct weir__field weir__field(const char *name, struct json_object *value);
struct weir__field weir__field_null(const char *name);
/* Foreign bytes; what is not UTF-8 becomes U+FFFD, and no bytes null. */
struct weir__field weir__field_text(const char *name, struct weir_slice text);
/* The same of a string; only NULL becomes null. */
struct weir__field weir__field_str(const char *name, const char *text);
struct weir__field weir__field_number(const char *name, uint64_t number);
/* Below 0: null. */
struct weir__field weir__field_int(const char *name, int64_t number);
struct weir__field weir__field_bool(const char *name, bool is_true);

/* An object of fields, which are taken; those without a name are left out. */
#define WEIR__OBJECT(...) \
    weir__object((const struct weir__field[]){__VA_ARGS__, {.is_end = true}})
struct json_object *weir__object(const struct weir__field *fields);

/* One more, of an object that may be NULL, and becomes so without memory. */
void weir__object_put(struct json_object **object, struct weir__field field);

/* Add to an array and return it; both are taken, and may be NULL. */
struct json_object *weir__array_with(struct json_object *array,
                                     struct json_object *value);

/* An object with all the fields of a job. */
struct json_object *weir__job_json(const char *topic,
                                   const struct weir_job_info *job);

/* The same of a worker; NULL: no memory. */
struct json_object *weir__worker_json(const struct weir_worker *worker);

/* A job as lines "name  value". */
void weir__job_print(const char *topic, const struct weir_job_info *job);

/* "  added TIME" in a line that goes on; nothing where nobody knows. */
void weir__job_print_added(const struct weir_job_info *job);

/* One line to stdout; takes `object`. What to exit with; of NULL it is said
 * that there is no memory. */
enum weir__exit weir__print_object(struct json_object *object);

/* {"topic":TOPIC,WORD:count}, or "WORD count"; what to exit with. */
enum weir__exit weir__print_count(const struct weir__cli *cli,
                                  const char *topic, const char *word,
                                  uint64_t count);

/* `before` and a value to stdout, on a line that goes on; NULL is null. False
 * when out of memory: then nothing is printed. */
bool weir__print_json(const char *before, struct json_object *object);

/* Foreign bytes to stdout, as core/visible.h shows them. */
void weir__print_text(struct weir_slice text);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_FOLLOWED_H
#define WEIR_CLI_FOLLOWED_H

/* Jobs that a handler added with its verdict, as weir plugin try shows them. A
 * NULL trial has none. */

#include <json-c/json.h>
#include <weir/test.h>

/* A line for each: "adds     TOPIC ID in 15s: BODY". */
void weir__followed_print(const struct weir_trial *trial);

/* [{"topic":"t","id":"1","delay_ms":0,"body":null}]; NULL: out of memory. */
struct json_object *weir__followed_json(const struct weir_trial *trial);

#endif

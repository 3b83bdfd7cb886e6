/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_COUNTED_H
#define WEIR_CLI_COUNTED_H

/* What handlers counted, as commands show it. */

#include <json-c/json.h>
#include <weir/test.h>

#include "core/error.h"

/* Log "TOPIC counters: sent=12 retried=3", in as many lines as it takes;
 * nothing for a topic without counters, or that is not served. */
void weir__counted_log(const struct weir_reactor *reactor, const char *topic,
                       const struct weir__log *log);

/* Print "counters sent=12 retried=3" unless there are none. Here and below a
 * NULL trial has none. */
void weir__counted_print(const struct weir_trial *trial);

/* {"sent":12}; NULL: out of memory. */
struct json_object *weir__counted_json(const struct weir_trial *trial);

#endif

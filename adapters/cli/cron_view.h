/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_CRON_VIEW_H
#define WEIR_CLI_CRON_VIEW_H

/* How weir cron shows a schedule. One that cannot be read is shown with why. */

#include <weir/cron.h>

struct json_object;

/* Owned by the caller; NULL: no memory. */
struct json_object *weir__cron_json(const char *topic,
                                    const struct weir_cron_info *info);

/* Print the line of weir cron list. */
void weir__cron_print_row(const char *topic, const struct weir_cron_info *info);

/* A line for each field, and the next times. */
void weir__cron_print(const char *topic, const struct weir_cron_info *info);

#endif

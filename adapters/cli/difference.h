/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_DIFFERENCE_H
#define WEIR_CLI_DIFFERENCE_H

/* What two readings of a configuration file say differently. Pure functions.
 */

#include "adapters/cli/services.h"
#include "core/buf.h"

bool weir__is_same_text(const char *one, const char *other); /* or NULL */

/* The same plugin with the same options? */
bool weir__is_same_handler(const struct weir__service *one,
                           const struct weir__service *other);

bool weir__is_served_alike(const struct weir__service *was,
                           const struct weir__service *now);

/* Append "concurrency 4 to 8, handler F.so to G.so"; nothing where the topic
 * is served alike. */
void weir__difference_put(struct weir__buf *text,
                          const struct weir__service *was,
                          const struct weir__service *now);

#endif

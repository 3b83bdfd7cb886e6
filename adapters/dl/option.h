/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DL_OPTION_H
#define WEIR_DL_OPTION_H

/* The options that plugins declare: checks of the declarations, and reading
 * what somebody gave for them. Knows nothing of shared objects. */

#include <weir/plugin.h>

/* Check every declared option: name, type, bounds, choices, that its fallback
 * parses, that no name comes twice. `path` goes into sentences. WEIR_EABI
 * (option_size), WEIR_EINVAL. */
int weir__option_table_check(const struct weir_plugin *plugin, const char *path,
                             struct weir_error *err);

/* Read `count` texts "key=value" for a checked table. `*ret_values` has one
 * element for each declared option (never NULL) and is released with
 * weir__mem_free; its texts are borrowed from `options` and the table.
 * WEIR_EINVAL with a sentence, WEIR_ENOMEM. */
int weir__option_values(const struct weir_plugin *plugin,
                        const char *const *options, size_t count,
                        struct weir_option_value **ret_values,
                        struct weir_error *err);

/* Whether one such text gives a value to an option that is secret. */
bool weir__option_is_secret(const struct weir_plugin *plugin,
                            const char *given);

#endif

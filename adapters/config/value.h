/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_VALUE_H
#define WEIR_CONFIG_VALUE_H

/* What a value may say: reading numbers within their bounds, checking texts.
 * Pure functions over core/option.h; errors begin with the place. */

#include "adapters/config/option.h"

/* Read a number in the option's form. */
int weir__config_number_read(const struct weir__config_option *option,
                             const char *text, int64_t *ret_value,
                             const struct weir__config_place *place);

/* Check a text, or one element of a list. */
int weir__config_text_check(const struct weir__config_option *option,
                            const char *text,
                            const struct weir__config_place *place);

#endif

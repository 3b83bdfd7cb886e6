/* SPDX-License-Identifier: MIT */
#ifndef WEIR_JSON_STRICT_H
#define WEIR_JSON_STRICT_H

/* What json-c lets pass, some of it even when told to be strict, and what would
 * change the value without a word: a comma before an end, integers beyond 64
 * bits (moved to the nearest bound), half surrogate pairs (replaced), keys with
 * a NUL (cut), and NaN, Infinity, keys in single quotes, "-01", "1.", control
 * characters in strings, invalid UTF-8. Looks at one token after the other; how
 * they belong together is left to json-c. Knows no json-c. */

#include <weir/base.h>

/* WEIR_EINVAL with a sentence; bytes are counted from 1. `err` may be NULL. */
int weir__json_strict(struct weir_slice json, struct weir_error *err);

#endif

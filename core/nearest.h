/* SPDX-License-Identifier: MIT */
#ifndef WEIR_NEAREST_H
#define WEIR_NEAREST_H

/* "Did you mean": the name that a mistyped one was meant to be. */

#include <stddef.h>

/* Name number `i` of `names`, which is whatever the caller has. */
typedef const char *(*weir__name_fn)(const void *names, size_t i);

/* The name nearest to `text`, when a slip leads from one to the other: at most
 * one letter of three is inserted, dropped, changed or swapped with the next.
 * Of equals the first; NULL: none is. */
const char *weir__nearest(const char *text, const void *names, size_t count,
                          weir__name_fn get);

#endif

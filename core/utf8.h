/* SPDX-License-Identifier: MIT */
#ifndef WEIR_UTF8_H
#define WEIR_UTF8_H

/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above
 * U+10FFFF. Stricter than json-c, which only counts continuation bytes. */

#include <weir/base.h>

/* The bytes of the first character, 1 to 4; 0 when there is none or it is not
 * valid. */
size_t weir__utf8_length(struct weir_slice text);

/* How many bytes at the start of `text` are valid characters. */
size_t weir__utf8_valid(struct weir_slice text);

#endif

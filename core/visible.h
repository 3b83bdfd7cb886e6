/* SPDX-License-Identifier: MIT */
#ifndef WEIR_VISIBLE_H
#define WEIR_VISIBLE_H

/* Foreign text where people read it: on a terminal, in a log line. Hidden is
 * what a terminal obeys (C0, DEL, C1), what ends a line there (also U+2028 and
 * U+2029), what turns the direction of the text around it (U+061C, U+200E,
 * U+200F, U+202A to U+202E, U+2066 to U+2069) and each byte that is no UTF-8;
 * all else is shown as it is, the backslash too. An escape stands for what is
 * hidden: \n, \r, \t, \x1b for a byte, \u202e for a character. */

#include <weir/base.h>

/* How many bytes at the start of `text` are shown as they are. */
size_t weir__visible_length(struct weir_slice text);

/* The first character of `text` where that is hidden: its code point, at most
 * 0xffff, or WEIR__NO_CHARACTER for a byte that is no UTF-8. `text` is not
 * empty; the character is taken off it. */
enum { WEIR__NO_CHARACTER = -1 };
int32_t weir__hidden_take(struct weir_slice *text);

/* The same, as its escape. */
enum { WEIR__ESCAPE_CAP = 8 };
const char *weir__escape_take(struct weir_slice *text,
                              char buf[WEIR__ESCAPE_CAP]);

/* Take off `text` what fits into `buf` of `cap` bytes with a NUL, no character
 * in part; returns the length without the NUL. */
size_t weir__visible_take(struct weir_slice *text, char *buf, size_t cap);

/* What vsnprintf made of `cap` bytes and returned, as a slice: without the
 * character that it may have cut in two. */
struct weir_slice weir__visible_formatted(const char *text, size_t cap,
                                          int wanted);

#endif

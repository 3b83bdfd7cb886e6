/* SPDX-License-Identifier: MIT */
#ifndef WEIR_JSON_READ_H
#define WEIR_JSON_READ_H

/* JSON text, read from its beginning to its end without a tree: values become
 * msgpack at once. Strict (RFC 8259), in every locale. Integers keep all of
 * their signed or unsigned 64 bits; what does not fit is refused, not rounded.
 * Of equal keys of an object the last counts. Refused are also numbers that are
 * not finite, invalid UTF-8, half surrogate pairs, a NUL in a key, and more
 * than 32 levels (a scalar is one).
 *
 * Each function skips blanks first. What fails is WEIR_EINVAL with a sentence
 * (what is wrong and at which byte, counted from 1; of a number that is not
 * finite its text instead), or WEIR_ENOMEM; then nothing more can be read. */

#include "core/buf.h"

struct weir__json_read {
    const uint8_t *start, *at, *end; /* borrowed */
    struct weir_error *err;          /* NULL: none is wanted */
};

/* `err` may be NULL. WEIR_EINVAL: the text is empty. */
int weir__json_read_init(struct weir__json_read *read, struct weir_slice json,
                         struct weir_error *err);

/* The next byte; 0 at the end. */
uint8_t weir__json_read_peek(struct weir__json_read *read);

/* Take this byte; false when another one comes. */
bool weir__json_read_sign(struct weir__json_read *read, char sign);

/* Take a string; its bytes are appended to `buf`. */
int weir__json_read_text(struct weir__json_read *read, struct weir__buf *buf);

/* Take a string and the colon behind it: a key, which has no NUL. */
int weir__json_read_key(struct weir__json_read *read, struct weir__buf *buf);

/* Take the comma behind an element; or `end`, '}' or ']', which is the last. */
int weir__json_read_next(struct weir__json_read *read, char end,
                         bool *ret_is_last);

/* Take a number or a word and append its msgpack form. */
int weir__json_read_scalar(struct weir__json_read *read, struct weir__buf *buf);

/* Take one value and append its msgpack form. On failure nothing of it stays.
 */
int weir__json_read_value(struct weir__json_read *read, struct weir__buf *buf);

/* Nothing may come any more. */
int weir__json_read_end(struct weir__json_read *read);

/* Refuse what is here. Returns WEIR_EINVAL. */
int weir__json_read_refuse(struct weir__json_read *read, const char *what);

#endif

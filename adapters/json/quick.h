/* SPDX-License-Identifier: MIT */
#ifndef WEIR_JSON_QUICK_H
#define WEIR_JSON_QUICK_H

/* JSON to msgpack in one pass, for what is simple: the hot path of adding
 * jobs by the million. It never says what is wrong: a mistake, and whatever it
 * does not know to be right and of one meaning (\u escapes, equal keys,
 * exponents, integers of 19 digits, objects of more than 32 keys), is left to
 * weir__json_to_msgpack. What it takes, it turns into the same bytes as that
 * does. Knows no json-c and no locale. */

#include "core/buf.h"

/* What is still to be read; borrowed. */
struct weir__json_quick {
    const uint8_t *at;
    const uint8_t *end;
};

/* Skip blanks, then take the byte `sign`; false when another one comes. */
bool weir__json_quick_sign(struct weir__json_quick *quick, char sign);

/* Whether nothing but blanks is left; they are skipped. */
bool weir__json_quick_is_done(struct weir__json_quick *quick);

/* Take a string without escapes; the slice points into the text. False: not
 * one, and `quick` has moved. */
bool weir__json_quick_text(struct weir__json_quick *quick,
                           struct weir_slice *ret_text);

/* Take one value and append its msgpack form. WEIR_EINVAL: not a simple one;
 * WEIR_ENOMEM. On failure `quick` has moved, and nothing stays in `buf`. */
int weir__json_quick_value(struct weir__json_quick *quick,
                           struct weir__buf *buf);

#endif

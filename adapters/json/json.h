/* SPDX-License-Identifier: MIT */
#ifndef WEIR_JSON_H
#define WEIR_JSON_H

/* Between JSON and msgpack, over json-c and msgpack-c. Integers keep all of
 * their signed or unsigned 64 bits; what does not fit is refused, not rounded.
 * Lack of memory inside json-c 0.16 itself cannot always be told from success
 * (it ignores some of its own failures); what is allocated here is checked. */

#include "core/buf.h"

struct json_object;

/* Append the msgpack form of one JSON text to `buf`. WEIR_EINVAL with a
 * sentence (what is wrong and at which byte, counted from 1; of a number that
 * is not finite its text instead): broken JSON, text behind the value, integers
 * beyond 64 bits, numbers that are not finite, invalid UTF-8, half surrogate
 * pairs, a NUL in a key, more than 32 levels (a scalar is one). Of equal keys
 * json-c keeps the last. WEIR_ENOMEM. Nothing stays in `buf` on failure. `err`
 * may be NULL. */
int weir__json_to_msgpack(struct weir_slice json, struct weir__buf *buf,
                          struct weir_error *err);

/* The same from a parsed value, borrowed. */
int weir__json_object_to_msgpack(struct json_object *json,
                                 struct weir__buf *buf, struct weir_error *err);

/* Parse JSON strictly; the caller releases with json_object_put. `*ret_json`
 * is NULL for the text "null". Errors as above. */
int weir__json_parse(struct weir_slice json, struct json_object **ret_json,
                     struct weir_error *err);

/* A json-c value of a msgpack value, released with json_object_put; NULL for
 * nil and for an empty slice. Binary becomes {"$bin": base64}, an extension
 * {"$ext": type, "data": base64}; a non-finite float becomes null; other floats
 * keep their value and are printed so that they remain floats; map keys that
 * are no strings become their JSON text; each byte that is not UTF-8, and NUL
 * in a key, is replaced by U+FFFD; of equal keys the first counts.
 * WEIR_EMALFORMED, WEIR_ENOMEM (also: a string beyond 2 GiB). */
int weir__json_from_msgpack(struct weir_slice value,
                            struct json_object **ret_json);

/* One line of JSON into `buf`, like snprintf: writes at most `cap` bytes with
 * the NUL, returns the full length without it. 0 means out of memory, or bytes
 * that are no msgpack value; `buf` is then untouched. */
size_t weir__json_print(struct weir_slice value, char *buf, size_t cap);

#endif

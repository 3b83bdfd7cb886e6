/* SPDX-License-Identifier: MIT */
#ifndef WEIR_JSON_H
#define WEIR_JSON_H

/* Between JSON and msgpack. To print, msgpack becomes a tree of json-c's, whose
 * lack of memory cannot always be told from success (0.16 ignores some of its
 * own failures); what is allocated here is checked. */

#include "core/buf.h"

struct json_object;

/* Append the msgpack form of one JSON text to `buf`; read.h says what is
 * refused. Nothing stays in `buf` on failure. `err` may be NULL. */
int weir__json_to_msgpack(struct weir_slice json, struct weir__buf *buf,
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

/* A value as one line of JSON, with \u for what core/visible.h would hide.
 * Borrowed from `json`, or from `buf` where that differs from the text of
 * json-c; the caller releases both. False when out of memory. */
bool weir__json_line(struct json_object *json, struct weir__buf *buf,
                     struct weir_slice *ret_line);

/* The same of a msgpack value into `buf`, like snprintf: writes at most `cap`
 * bytes with the NUL, returns the full length without it. 0 means out of
 * memory, or bytes that are no msgpack value; `buf` is then untouched. */
size_t weir__json_print(struct weir_slice value, char *buf, size_t cap);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H

/* The small grammars people type: durations, ids, topics. Pure functions. */

#include <weir/base.h>

static inline struct weir_slice weir__slice_of(const void *ptr, size_t len)
{
    return (struct weir_slice){ptr, len};
}

/* The bytes of a C string without its NUL; NULL gives an empty slice. */
struct weir_slice weir__slice_str(const char *text);

bool weir__slice_equal(struct weir_slice one, struct weir_slice other);

/* A hash of the bytes, for tables in memory. */
size_t weir__slice_hash(struct weir_slice slice);

enum { WEIR__TEXT_QUOTE_CAP = 52 };

/* What a sentence may quote of a text: at most 48 bytes as core/visible.h shows
 * them, then "...". Writes a NUL and returns `buf`. */
const char *weir__text_quote(struct weir_slice text,
                             char buf[WEIR__TEXT_QUOTE_CAP]);

/* A duration: digits and one of w d h m s ms ("250ms", "15s", "0ms"), or
 * several of these from the largest on ("1h30m"), never a bare number.
 * WEIR_EINVAL with a sentence that quotes the text; overflow beyond 3,650 d is
 * an error too. `err` may be NULL. */
int weir__duration_parse(struct weir_slice text, int64_t *ret_ms,
                         struct weir_error *err);

/* Write the shortest exact form ("90s", "1500ms", "2h", "0ms"); returns its
 * length, at most 23. `buf` gets a NUL. */
size_t weir__duration_format(int64_t ms, char buf[24]);

/* An id a caller may choose: 1 to 128 bytes of 0x21 to 0x7E, no braces, not
 * beginning with '@' or '!'. WEIR_EINVAL with a sentence. */
int weir__id_check(struct weir_slice id, struct weir_error *err);

/* An id of a job that may exist: as above, or one made by weir. */
int weir__id_check_any(struct weir_slice id, struct weir_error *err);

/* The same of bytes that a server or another program wrote: what is none goes
 * to no handler, log or terminal. */
bool weir__id_is_sound(struct weir_slice id);

/* A group of a bounded topic: the bytes of an id. WEIR_EINVAL. */
int weir__group_check(struct weir_slice group, struct weir_error *err);
bool weir__group_is_sound(struct weir_slice group);

/* A topic: 1 to 40 of [A-Za-z0-9._:-]. WEIR_EINVAL with a sentence. */
int weir__topic_check(struct weir_slice topic, struct weir_error *err);

/* The value of a hexadecimal digit; -1: it is none. */
int weir__hex_digit(char c);

/* A size in bytes: digits with an optional KiB, MiB, GiB. WEIR_EINVAL with a
 * sentence that quotes the text. */
int weir__size_parse(struct weir_slice text, int64_t *ret_bytes,
                     struct weir_error *err);

#endif

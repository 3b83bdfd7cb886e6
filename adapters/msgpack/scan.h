/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MSGPACK_SCAN_H
#define WEIR_MSGPACK_SCAN_H

/* Reading msgpack without allocating and without trusting a byte of it.
 * msgpack-c believes the counts in its input (five bytes can make it allocate
 * gigabytes) and reports nesting beyond 32 as lack of memory; so everything
 * that came from outside is scanned here before it is unpacked or read. */

#include <weir/plugin.h>

enum { WEIR__DEPTH_MAX = 32 };

/* Check that `bytes` is exactly one well-formed value nested at most 32 deep
 * (a scalar has depth 1), with nothing behind it. WEIR_EMALFORMED. */
int weir__msgpack_check(struct weir_slice bytes);

/* The length of the first value in `bytes`, checked in the same way, or 0 when
 * there is none. */
size_t weir__msgpack_length(struct weir_slice bytes);

/* Decode the value at the start of checked bytes, not its children. Returns
 * the length of its head (for scalars and strings: of all of it); 0 and
 * WEIR_TYPE_NONE when there is no value. The type of an extension is the byte
 * before as.bytes. */
size_t weir__msgpack_head(struct weir_slice bytes,
                          struct weir_value *ret_value);

/* Find the value at `path` (see weir_job_value) in checked bytes. On bytes
 * that were not checked this and the above find nonsense, but never read
 * beyond them. */
void weir__msgpack_find(struct weir_slice body, const char *path,
                        struct weir_value *ret_value);

#endif

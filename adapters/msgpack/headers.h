/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MSGPACK_HEADERS_H
#define WEIR_MSGPACK_HEADERS_H

/* The headers of a job as its record has them: a map of str to str, beside
 * what weir keeps there itself (origin.h). */

#include "core/buf.h"
#include "core/header.h"

/* Append the map of up to 255 bytes in each text; errors are sticky in `buf`.
 */
void weir__headers_write(struct weir__buf *buf,
                         const struct weir_header *headers, size_t count);

/* Those of a checked map that are sound, the first of a name, as many as a job
 * may have; they point into it. Returns how many. */
size_t weir__headers_read(struct weir_slice map,
                          struct weir_header ret_headers[WEIR_MAX_HEADERS]);

/* A map of texts, however many and whatever is in them: WEIR_EINVAL where there
 * are more than `cap`, or another value. */
int weir__headers_list(struct weir_slice map, struct weir_header *ret_headers,
                       size_t cap, size_t *ret_count);

#endif

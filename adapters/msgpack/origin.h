/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MSGPACK_ORIGIN_H
#define WEIR_MSGPACK_ORIGIN_H

/* Where a job was before it died and moved to the topic of `on_dead`, kept in
 * the headers of its record: "weir.topic" str, "weir.id" str, "weir.token"
 * uint, "weir.died_ms" uint, "weir.error" str. */

#include "core/buf.h"
#include "core/record.h"

/* Append a map of these and of what is in the map `headers` (empty: none) to
 * `buf`; reason and attempts are the record's. Texts of more than 255 bytes are
 * cut, errors are sticky. False, and nothing is appended, when there is no room
 * for more headers. */
bool weir__origin_write(struct weir__buf *buf, const struct weir_origin *origin,
                        struct weir_slice headers);

/* The origin in the headers of a record; slices point into them. False: there
 * is none. */
bool weir__origin_read(struct weir_slice headers,
                       struct weir_origin *ret_origin);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MSGPACK_RECORD_H
#define WEIR_MSGPACK_RECORD_H

/* How a job's record is written: a msgpack array
 *   [version, attempt, failures, timeouts, crashes, snoozes, options, body]
 * with version 1, or 2 of a tick, which has `cron`; options is nil or a map
 * with any of the names that are in core/record.h: texts are str, durations and
 * counts uint. Unknown keys are ignored on reading. The body is any msgpack
 * value. */

#include "core/buf.h"
#include "core/record.h"

/* Append the record; an empty body is written as nil. Errors are sticky in
 * `buf`. The body must have been checked. */
void weir__record_write(struct weir__buf *buf,
                        const struct weir__record *record);

/* Decode without allocating; slices point into `bytes`. WEIR_EMALFORMED, or
 * WEIR_ENEWER when the version is above 2. */
int weir__record_read(struct weir_slice bytes, struct weir__record *ret_record);

#endif

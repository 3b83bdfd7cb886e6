/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MSGPACK_ATTEMPTS_H
#define WEIR_MSGPACK_ATTEMPTS_H

/* The attempts of a job as its record has them: an array, oldest first, of
 * arrays of ended_ms (uint), outcome (uint, in the order of enum
 * weir_attempt_outcome), error (str) and worker (str). Others may have written
 * it. */

#include <weir/past.h>

#include "core/buf.h"

/* Append the last WEIR_MAX_ATTEMPTS of `count`, 2 KiB at most: texts are cut,
 * between characters where they are UTF-8. Errors are sticky in `buf`. */
void weir__attempts_write(struct weir__buf *buf,
                          const struct weir_attempt *attempts, size_t count);

/* The last ones of a checked array, or of nothing, that are attempts; their
 * texts point into it and are no longer than those that are written. Returns
 * how many. */
size_t weir__attempts_read(struct weir_slice array,
                           struct weir_attempt ret_attempts[WEIR_MAX_ATTEMPTS]);

#endif

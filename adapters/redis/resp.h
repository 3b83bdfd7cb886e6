/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_RESP_H
#define WEIR_REDIS_RESP_H

/* Writing RESP commands: weir__resp_command(buf, argc), then argc arguments.
 * Errors are sticky in the buffer. */

#include "adapters/redis/script.h"
#include "core/buf.h"

void weir__resp_command(struct weir__buf *buf, size_t argc);
void weir__resp_bytes(struct weir__buf *buf, struct weir_slice bytes);
void weir__resp_str(struct weir__buf *buf, const char *text);
void weir__resp_int(struct weir__buf *buf, int64_t value);

/* A whole command; `words` end with NULL. */
void weir__resp_words(struct weir__buf *buf, const char *const *words);

/* Begin EVALSHA with `keys` keys and `args` arguments. */
void weir__resp_eval(struct weir__buf *buf, const struct weir__script *script,
                     size_t keys, size_t args);

/* Begin an argument whose `len` bytes the caller appends itself to buf and then
 * ends with weir__resp_end. */
void weir__resp_begin(struct weir__buf *buf, size_t len);
void weir__resp_end(struct weir__buf *buf);

#endif

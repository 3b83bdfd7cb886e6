/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_REPLY_H
#define WEIR_REDIS_REPLY_H

/* Taking replies apart. Nothing in them is trusted to be there. */

#include "core/store.h"

struct redisReply;

/* An element of an array reply; false if it is not there or of another type. A
 * NUL follows the bytes of a string. */
bool weir__reply_int(const struct redisReply *reply, size_t index,
                     int64_t *ret_value);
bool weir__reply_str(const struct redisReply *reply, size_t index,
                     struct weir_slice *ret_value);

/* A time of the server in us: also false where no time is so far away that an
 * int64_t could not hold its nanoseconds. */
bool weir__reply_time(const struct redisReply *reply, size_t index,
                      int64_t *ret_us);

/* What TIME answers, in ms. */
bool weir__reply_clock(const struct redisReply *reply, int64_t *ret_ms);

/* The settings of an array reply of names and values, in byte order, borrowed;
 * free the array with weir__mem_free. NULL: no memory. */
struct weir__setting *weir__settings_read(const struct redisReply *reply,
                                          size_t *ret_count);

#endif

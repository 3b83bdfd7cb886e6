/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_REPLY_GUARD_H
#define WEIR_CONN_REPLY_GUARD_H

/* Stands between hiredis' parser and its reply dispatch, which aborts the
 * process on a reply that nobody asked for and on malformed pushed messages.
 * The guard counts the commands under way and refuses such a reply while it is
 * being parsed; hiredis then closes the connection like on any bad input. */

#include <stdbool.h>

#include "adapters/redis/conn/compat.h"

struct weir__reply_guard {
    struct redisReplyObjectFunctions fn;          /* ours */
    const struct redisReplyObjectFunctions *base; /* hiredis' own */
    size_t outstanding;                           /* replies to come */
    bool is_subscribed; /* pushed messages are welcome */
    bool has_refused;   /* a reply was refused: say so in the error text */
};

/* Put it in front of a fresh context; it must outlive the context. */
void weir__reply_guard_install(struct weir__reply_guard *guard,
                               struct redisAsyncContext *context);

#endif

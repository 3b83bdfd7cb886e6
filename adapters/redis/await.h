/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_AWAIT_H
#define WEIR_REDIS_AWAIT_H

/* One answer on a blocking connection, bounded in time and memory: hiredis' own
 * wait begins anew with each byte, and takes a reply of any size. */

#include "adapters/redis/conn/reply_guard.h"

struct weir__await {
    redisContext *context; /* kept, not owned */
    int limit_ms;
    struct weir__reply_guard guard;
    struct ssl_st *ssl; /* the context's; NULL: no TLS */
};

/* `await` must outlive the context, which is a fresh one without error; what
 * weir__tls_finish made of it where there is an `ssl`. */
void weir__await_init(struct weir__await *await, redisContext *context,
                      struct ssl_st *ssl, int limit_ms);

/* Send what was appended to the context, wait for the whole answer. NULL: none
 * within the limit, or too large a one (64 MiB), or the connection is gone; the
 * context's error says so, and every later question fails, too. The reply is
 * released with freeReplyObject. BLOCKS for at most `limit_ms`, and as long
 * again where the peer does not read. */
redisReply *weir__await_reply(struct weir__await *await);

#endif

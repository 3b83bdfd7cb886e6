/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_REPLY_GUARD_H
#define WEIR_CONN_REPLY_GUARD_H

/* Stands between hiredis' parser and whoever takes the replies. hiredis aborts
 * the process on a reply that nobody asked for and on malformed pushed
 * messages, and it holds a reply of any size and, since 1.0, of any depth. The
 * guard refuses these while they are being parsed: it knows how many replies
 * are to come, which channel is heard, and how much memory the reply under way
 * takes. hiredis then closes the connection like on any bad input. */

#include <stdbool.h>
#include <stdint.h>

#include "adapters/redis/conn/compat.h"

enum {
    WEIR__REPLY_BYTES =
        64 * 1024 * 1024,        /* of a reply, where the owner says nothing */
    WEIR__PUSH_BYTES = 64 * 1024 /* of what nobody asked for */
};

enum weir__refusal {
    WEIR__REFUSAL_NONE,
    WEIR__REFUSAL_UNASKED,
    WEIR__REFUSAL_TOO_LARGE,
    WEIR__REFUSAL_TOO_DEEP
};

struct weir__reply_guard {
    struct redisReplyObjectFunctions fn;          /* ours */
    const struct redisReplyObjectFunctions *base; /* hiredis' own */
    size_t outstanding;  /* replies to come; the owner counts */
    size_t most;         /* bytes of one; the owner may change it */
    const char *channel; /* what is pushed there is welcome once the handshake
                            is answered; kept; NULL: no such messages */
    bool is_confirmed;   /* the subscription is */
    enum weir__refusal refusal;
    size_t bytes;     /* of the last reply that begun, as far as it is parsed */
    uint64_t replies; /* that begun to be parsed */
};

/* Put it in front of a fresh reader; it must outlive the reader. */
void weir__reply_guard_install(struct weir__reply_guard *guard,
                               redisReader *reader);

/* What it refused, in words. */
void weir__reply_guard_explain(const struct weir__reply_guard *guard,
                               char *text, size_t cap);

/* To be asked after each read: may what is not parsed yet be so long? */
bool weir__reply_guard_admits_rest(struct weir__reply_guard *guard,
                                   const redisReader *reader);

/* The number of the reply of which a part has come; 0: none. */
uint64_t weir__reply_guard_under_way(const struct weir__reply_guard *guard,
                                     const redisReader *reader);

#endif

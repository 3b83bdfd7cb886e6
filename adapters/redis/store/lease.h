/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_LEASE_H
#define WEIR_STORE_LEASE_H

/* What one claim took, under one token: from the claim's answer until the
 * answer to its last verdict.
 *
 *   claimed --> out --> settling --> ended
 *                        |    ^
 *                        v    |
 *                       held back       a full server; a second try
 *
 * A topic's list of leases is what renewal, keeper and shutdown walk. The
 * struct of a kind begins with this one; the kind frees it. */

#include "adapters/redis/store/store.h"

struct weir__lease {
    struct weir__store_topic *topic;
    struct weir__lease *previous, *next; /* of the topic */
    uint64_t token;
};

/* On the topic's list from now on, under this token; zeroed before. What the
 * kind's `renew` reads of it is set before, and changes only while the keeper's
 * gate is shut. */
void weir__lease_begin(struct weir__lease *lease,
                       struct weir__store_topic *topic, uint64_t token);

/* Off the list, if it was on it. */
void weir__lease_end(struct weir__lease *lease);

/* How the answer of a claim script begins, where one claim is one lease:
 * { time in us, token, us until there is more to do, count, state }. */
struct weir__claim_head {
    int64_t time_us;
    uint64_t token;   /* of use where something was claimed */
    int64_t revision; /* of the stored options */
};

/* WEIR_EKIND: of a topic of another kind. WEIR_ESERVER: none, or it contradicts
 * itself; what was claimed comes back by itself. */
int weir__claim_read(const struct redisReply *reply, size_t room,
                     struct weir__claimed *ret_claimed,
                     struct weir__claim_head *ret_head);

/* The argument of each claim by which tokens outlive a server: its identity,
 * and until this connection brought a token the largest that this process was
 * given (scripts/lib/server.lua). It is true of this connection only:
 * WEIR__SEND_HERE. The second: without the identity, for another connection. */
void weir__claim_write_server(struct weir__buf *buf,
                              const struct weir__store_topic *topic);
void weir__claim_write_floor(struct weir__buf *buf,
                             const struct weir__store_topic *topic);

/* A claim was given this one. */
void weir__claim_note_token(struct weir__store_topic *topic, uint64_t token);

/* Prolong all leases of the topic; those that are gone are reported as lost.
 * False: its server is away, or does not have its place now; it is told
 * later. */
bool weir__leases_renew(struct weir__store_topic *topic, int64_t lease_ms);

/* How many there are from `lease` on, up to `most`, for which `is_kept` holds
 * (NULL: all). */
size_t weir__leases_count(const struct weir__lease *lease, size_t most,
                          bool (*is_kept)(const struct weir__lease *));

/* --- prolonging ----------------------------------------------------------- */

/* Calls that prolong leases, or settle an overdue run, one behind the other.
 * They are written by the rules of a kind, and sent by the loop thread or by
 * the keeper. One that prolongs answers with a list of tokens: leases that are
 * gone. */
struct weir__renewals {
    struct weir__store_topic *topic; /* of the calls that are written next */
    struct weir__buf bytes;
    size_t begun; /* where the call that is being written begins */
    /* Not NULL: the process ends so, and the calls say that instead. */
    const char *crash;
};

/* One of them. */
struct weir__renewal {
    struct weir__store_topic *topic;
    const struct weir__script *script; /* NULL: a plain command */
    size_t len;
    struct weir_slice command; /* borrowed */
};

/* Begin a call of the script, NULL for a plain command; it is written to
 * `renewals->bytes`. */
void weir__renewals_begin(struct weir__renewals *renewals,
                          const struct weir__script *script);
void weir__renewals_end(struct weir__renewals *renewals);

/* The call at `*at`, which is moved behind it; begin with 0. False: there is
 * none. */
bool weir__renewals_next(const struct weir__renewals *renewals, size_t *at,
                         struct weir__renewal *ret_call);

#endif

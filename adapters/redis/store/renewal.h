/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_RENEWAL_H
#define WEIR_STORE_RENEWAL_H

/* Calls that prolong leases, one behind the other. They are written by the
 * rules of a kind, and sent by the loop thread or by the keeper. Each answers
 * with a list of tokens: leases that are gone. */

#include "adapters/redis/resp.h"
#include "adapters/redis/script.h"

struct weir__renewals {
    struct weir__buf bytes;
    size_t begun; /* where the call that is being written begins */
};

/* Begin a call of the script; it is written to `renewals->bytes`. */
void weir__renewals_begin(struct weir__renewals *renewals,
                          const struct weir__script *script);
void weir__renewals_end(struct weir__renewals *renewals);

/* The call at `*at`, which is moved behind it; an empty slice: there is none.
 * Begin with 0. */
struct weir_slice weir__renewals_next(const struct weir__renewals *renewals,
                                      size_t *at,
                                      const struct weir__script **ret_script);

void weir__renewals_reset(struct weir__renewals *renewals);
void weir__renewals_fini(struct weir__renewals *renewals);

#endif

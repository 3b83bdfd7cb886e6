/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_ADD_CALL_H
#define WEIR_DELAY_ADD_CALL_H

/* A call of one of the scripts that add jobs: what it says. */

#include "adapters/redis/delay/private.h"
#include "adapters/redis/store/confirm.h"

struct weir__add_call {
    struct weir__request request;
    struct weir__confirm confirm; /* its durability 0: there is no need */
    struct weir__adds *adds;
    size_t first, end; /* its items */
    bool is_second;    /* its packs were staged again */
    bool is_again;     /* it was acknowledged by another server */
    bool has_keys;     /* all of its jobs have unique keys, or its one is of
                          a lane */
    bool has_refused;  /* some of its jobs: they are left out */
    size_t staging;    /* answers that come here, ahead of its own */
    bool is_over;      /* it is freed with the last of these */
    uint32_t call_slot;
    uint32_t nonce;
    uint64_t number; /* grows from call to call */
    size_t planned_count;
    struct weir__planned_pack planned_packs[];
};

/* Its packs, which are staged before where they do not come with it, and the
 * call. Sent again after a reconnect they leave in this order, and the script
 * recognises a repeat by its call slot and number. */
void weir__add_call_send(struct weir__add_call *call, unsigned flags);

/* Inside the callback of the answer, which was read: what was refused is left
 * out from now on, also where the call is replayed. */
void weir__add_call_leave_out(struct weir__add_call *call);

#endif

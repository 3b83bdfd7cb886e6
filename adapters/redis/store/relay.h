/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_RELAY_H
#define WEIR_STORE_RELAY_H

/* One entry of an outbox on its way: it asks one thing after the other, its
 * pack where this process does not have it, the add, and the removal. */

#include "adapters/redis/store/outbox.h"

enum { WEIR__RELAY_SLOT_MAX = 64 }; /* bytes of the name of a call slot */

struct weir__relay {
    struct weir__request request; /* first */
    struct weir__relays *box;
    struct weir__place *place; /* of the target */
    struct weir__relay *next;
    uint32_t own_call_slot; /* of this process */
    bool is_own;
    bool is_waiting; /* for the next try; without its pack */
    bool was_refused;
    char seq[WEIR__SEQ_LEN];
    char name[WEIR__SEQ_LEN];    /* of the pack in the target */
    struct weir__buf pack;       /* empty: not here */
    bool exist[WEIR__SLOTS_MAX]; /* slots that the other topic did not take */
    size_t exist_count;
    /* What the entry says; points into it. */
    struct weir_slice target, call_slot, when, gone, second;
    uint64_t number, jobs, header_len;
    uint8_t entry[];
};

/* Take the entry apart. WEIR_ENOMEM; WEIR_EMALFORMED; WEIR_ENEWER: another
 * version, or a kind that only another version sends to. */
int weir__relay_new(struct weir__relays *box, const char *seq,
                    struct weir_slice entry, struct weir__relay **ret_relay);
void weir__relay_free(struct weir__relay *relay);

/* Send it on; one of the two below ends that. The caller flushes. */
void weir__relay_send(struct weir__relay *relay);

/* Remove an entry. `request` may be NULL. The caller flushes. */
void weir__relay_remove(const struct weir__store_topic *topic,
                        struct weir_slice seq, struct weir__request *request);

/* --- store/outbox.c ------------------------------------------------------ */

/* Not now. */
void weir__relays_put_off(struct weir__relay *relay);

/* It is where it was to go, or dead, and the entry is gone. */
void weir__relays_sent(struct weir__relay *relay);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_OUTBOX_H
#define WEIR_STORE_OUTBOX_H

/* Jobs that verdicts of a topic, the source, bring for other topics. The settle
 * script records them in the source, in the step of the verdict: a pack o:NAME
 * and an entry NAME of the hash `relay`, which says where they go.
 *
 *   worker                 source                  target
 *     | SET o:NAME, settle   |                       |
 *     |--------------------->| verdict and entry     |
 *     |<---------------------|                       |
 *     | SET p:NAME           |                       |
 *     |--------------------------------------------->| staged, or another name
 *     | add                  |                       |
 *     |--------------------------------------------->| an add
 *     |<---------------------------------------------| added, full, kind
 *     | DEL o:NAME, HDEL     |                       |
 *     |--------------------->|                       |
 *
 * The entry has the call slot and the number of that add, so whoever repeats it
 * adds nothing. The worker that settled sends it at once; every worker of the
 * source does that for old entries when it starts and every few seconds. A pack
 * goes before its entry: an entry without a pack is removed, and no pack stays
 * behind. If the target does not know that call slot the pack was lost, and its
 * jobs are counted in `lost`.
 *
 * An entry is a msgpack array: 1, target, kind, call slot, number, jobs, header
 * length, when (lib/due.lua, a time), one byte for each slot whose verdict was
 * refused, and the name of a second pack or '': dead jobs whose id exists in
 * the target go there under made ids. */

#include "adapters/redis/store/store.h"

struct weir__relay;

struct weir__relays {
    struct weir__store_topic *topic; /* the source */
    struct weir__relay *relays;      /* entries that this process knows */
    struct weir__relay **relays_end;
    struct weir__relay *next_probe; /* NULL: the first */
    size_t sending;                 /* of them on their way */
    size_t old;                     /* of these what a look brought */
    size_t length;                  /* of the hash, as far as is known */
    size_t looked; /* where in its answer the next look begins */
    bool is_looking;
    bool goes_on;    /* all that the last look brought went */
    int64_t look_ns; /* not before, but for that */
    int64_t wait_ms; /* since a target took none: the last wait; 0: none */
    ev_timer timer;  /* until the next try */
    int64_t told_ns; /* when a refusal was last logged; 0: never */
};

/* For a topic whose kind says how jobs die in it (store/kind.h). A worker that
 * stops waits for what is on its way. */
void weir__relays_init(struct weir__relays *box,
                       struct weir__store_topic *topic);
void weir__relays_fini(struct weir__relays *box);

/* The settle script made an entry, of whose pack the bytes are `pack`: send it.
 * `entry` begins with its name. The outbox leaves the call slot. False: not
 * now, it is known already or there is no memory. */
bool weir__relays_send(struct weir__relays *box, struct weir_slice entry,
                       struct weir_slice pack, uint32_t call_slot);

/* What a settle call says of one: key of the target, its kind, call slot,
 * number, second pack. */
void weir__relays_write(struct weir__buf *list, const struct weir__redis *store,
                        const char *target, uint32_t call_slot,
                        const char *second);

/* With each claim: look for old entries, now and then. */
void weir__relays_look(struct weir__relays *box);

/* There are so many entries that nothing may be claimed. Then `request` asks
 * how many there are. */
bool weir__relays_is_full(const struct weir__relays *box);
void weir__relays_ask_length(struct weir__relays *box,
                             struct weir__request *request);

/* A settle call, or that request, says how many there are. */
void weir__relays_note_length(struct weir__relays *box, int64_t length);

#endif

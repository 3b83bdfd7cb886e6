/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_SETTLE_CALL_H
#define WEIR_DELAY_SETTLE_CALL_H

/* What one call of the settle script says: which nodes it names, which of the
 * topic's endings go with them, and its bytes.
 *
 *   written by              list     read by settle.lua
 *   settle.c, a bit a run   nodes    takes the slots out of `run`, `ids`, packs
 *   settle.c, a bit a run   back     returns slots to `wait`, as they were due
 *   fetch.c, settle.c       closed   ends leases of which nothing is left
 *   settle.c, as bytes      moves    puts new packs into `wait`: retries,
 *     (plan.c: packs)                snoozes, jobs that runs add; or records
 *                                    them in `relay` (store/outbox.h)
 *   settle.c, as bytes      ends     keeps records of dead jobs: `rec`, `dead`
 *   unstarted.c, if any    unstarted  gives tokens of rates back
 *
 * The answer says which slots were refused, which are left out as their pack
 * was not staged (verdicts.c repeats the call), which new ids exist, and what
 * lies in the outbox. */

#include "adapters/redis/delay/private.h"

/* Among outcomes of the topic's endings: a job that a run adds. */
enum { WEIR__OUTCOME_FOLLOW = 100 };

/* One call while it is being put together. */
struct weir__settle_call {
    struct weir__delay_topic *topic;
    uint32_t number; /* of the call */
    struct weir__claimed_node *first, *end;
    size_t nodes; /* with verdicts */
    size_t back_nodes, backs;
    size_t slots, bytes, verdicts, packs;
    size_t first_item, end_item; /* of the topic's endings */
    size_t end_move, end_dead;   /* what runs here before the first, then dead
                                    jobs, then all for other topics */
    /* New packs, in the store's list: `moves` for this topic, the others for
     * the outbox. */
    const struct weir__planned_pack *planned;
    size_t planned_count, moves;
    struct weir__asker *asker; /* about all that it says; NULL: nobody */
    bool is_last;
    bool is_dropped; /* all of its nodes are, as their packs are gone */
    int64_t offer;   /* number of the one that it makes; 0: it makes none */
};

/* Order the topic's endings by the call that will take them. */
void weir__settle_call_sort_endings(struct weir__delay_topic *topic,
                                    struct weir__claimed_node *first);

/* Take nodes from `first` on into the next call, up to its bounds, and number
 * nodes and packs. */
struct weir__settle_call
weir__settle_call_nodes(struct weir__delay_topic *topic,
                        struct weir__claimed_node *first);

/* Give the call its endings: those from `first` on that are of its nodes. */
void weir__settle_call_endings(struct weir__settle_call *call, size_t first);

/* Name the new packs of the call. False: no memory. */
bool weir__settle_call_plan(struct weir__settle_call *call);

/* Where it is all that this flush says of a job that was handed over, it offers
 * the worker again, in place of the claim that is to come behind it. */
void weir__settle_call_offer(struct weir__settle_call *call);

/* It will not be sent, planned or not: its leases run out. */
void weir__settle_call_forgo(const struct weir__settle_call *call);

/* Write the call: all or nothing, where one of its new packs is not there.
 * Returns the script that it calls. */
const struct weir__script *
weir__settle_call_write(struct weir__buf *buf,
                        const struct weir__settle_call *call);

/* unstarted.c: append the jobs of the call that used a token of a rate and did
 * not start, as the script reads them. False: there are none, or no rate. */
bool weir__unstarted_write(struct weir__buf *list,
                           const struct weir__settle_call *call);

/* Which word of a call that was written is the key of its first new pack. */
size_t weir__settle_call_first_key(const struct weir__settle_call *call);

/* Have a call that was written settle the others in that case. */
void weir__settle_call_leave_out(struct weir__buf *buf);

/* Have one that was written with an offer make none. */
void weir__settle_call_offer_nothing(struct weir__buf *buf);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_PLAN_H
#define WEIR_DELAY_PLAN_H

/* Which jobs share a pack: new ones, and those that a verdict writes back. Jobs
 * that are due together share packs of up to 256 jobs, those of a lane with
 * others of that lane (scripts/lib/lanes.lua). Where due times differ,
 * a pack has up to 64 in their order. It is fetched again while they become
 * due, as one of a lane is at each turn, so both have up to 16 where they have
 * more than 16 KiB; it stays until its last
 * job is gone, so up to 16 where that waits more than a quarter longer than the
 * first one. For other topics it has up to 16 as well: older workers may be the
 * ones that send it on, and know no mixed packs. Knows no connection. */

#include <weir/weir.h>

#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "core/buf.h"

struct weir__claimed_node;
struct weir__delay_topic;
struct weir__prefix;
struct weir__record;
struct weir__store_topic;

/* A job on its way into a pack. Places are positions in the list's bytes. */
struct weir__item {
    int64_t ms;     /* due: a delay, or a server time */
    uint64_t group; /* only items of one group share packs */
    uint32_t index; /* order of arrival */
    size_t id_at;   /* the id is NUL-terminated */
    size_t record_at;
    uint32_t id_len; /* 0: the id is made */
    uint32_t record_len;
    uint32_t body_len;
    uint32_t key_at, key_len; /* of its unique key and rule; no length: none */
    uint32_t lane_at, lane_len; /* of the name of its lane
                                   (scripts/lib/lanes.lua); no length: none */
    uint32_t lane_hash;         /* of that name; 0: it has none */
    uint32_t holder_at; /* of the id of who holds that key; 0: not known */
    int code;           /* the answer, once it is known */
    weir_added_fn fn;
    void *arg;
    struct weir__claimed_node *node; /* the node a run was claimed with */
    uint32_t slot;
    uint32_t outcome;
    uint64_t mark;                  /* of its claim, or random; 0: none */
    bool is_absolute;               /* ms is a server time */
    bool is_single;                 /* it has a pack of its own */
    bool is_restored;               /* whatever its body says it has no key */
    struct weir__delay_topic *away; /* the topic of a follow-up or a dead job;
                                       NULL: this one */
};

/* Items and their bytes; zeroed: empty. */
struct weir__items {
    struct weir__item *list;
    size_t count, cap;
    struct weir__buf bytes;
    int64_t now_ms; /* server time when packs are planned, about */
};

/* It has a unique key: it is in a pack of its own, by a script for such. */
static inline bool weir__item_is_alone(const struct weir__item *item)
{
    return item->key_len > 0;
}

/* The item is the tick of a schedule: nothing else snoozes to a time. */
bool weir__item_is_tick(const struct weir__item *item);

void weir__items_fini(struct weir__items *items);

/* Empty it; keeps the memory unless that is much. */
void weir__items_reset(struct weir__items *items);

/* One more item, with these bytes; else zeroed, its index set. No record: none.
 * NULL when out of memory, then nothing is appended. */
struct weir__item *weir__items_append(struct weir__items *items,
                                      struct weir_slice id,
                                      const struct weir__record *record);

/* Give an item another record. False when out of memory: nothing changed. */
bool weir__items_rewrite(struct weir__items *items, struct weir__item *item,
                         const struct weir__record *record);

/* Order by group, lane, due time, arrival; those with unique keys by arrival.
 */
void weir__items_sort(struct weir__items *items);

/* Mark all but the first of equal ids with WEIR_EEXISTS, and put them into
 * group UINT32_MAX; those with unique keys are left to the server. Leaves the
 * items in no particular order. */
void weir__items_find_duplicates(struct weir__items *items);

struct weir_slice weir__item_id(const struct weir__items *items,
                                const struct weir__item *item);
struct weir_slice weir__item_record(const struct weir__items *items,
                                    const struct weir__item *item);

/* Consecutive items that make up one pack. */
struct weir__planned_pack {
    size_t first, count;
    bool has_ids;
    bool is_scattered; /* due times differ */
    bool is_mixed;     /* and the scripts keep them in a table (mixed.lua) */
    bool is_elsewhere; /* another call has it by now */
    bool is_refused;   /* it is larger than the server takes */
    bool is_taken;     /* another producer staged one of this name */
    struct weir__pack_size size;
    char seq[WEIR__SEQ_LEN];
    struct weir__delay_topic *target; /* NULL: this one; else it has: */
    uint32_t call_slot;
    char second[WEIR__SEQ_LEN + 1]; /* name of another pack, or "" */
};

struct weir__planned_packs {
    struct weir__planned_pack *list;
    size_t count, cap;
};

/* The next pack from item `first` on, which ends before item `end`. */
void weir__planned_pack_plan(const struct weir__items *items, size_t first,
                             size_t end,
                             struct weir__planned_pack *ret_planned);

/* Append the pack's bytes. */
void weir__planned_pack_write(struct weir__buf *buf,
                              const struct weir__items *items,
                              const struct weir__planned_pack *planned);

/* Append its key; one for another topic lies in the outbox. */
void weir__planned_pack_key(struct weir__buf *buf,
                            const struct weir__prefix *prefix,
                            const struct weir__planned_pack *planned);

/* Append the command that stores the pack under its key for a minute, unless
 * that is taken already. Returns where the pack's bytes begin. Behind these are
 * 16 digits if its first item has a mark: the script compares them, since
 * another producer may have staged a pack of this name. */
size_t weir__planned_pack_stage(struct weir__buf *buf,
                                const struct weir__prefix *prefix,
                                const struct weir__items *items,
                                const struct weir__planned_pack *planned);

/* Name it. For another topic it gets a call slot, and where it has dead jobs a
 * second name, for those whose ids exist there. False: no memory. */
bool weir__planned_pack_name(const struct weir__store_topic *topic,
                             const struct weir__items *items,
                             struct weir__planned_pack *planned);

/* Append what settle scripts are told of it first: key, jobs, header length,
 * when. */
void weir__planned_pack_tell(struct weir__buf *list,
                             const struct weir__items *items,
                             const struct weir__planned_pack *planned,
                             size_t key);

/* Append when its slots are due, as the scripts read it. */
void weir__planned_pack_when(struct weir__buf *buf,
                             const struct weir__items *items,
                             const struct weir__planned_pack *planned);

/* False when out of memory. */
bool weir__planned_packs_push(struct weir__planned_packs *planned_packs,
                              const struct weir__planned_pack *planned);

#endif

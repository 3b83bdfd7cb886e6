/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_ADD_H
#define WEIR_DELAY_ADD_H

/* The jobs that a topic collected in one turn, and the calls they leave with.
 * They stay in memory until all are answered, so that a pack can be staged
 * again. */

#include "adapters/redis/delay/private.h"

enum {
    WEIR__GROUP_ABSOLUTE = 1, /* groups of items: bits */
    WEIR__GROUP_MADE = 2
};

struct weir__adds {
    struct weir__request request; /* fails those that no call could take */
    struct weir__delay_topic *topic;
    struct weir__adds *next_spare;
    struct weir__items items;
    size_t refs; /* the flush, and one for each call */
    size_t next; /* the first that is in no call */
    bool has_made, has_named;
    bool has_delays, has_times;
    bool is_uneven; /* not all due at the same time */
};

void weir__adds_unref(struct weir__adds *adds);

/* Answer a job; `made` is its id if weir made one, NULL otherwise. */
void weir__adds_answer(const struct weir__adds *adds,
                       const struct weir__item *item, const char *made,
                       int code);

/* Send one call with these planned packs, which are consecutive; it answers all
 * items up to `end`. False when out of memory. */
bool weir__adds_send(struct weir__adds *adds,
                     const struct weir__planned_pack *planned_packs,
                     size_t count, size_t end);

#endif

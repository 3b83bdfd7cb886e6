/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/settle_call.h"

/* A claim uses tokens of `rate` and `key_rate` before it is known what starts.
 * The list of a settle call that says which jobs did not
 * (scripts/lib/tokens.lua). */

enum { OF_BACK = 1 << 20 }; /* sources of what goes back begin here */

/* Append the unstarted slots among `bits`; NULL: only count them. */
static size_t add_unstarted(struct weir__buf *list,
                            const struct weir__claimed_node *node,
                            const uint64_t bits[4], uint64_t source)
{
    size_t count = 0;

    for (uint32_t slot = node->lo; slot < node->lo + node->size; slot++) {
        uint64_t both = node->unstarted[slot >> 6] & bits[slot >> 6];

        if ((both >> (slot & 63) & 1) == 0)
            continue;
        if (list != NULL)
            weir__pack_uint(list, source * WEIR__SLOTS_MAX + slot);
        count++;
    }
    return count;
}

static size_t add_all_unstarted(struct weir__buf *list,
                                const struct weir__settle_call *call)
{
    size_t count = 0, backs = 0;

    for (const struct weir__claimed_node *node = call->first; node != call->end;
         node = node->next) {
        count += add_unstarted(list, node,
                               node->is_dropped ? node->unstarted : node->slots,
                               node->index);
        if (node->backs > 0)
            count += add_unstarted(list, node, node->back,
                                   OF_BACK / WEIR__SLOTS_MAX + backs++);
    }
    return count;
}

bool weir__unstarted_write(struct weir__buf *list,
                           const struct weir__settle_call *call)
{
    const struct weir__delay_topic *topic = call->topic;
    size_t count;

    /* Limits are not known to a process that takes jobs by hand. */
    if (!topic->has_rate && !topic->base.claim.is_by_hand &&
        !topic->is_adopting)
        return false;
    count = add_all_unstarted(NULL, call);
    weir__pack_array(list, count);
    (void)add_all_unstarted(list, call);
    return count > 0;
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/keys.h"
#include "adapters/redis/store/confirm.h"

/* What was collected, before it leaves: what the topic refuses or another job
 * has the id of is put aside, the rest in an order in which it shares packs and
 * calls. */

/* What is refused ends up behind all others. */
static void refuse(struct weir__adds *adds, struct weir__item *item, int code)
{
    item->code = code;
    item->group = UINT32_MAX;
    adds->is_uneven = true;
}

static void refuse_bodies(struct weir__adds *adds)
{
    size_t max_body = adds->topic->base.limits.max_body;
    struct weir__items *items = &adds->items;

    for (size_t i = 0; i < items->count; i++)
        if (items->list[i].body_len > max_body)
            refuse(adds, &items->list[i], WEIR_ETOOBIG);
}

static uint32_t durability_of(const struct weir__delay_topic *topic,
                              const struct weir__item *item)
{
    uint32_t own = weir__group_durability(item->group);

    return own != 0 ? own : topic->base.limits.durability;
}

/* Some have to be elsewhere, too, than on the server. */
static bool needs_confirm(const struct weir__adds *adds)
{
    return adds->has_durability ||
           adds->topic->base.limits.durability != WEIR__DURABILITY_SERVER;
}

bool weir__adds_check(const struct weir__adds *adds, int ret_codes[2])
{
    const struct weir__delay_topic *topic = adds->topic;

    ret_codes[0] = ret_codes[1] = WEIR__CONFIRM_ASKED;
    for (size_t i = 0; needs_confirm(adds) && i < adds->items.count; i++) {
        uint32_t durability = durability_of(topic, &adds->items.list[i]);
        int *code = &ret_codes[durability >= WEIR__DURABILITY_FSYNC];

        if (durability == WEIR__DURABILITY_SERVER ||
            *code != WEIR__CONFIRM_ASKED)
            continue;
        *code = weir__confirm_check(topic->base.place, durability);
        if (*code == WEIR__CONFIRM_ASKED)
            return false;
    }
    return true;
}

/* Only jobs that have to be in the same places share a call. */
static void part_by_durability(struct weir__adds *adds, const int codes[2])
{
    struct weir__items *items = &adds->items;

    for (size_t i = 0; i < items->count; i++) {
        struct weir__item *item = &items->list[i];
        uint64_t durability = durability_of(adds->topic, item);
        int code = codes[durability >= WEIR__DURABILITY_FSYNC];

        if (item->code != WEIR_OK)
            continue;
        item->group &= (1U << WEIR__GROUP_DURABILITY) - 1;
        if (durability != WEIR__DURABILITY_SERVER)
            item->group |= durability << WEIR__GROUP_DURABILITY;
        if (durability != WEIR__DURABILITY_SERVER && code != WEIR_OK)
            refuse(adds, item, code);
        adds->is_mixed = adds->is_mixed || item->group != items->list[0].group;
    }
}

/* Duplicates end up behind all others and are in no pack. */
static void sort(struct weir__adds *adds)
{
    if (!adds->is_mixed && !adds->is_uneven)
        return;
    weir__items_find_duplicates(&adds->items);
    weir__items_sort(&adds->items);
}

size_t weir__adds_arrange(struct weir__adds *adds, const int codes[2])
{
    const struct weir__items *items = &adds->items;
    size_t end = items->count;

    refuse_bodies(adds);
    if (needs_confirm(adds))
        part_by_durability(adds, codes);
    adds->is_mixed = weir__adds_find_keys(adds) || adds->is_mixed;
    sort(adds);
    while (end > 0 && items->list[end - 1].group == UINT32_MAX)
        end--;
    return end;
}

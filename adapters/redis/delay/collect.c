/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/keys.h"
#include "core/assert.h"
#include "core/mem.h"

/* Collecting jobs that are to be added, until the flush of delay/add.c. */

enum {
    /* Bytes of jobs that are collected or not answered yet, and of the commands
     * that wait, in all topics: well below what the connection takes, which
     * then never refuses a part of a call. */
    UNANSWERED_MAX = 32 * 1024 * 1024,
    SPARES = 8,              /* lists of jobs kept for the next ones */
    FULL_BYTES = 1920 * 1024 /* of a list: what follows is in another call */
};

/* Its memory serves those that come next. */
static void put_aside(struct weir__adds *adds)
{
    struct weir__delay *shared = adds->topic->shared;
    struct weir__items items = adds->items;

    WEIR_ASSERT(shared->collected >= items.bytes.len);
    shared->collected -= items.bytes.len;
    if (shared->spare_count == SPARES) {
        weir__items_fini(&items);
        weir__mem_free(adds);
        return;
    }
    weir__items_reset(&items);
    *adds = (struct weir__adds){.items = items};
    adds->next_spare = shared->spare_adds;
    shared->spare_adds = adds;
    shared->spare_count++;
}

void weir__adds_unref(struct weir__adds *adds)
{
    WEIR_ASSERT(adds->refs > 0);
    adds->refs--;
    if (adds->refs == 0)
        put_aside(adds);
}

void weir__adds_fini(struct weir__delay *shared)
{
    while (shared->spare_adds != NULL) {
        struct weir__adds *adds = shared->spare_adds;

        shared->spare_adds = adds->next_spare;
        weir__items_fini(&adds->items);
        weir__mem_free(adds);
    }
}

static bool has_room(const struct weir__adds *adds)
{
    return adds != NULL && adds->items.bytes.len < FULL_BYTES;
}

/* What is being collected; NULL when out of memory. */
static struct weir__adds *adds_of(struct weir__delay_topic *topic)
{
    struct weir__delay *shared = topic->shared;
    struct weir__adds *adds = shared->spare_adds;

    if (has_room(topic->last_adds))
        return topic->last_adds;
    if (adds != NULL) {
        shared->spare_adds = adds->next_spare;
        shared->spare_count--;
    } else {
        adds = weir__mem_new(sizeof(*adds));
    }
    if (adds == NULL)
        return NULL;
    adds->request.store = topic->base.store;
    adds->topic = topic;
    adds->refs = 1;
    adds->next_adds = NULL;
    if (topic->adds == NULL)
        topic->adds = adds;
    else
        topic->last_adds->next_adds = adds;
    topic->last_adds = adds;
    return adds;
}

/* Append the job's bytes; false when out of memory. */
static bool collect(struct weir__adds *adds, const struct weir__new_job *job,
                    weir_added_fn fn, void *arg)
{
    struct weir__items *items = &adds->items;
    size_t start = items->bytes.len;
    struct weir__item *item = weir__items_append(items, job->id, job->record);

    if (item == NULL)
        return false;
    if (job->record->unique.len > 0 &&
        !weir__item_set_key(items, item, job->record->unique, &job->rule)) {
        items->count--;
        items->bytes.len = start;
        return false;
    }
    item->is_absolute = job->at_ms != 0;
    item->ms = item->is_absolute ? job->at_ms : job->delay_ms;
    item->group = (item->is_absolute ? WEIR__GROUP_ABSOLUTE : 0u) +
                  (job->id.len == 0 ? WEIR__GROUP_MADE : 0u) +
                  (job->durability << WEIR__GROUP_DURABILITY);
    item->body_len = (uint32_t)job->record->body.len;
    item->is_restored = job->is_restored;
    item->fn = fn;
    item->arg = arg;
    adds->topic->shared->collected += items->bytes.len - start;
    adds->has_durability = adds->has_durability || job->durability != 0;
    adds->has_made =
        adds->has_made || (job->id.len > 0 && job->id.ptr[0] == '@');
    adds->has_keys =
        adds->has_keys || weir__item_is_alone(item) || item->lane_len > 0;
    adds->is_mixed = adds->is_mixed || item->group != items->list[0].group;
    adds->is_uneven = adds->is_uneven || item->ms != items->list[0].ms;
    return true;
}

int weir__delay_add(struct weir__store_topic *base,
                    const struct weir__new_job *job, weir_added_fn fn,
                    void *arg)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__delay *shared = topic->shared;
    struct weir__adds *adds;

    WEIR_ASSERT(job->delay_ms >= 0 && job->at_ms >= 0);
    WEIR_ASSERT(job->id.len <= WEIR_MAX_ID);
    if (job->died_ms > 0)
        return weir__delay_bury(base, job, fn, arg);
    if (shared->collected + weir__place_queued(topic->base.place) +
            shared->store->unconfirmed >
        UNANSWERED_MAX)
        return WEIR_EFULL;
    adds = adds_of(topic);
    if (adds == NULL || !collect(adds, job, fn, arg))
        return WEIR_ENOMEM;
    weir__topic_mark(&topic->base);
    return WEIR_OK;
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/add.h"

#include "adapters/msgpack/record.h"
#include "core/assert.h"
#include "core/mem.h"

/* Adding jobs: what a topic collected leaves as staged packs and one call of
 * the add script for up to 1,024 jobs (delay/add_call.c). A job alone leaves in
 * its turn. While calls are on their way jobs gather behind them, as Nagle's
 * algorithm has it (RFC 896): the faster they come the fuller the packs. */

enum {
    /* Bytes that wait in all topics, sent or not: well below what the
     * connection takes, which then never refuses a part of a call. */
    UNANSWERED_MAX = 32 * 1024 * 1024,
    SCATTERED_COST = 4, /* of a slot that is a node of its own */
    SPARES = 8,         /* lists of jobs kept for the next ones */
    CALL_PARCELS = 250, /* keeps the list of keys short */
    CALLS_AHEAD = 2     /* on their way while less than a full call waits */
};

/* Its memory serves those that come next. */
static void put_aside(struct weir__adds *adds)
{
    struct weir__delay *shared = adds->topic->shared;
    struct weir__items items = adds->items;

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

/* --- collecting --------------------------------------------------------- */

static struct weir__adds *adds_new(struct weir__delay *shared)
{
    struct weir__adds *adds = shared->spare_adds;

    if (adds == NULL)
        return weir__mem_new(sizeof(*adds));
    shared->spare_adds = adds->next_spare;
    shared->spare_count--;
    return adds;
}

static struct weir__adds *adds_of(struct weir__delay_topic *topic)
{
    struct weir__adds *adds = topic->adds;

    if (adds != NULL)
        return adds;
    adds = adds_new(topic->shared);
    if (adds == NULL)
        return NULL;
    adds->request.store = topic->base.store;
    adds->topic = topic;
    adds->refs = 1;
    topic->adds = adds;
    return adds;
}

static void note_shape(struct weir__adds *adds, const struct weir__item *item)
{
    if (item->id_len > 0)
        adds->has_named = true;
    else
        adds->has_made = true;
    if ((item->group & WEIR__GROUP_ABSOLUTE) != 0)
        adds->has_times = true;
    else
        adds->has_delays = true;
    if (item->ms != adds->items.list[0].ms)
        adds->is_uneven = true;
}

/* Append the job's bytes; false when out of memory. */
static bool collect(struct weir__adds *adds, const struct weir__new_job *job,
                    weir_added_fn fn, void *arg)
{
    struct weir__items *items = &adds->items;
    size_t start = items->bytes.len;
    struct weir__item *item;

    weir__buf_append(&items->bytes, job->id.ptr, job->id.len);
    weir__buf_append(&items->bytes, "", 1);
    weir__record_write(&items->bytes, job->record);
    item = items->bytes.failed ? NULL : weir__items_push(items);
    if (item == NULL) {
        items->bytes.len = start;
        items->bytes.failed = false;
        return false;
    }
    item->ms = job->at_ms != 0 ? job->at_ms : job->delay_ms;
    item->group = (job->at_ms != 0 ? WEIR__GROUP_ABSOLUTE : 0u) +
                  (job->id.len == 0 ? WEIR__GROUP_MADE : 0u);
    item->id_at = start;
    item->id_len = (uint32_t)job->id.len;
    item->record_at = start + job->id.len + 1;
    item->record_len = (uint32_t)(items->bytes.len - item->record_at);
    item->body_len = (uint32_t)job->record->body.len;
    item->fn = fn;
    item->arg = arg;
    adds->topic->shared->collected += items->bytes.len - start;
    note_shape(adds, item);
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
    if (shared->collected + weir__conn_queued(shared->store->commands) >
        UNANSWERED_MAX)
        return WEIR_EFULL;
    adds = adds_of(topic);
    if (adds == NULL || !collect(adds, job, fn, arg))
        return WEIR_ENOMEM;
    weir__topic_mark(&topic->base);
    return WEIR_OK;
}

/* --- giving up ----------------------------------------------------------- */

static void fail_adds(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__adds *adds =
        (struct weir__adds *)request; /* its first member */

    (void)reply; /* there is none */
    for (size_t at = adds->next; at < adds->items.count; at++)
        weir__adds_answer(adds, &adds->items.list[at], NULL, code);
    weir__adds_unref(adds);
}

static struct weir__adds *take_adds(struct weir__delay_topic *topic)
{
    struct weir__adds *adds = topic->adds;

    topic->adds = NULL;
    if (adds != NULL) {
        WEIR_ASSERT(topic->shared->collected >= adds->items.bytes.len);
        topic->shared->collected -= adds->items.bytes.len;
    }
    return adds;
}

void weir__delay_fail_adds(struct weir__delay_topic *topic, int code)
{
    struct weir__adds *adds = take_adds(topic);

    if (adds != NULL)
        fail_adds(&adds->request, code, NULL);
}

/* --- flushing ----------------------------------------------------------- */

/* Bodies that are larger than the topic allows end up behind all others. */
static void refuse_bodies(struct weir__adds *adds, size_t max_body)
{
    struct weir__items *items = &adds->items;

    for (size_t i = 0; i < items->count; i++) {
        if (items->list[i].body_len <= max_body)
            continue;
        items->list[i].code = WEIR_ETOOBIG;
        items->list[i].group = UINT32_MAX;
        adds->is_uneven = true;
    }
}

/* Twins end up behind all others and are in no planned. */
static void arrange(struct weir__adds *adds)
{
    bool is_mixed = (adds->has_made && adds->has_named) ||
                    (adds->has_delays && adds->has_times) || adds->is_uneven;

    if (!is_mixed)
        return;
    if (adds->has_named)
        weir__items_find_duplicates(&adds->items);
    weir__items_sort(&adds->items);
}

static size_t without_duplicates(const struct weir__items *items)
{
    size_t end = items->count;

    while (end > 0 && items->list[end - 1].group == UINT32_MAX)
        end--;
    return end;
}

/* Parcels for one call, from item `first` on; false when out of memory. */
static bool plan_call(struct weir__adds *adds, size_t first, size_t end)
{
    struct weir__delay *shared = adds->topic->shared;
    size_t slots = 0;

    shared->planned_packs.count = 0;
    while (first < end && shared->planned_packs.count < CALL_PARCELS) {
        struct weir__planned_pack planned;
        size_t cost;

        weir__planned_pack_plan(&adds->items, first, end, &planned);
        cost = planned.count * (planned.is_scattered ? SCATTERED_COST : 1);
        if (slots + cost > WEIR__CALL_SLOTS)
            break;
        weir__redis_next_seq(shared->store, planned.seq);
        if (!weir__planned_packs_push(&shared->planned_packs, &planned))
            return false;
        slots += cost;
        first += planned.count;
    }
    return true;
}

/* Sends all items up to `end`; stops where memory runs out. */
static void send_items(struct weir__adds *adds, size_t end)
{
    const struct weir__planned_packs *planned_packs =
        &adds->topic->shared->planned_packs;

    while (adds->next < end && plan_call(adds, adds->next, end)) {
        const struct weir__planned_pack *last =
            &planned_packs->list[planned_packs->count - 1];
        size_t to = last->first + last->count;

        if (to == end)
            to = adds->items.count; /* the duplicates go with the last */
        if (!weir__adds_send(adds, planned_packs->list, planned_packs->count,
                             to))
            return;
        adds->next = to;
    }
}

/* More may come before those on their way are answered; the answer flushes. */
static bool gathers(const struct weir__delay_topic *topic)
{
    size_t slots = topic->adds->items.count;

    if (topic->adds->is_uneven)
        slots *= SCATTERED_COST;
    return topic->add_calls >= CALLS_AHEAD && slots < WEIR__CALL_SLOTS;
}

void weir__delay_flush_adds(struct weir__delay_topic *topic)
{
    struct weir__adds *adds;
    size_t end;

    if (topic->adds == NULL || !topic->base.store->has_number ||
        gathers(topic) || !weir__delay_knows_limits(topic))
        return;
    adds = take_adds(topic);
    refuse_bodies(adds, topic->max_body);
    arrange(adds);
    end = without_duplicates(&adds->items);
    send_items(adds, end);
    if (adds->next == adds->items.count) {
        weir__adds_unref(adds);
        return;
    }
    adds->request.done = fail_adds;
    weir__redis_fail(&adds->request, end == 0 ? WEIR_OK : WEIR_ENOMEM);
}

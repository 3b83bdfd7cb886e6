/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "adapters/redis/delay/settle_call.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* The verdict on an overdue run is put together like every other one, with a
 * store, a topic and a lease that stand in for the real ones: those have what
 * the loop thread collected in them. */

struct weir__overdue {
    struct weir__redis store;         /* names of packs */
    struct weir__delay stand_in;      /* scratch space */
    struct weir__delay_topic topic;   /* of the run */
    struct weir__delay_topic on_dead; /* where its dead jobs go */
    struct weir__delay_lease *lease;  /* with one node; behind this */
};

struct weir__overdue *weir__overdue_new(void)
{
    struct weir__overdue *overdue = weir__mem_new(
        sizeof(*overdue) + sizeof(*overdue->lease) +
        sizeof(struct weir__claimed_node) + sizeof(struct weir__fetched));

    if (overdue != NULL)
        overdue->lease = (struct weir__delay_lease *)(overdue + 1);
    return overdue;
}

void weir__overdue_free(struct weir__overdue *overdue)
{
    if (overdue == NULL)
        return;
    for (size_t i = 0; i < WEIR__SETTLE_LISTS; i++)
        weir__buf_fini(&overdue->stand_in.scratch[i]);
    weir__mem_free(overdue->stand_in.planned_packs.list);
    weir__mem_free(overdue->store.call_slots.free);
    weir__items_fini(&overdue->topic.endings);
    weir__mem_free(overdue);
}

/* --- standing in ---------------------------------------------------------- */

static void prepare_topic(struct weir__overdue *overdue,
                          const struct weir__delay_topic *topic)
{
    struct weir__delay_topic *copy = &overdue->topic;
    struct weir__items endings = copy->endings; /* keeps its memory */

    *copy = (struct weir__delay_topic){
        .shared = &overdue->stand_in,
        .endings = endings,
        .max_dead = topic->max_dead,
    };
    copy->base.store = &overdue->store;
    copy->base.place = topic->base.place;
    copy->base.kind = &weir__delay_kind;
    copy->base.is_dirty = true; /* is on no list */
    weir__topic_name(&copy->base, weir__slice_str(topic->base.name));
    copy->is_parallel = topic->is_parallel;
    copy->touched_end = &copy->touched;
    weir__items_reset(&copy->endings);
    if (topic->on_dead[0] == '\0')
        return;
    overdue->on_dead = (struct weir__delay_topic){
        .shared = &overdue->stand_in,
    };
    overdue->on_dead.base.store = &overdue->store;
    weir__topic_name(&overdue->on_dead.base, weir__slice_str(topic->on_dead));
    copy->on_dead_topic = &overdue->on_dead;
}

static void prepare_lease(struct weir__overdue *overdue,
                          const struct weir__delay_lease *lease,
                          const struct weir__claimed_node *node)
{
    struct weir__delay_lease *copy = overdue->lease;

    *copy = (struct weir__delay_lease){
        .base = {.token = lease->base.token},
        .topic = &overdue->topic,
        .out = 2, /* it is not spent by this verdict */
        .node_count = 1,
        .pack_count = 1,
    };
    copy->packs = (struct weir__fetched *)(void *)(copy->nodes + 1);
    copy->packs[0] = (struct weir__fetched){
        .batch = lease->packs[node->pack].batch,
        .first = &copy->nodes[0],
    };
    copy->nodes[0] = (struct weir__claimed_node){
        .size = node->size,
        .lo = node->lo,
        .ended = node->crashes.len > 0 ? 0 : node->ended,
        .is_mixed = node->is_mixed,
        .lease = copy,
    };
    memcpy(copy->nodes[0].name, node->name, sizeof(node->name));
}

/* --- writing -------------------------------------------------------------- */

static bool write_call(struct weir__overdue *overdue,
                       struct weir__renewals *calls)
{
    struct weir__delay_topic *topic = &overdue->topic;
    struct weir__settle_call call;

    weir__settle_call_sort_endings(topic, topic->touched);
    call = weir__settle_call_nodes(topic, topic->touched);
    weir__settle_call_endings(&call, 0);
    if (!weir__settle_call_plan(&call))
        return false;
    for (size_t i = 0; i < call.planned_count; i++) {
        weir__renewals_begin(calls, NULL);
        (void)weir__planned_pack_stage(&calls->bytes, &topic->base.prefix,
                                       &topic->endings, &call.planned[i]);
        weir__renewals_end(calls);
    }
    weir__renewals_begin(calls, &weir__script_delay_settle);
    weir__settle_call_write(&calls->bytes, &call);
    weir__renewals_end(calls);
    return !calls->bytes.failed;
}

bool weir__overdue_write(struct weir__overdue *overdue,
                         struct weir__store_topic *base,
                         const struct weir__run *run,
                         struct weir__renewals *calls)
{
    const struct weir__delay_topic *topic = weir__delay_topic_of(base);
    const struct weir__delay_lease *lease = run->batch;
    struct weir__redis *real = base->store, *store = &overdue->store;
    struct weir__run copy;
    bool is_written;

    overdue->stand_in.store = store;
    store->options = real->options;
    memcpy(store->url.prefix, real->url.prefix, sizeof(store->url.prefix));
    store->seqs = real->seqs;
    weir__mem_free(
        store->call_slots.free); /* named by its first pack each time */
    store->call_slots = (struct weir__call_slots){.count = 0};
    weir__run_overdue(run, &copy);
    prepare_topic(overdue, topic);
    prepare_lease(overdue, lease, &lease->nodes[run->node]);
    copy.batch = overdue->lease;
    copy.node = 0;
    weir__delay_settle(&overdue->topic.base, &copy);
    is_written = overdue->topic.touched != NULL && write_call(overdue, calls);
    real->seqs = store->seqs; /* names are used up */
    return is_written;
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/settle_call.h"

#include <string.h>

#include "adapters/redis/store/outbox.h"
#include "core/assert.h"
#include "core/text.h"

enum {
    FIRST_PACK_KEY = 11, /* behind the ten keys of the topic */
    OF_MIXED = 65536,    /* added to a node's key */
    LOST = 0,            /* header length of a pack that is gone */
    KINDS = 16,          /* of endings: those below */
    KIND_RETRY = 0,
    KIND_SNOOZE = 1,
    KIND_TICK = 2,   /* snoozed until a time of the server */
    KIND_FOLLOW = 3, /* to 6: with made ids, at times of the server */
    KIND_DEAD = 7,
    KIND_AWAY = 8,  /* to 11: as KIND_FOLLOW, to other topics */
    KIND_MOVED = 12 /* dead, to another topic */
};

#define GROUP_CALLS   ((uint64_t)1 << 36) /* topics are below */
#define GROUP_NUMBERS ((uint64_t)KINDS)

/* Lists of a call, in the order of the script's arguments. */
enum { NODES, BACK, CLOSED, MOVES, ENDINGS, LISTS, ARGS = LISTS + 3 };
enum { UNSTARTED = LISTS }; /* where there is a rate */

/* The last argument. */
enum { LEAVES_OUT = 1, WAKES = 2, HAS_LANES = 4 };

/* Of a lone call: what becomes of its claim. */
enum { ENDS = 1, ENDS_AND_OFFERS = 2 };

/* --- putting together ------------------------------------------------- */

static size_t slots_of(const struct weir__claimed_node *node)
{
    return node->is_dropped ? node->size : node->verdicts;
}

/* In slots of a call: what is written somewhere else counts twice. */
static size_t cost_of(const struct weir__claimed_node *node)
{
    size_t cost = slots_of(node) + node->endings + node->backs;

    WEIR_ASSERT(cost <= WEIR__SLOTS_PER_CALL);
    return cost;
}

static struct weir__fetched *pack_of(const struct weir__claimed_node *node)
{
    return &node->lease->packs[node->pack];
}

static bool fits(const struct weir__settle_call *call,
                 const struct weir__claimed_node *node)
{
    size_t nodes = call->nodes + call->back_nodes;

    if (call->asker != NULL || (node->asker != NULL && nodes > 0) ||
        (node->is_dropped != call->is_dropped && nodes > 0))
        return false;
    return nodes < WEIR__NODES_PER_CALL &&
           call->slots + cost_of(node) <= WEIR__SLOTS_PER_CALL &&
           (nodes == 0 || call->bytes + node->bytes <= WEIR__BYTES_PER_CALL);
}

static void take_node(struct weir__settle_call *call,
                      struct weir__claimed_node *node)
{
    struct weir__fetched *fetched = pack_of(node);

    if (fetched->call != call->number) {
        fetched->call = call->number;
        fetched->key = (uint32_t)(FIRST_PACK_KEY + call->packs);
        call->packs++;
    }
    node->call = call->number;
    node->index = (uint32_t)call->nodes;
    call->nodes++;
    call->bytes += node->bytes;
    call->verdicts += node->verdicts;
}

struct weir__settle_call
weir__settle_call_nodes(struct weir__delay_topic *topic,
                        struct weir__claimed_node *first)
{
    struct weir__settle_call call = {.topic = topic, .first = first};
    struct weir__claimed_node *node = first;

    call.number = ++topic->calls;
    while (node != NULL && fits(&call, node)) {
        if (slots_of(node) > 0)
            take_node(&call, node);
        call.back_nodes += node->backs > 0;
        call.backs += node->backs;
        call.slots += cost_of(node);
        call.asker = node->asker;
        call.is_dropped = node->is_dropped;
        node = node->next;
    }
    call.end = node;
    call.is_last = node == NULL;
    return call;
}

static uint32_t kind_of(const struct weir__item *item)
{
    switch (item->outcome) {
    case WEIR__OUTCOME_RETRY:
        return KIND_RETRY;
    case WEIR__OUTCOME_SNOOZE:
        return weir__item_is_tick(item) ? KIND_TICK : KIND_SNOOZE;
    case WEIR__OUTCOME_FOLLOW:
        return (item->away == NULL ? KIND_FOLLOW : KIND_AWAY) +
               (item->id_len == 0 ? 1u : 0u) + (item->is_absolute ? 2u : 0u);
    default:
        WEIR_ASSERT(item->outcome == WEIR__OUTCOME_DEAD);
        return item->away == NULL ? KIND_DEAD : KIND_MOVED;
    }
}

static uint64_t group_of(const struct weir__item *item, uint32_t call)
{
    uint64_t number = item->away == NULL ? 0 : item->away->number;

    return call * GROUP_CALLS + number * GROUP_NUMBERS + kind_of(item);
}

/* Order the endings by the call that takes them. Calls are put together twice
 * for that; the numbers come out the same. */
void weir__settle_call_sort_endings(struct weir__delay_topic *topic,
                                    struct weir__claimed_node *first)
{
    uint32_t before = topic->calls;
    struct weir__items *items = &topic->endings;

    if (items->count == 0)
        return;
    while (first != NULL)
        first = weir__settle_call_nodes(topic, first).end;
    for (size_t i = 0; i < items->count; i++) {
        struct weir__item *item = &items->list[i];

        item->group = group_of(item, item->node->call - before);
    }
    topic->calls = before;
    for (struct weir__claimed_node *node = topic->touched; node != NULL;
         node = node->next)
        pack_of(node)->call = before;
    weir__items_sort(items);
}

/* Behind the call's endings of kinds up to `kind`, from `at` on. */
static size_t end_of(const struct weir__settle_call *call, size_t at,
                     uint32_t kind)
{
    const struct weir__items *items = &call->topic->endings;

    while (at < items->count && items->list[at].node->call == call->number &&
           items->list[at].group % KINDS <= kind)
        at++;
    return at;
}

void weir__settle_call_endings(struct weir__settle_call *call, size_t first)
{
    call->first_item = first;
    call->end_move = end_of(call, first, KIND_DEAD - 1);
    call->end_dead = end_of(call, call->end_move, KIND_DEAD);
    call->end_item = end_of(call, call->end_dead, KIND_MOVED);
}

/* --- naming ------------------------------------------------------------- */

static bool plan_planned_packs(const struct weir__settle_call *call, size_t at,
                               size_t end)
{
    struct weir__planned_packs *packs = &call->topic->shared->planned_packs;
    const struct weir__items *items = &call->topic->endings;

    while (at < end) {
        struct weir__planned_pack planned;

        weir__planned_pack_plan(items, at, end, &planned);
        if (!weir__planned_packs_push(packs, &planned))
            return false;
        if (!weir__planned_pack_name(&call->topic->base, items,
                                     &packs->list[packs->count - 1])) {
            packs->count--;
            return false;
        }
        at += planned.count;
    }
    return true;
}

void weir__settle_call_forgo(const struct weir__settle_call *call)
{
    const struct weir__planned_packs *packs =
        &call->topic->shared->planned_packs;

    for (size_t i = 0; i < packs->count; i++)
        if (packs->list[i].target != NULL)
            weir__call_slot_leave(call->topic->base.store,
                                  packs->list[i].call_slot);
    weir__asker_tell(call->asker, WEIR_ENOMEM);
    weir__topic_forgo(&call->topic->base, call->verdicts + call->backs);
}

bool weir__settle_call_plan(struct weir__settle_call *call)
{
    struct weir__planned_packs *planned_packs =
        &call->topic->shared->planned_packs;

    planned_packs->count = 0;
    if (!plan_planned_packs(call, call->first_item, call->end_move))
        return false;
    call->moves = planned_packs->count;
    if (!plan_planned_packs(call, call->end_dead, call->end_item))
        return false;
    call->planned = planned_packs->list;
    call->planned_count = planned_packs->count;
    return true;
}

/* --- writing ------------------------------------------------------------ */

static void write_slots(struct weir__buf *list,
                        const struct weir__claimed_node *node,
                        const uint64_t bits[4], size_t wanted)
{
    uint8_t slots[WEIR__SLOTS_MAX];
    size_t count = 0;

    if (wanted < node->size)
        for (uint32_t slot = node->lo; slot < node->lo + node->size; slot++)
            if ((bits[slot >> 6] >> (slot & 63) & 1) != 0)
                slots[count++] = (uint8_t)slot;
    weir__pack_str(list, slots, count);
}

/* Where the node is a small part of its pack the script is told its ids, and
 * does not read all of the pack's. */
static bool tells_ids(const struct weir__claimed_node *node)
{
    const struct weir__fetched *fetched = pack_of(node);

    if (node->size * 2 > fetched->pack.count || fetched->batch == NULL ||
        fetched->batch->ids == NULL)
        return false;
    for (uint32_t slot = node->lo; slot < node->lo + node->size; slot++)
        if (fetched->batch->ids[slot].len == 0) /* the pack has it */
            return false;
    return true;
}

static void write_ids(struct weir__buf *list,
                      const struct weir__claimed_node *node)
{
    const struct weir_slice *ids = pack_of(node)->batch->ids;

    if (node->size > 1)
        weir__pack_array(list, node->size);
    for (uint32_t slot = node->lo; slot < node->lo + node->size; slot++)
        weir__pack_str(list, ids[slot].ptr, ids[slot].len);
}

static void write_nodes(struct weir__buf *list,
                        const struct weir__settle_call *call)
{
    weir__pack_array(list, 5 * call->nodes);
    for (const struct weir__claimed_node *node = call->first; node != call->end;
         node = node->next) {
        const struct weir__fetched *fetched = pack_of(node);

        if (slots_of(node) == 0)
            continue;
        weir__pack_uint(list, fetched->key + (node->is_mixed ? OF_MIXED : 0));
        weir__pack_str(list, node->name, sizeof(node->name));
        weir__pack_uint(list, node->lease->base.token);
        if (node->is_dropped)
            weir__pack_uint(list, LOST);
        else if (tells_ids(node))
            write_ids(list, node);
        else
            weir__pack_uint(list, fetched->batch == NULL
                                      ? WEIR__PACK_HEAD
                                      : fetched->batch->header_len);
        write_slots(list, node, node->slots, slots_of(node));
    }
}

static void write_back(struct weir__buf *list,
                       const struct weir__settle_call *call)
{
    if (call->back_nodes == 0)
        return;
    weir__pack_array(list, 4 * call->back_nodes);
    for (const struct weir__claimed_node *node = call->first; node != call->end;
         node = node->next) {
        if (node->backs == 0)
            continue;
        weir__pack_str(list, node->name, sizeof(node->name));
        weir__pack_uint(list, node->lease->base.token);
        weir__pack_uint(
            list,
            (uint64_t)(node->due_ms + (node->is_mixed ? WEIR__MIXED_MS : 0)));
        write_slots(list, node, node->back, node->backs);
    }
}

static void write_closed(struct weir__buf *list,
                         const struct weir__settle_call *call)
{
    const struct weir__delay_lease *lease;
    size_t count = 0;

    for (lease = call->topic->done; lease != NULL && call->is_last;
         lease = lease->next_done)
        count++;
    if (count == 0)
        return;
    weir__pack_array(list, count);
    for (lease = call->topic->done; lease != NULL; lease = lease->next_done)
        weir__pack_uint(list, lease->base.token);
}

static uint64_t source_of(const struct weir__item *item)
{
    return (uint64_t)item->node->index * WEIR__SLOTS_MAX + item->slot;
}

/* The script's number for what a pack is of; 4 more: it ends with a mark. */
static uint64_t form_of(const struct weir__item *item)
{
    switch (item->outcome) {
    case WEIR__OUTCOME_FOLLOW:
        return 2;
    case WEIR__OUTCOME_DEAD:
        return 3;
    default:
        return item->outcome == WEIR__OUTCOME_RETRY ? 1 : 0;
    }
}

static void write_move(struct weir__buf *list,
                       const struct weir__settle_call *call, size_t index)
{
    const struct weir__planned_pack *planned = &call->planned[index];
    const struct weir__items *items = &call->topic->endings;
    const struct weir__item *first = &items->list[planned->first];

    weir__planned_pack_tell(list, items, planned,
                            FIRST_PACK_KEY + call->packs + index);
    weir__pack_uint(list, form_of(first) + (first->mark != 0 ? 4 : 0));
    weir__pack_array(list, planned->count);
    for (size_t slot = 0; slot < planned->count; slot++)
        weir__pack_uint(list, source_of(&first[slot]));
    if (planned->target == NULL)
        weir__pack_str(list, "", 0);
    else
        weir__relays_write(list, call->topic->shared->store,
                           planned->target->base.name, planned->call_slot,
                           planned->second);
}

static void write_moves(struct weir__buf *list,
                        const struct weir__settle_call *call)
{
    if (call->planned_count == 0)
        return;
    weir__pack_array(list, 7 * call->planned_count);
    for (size_t i = 0; i < call->planned_count; i++)
        write_move(list, call, i);
}

static void write_ends(struct weir__buf *list,
                       const struct weir__settle_call *call)
{
    const struct weir__items *items = &call->topic->endings;

    if (call->end_move == call->end_dead)
        return;
    weir__pack_array(list, 3 * (call->end_dead - call->end_move));
    for (size_t at = call->end_move; at < call->end_dead; at++) {
        const struct weir__item *item = &items->list[at];
        struct weir_slice id = weir__item_id(items, item);
        struct weir_slice record = weir__item_record(items, item);

        weir__pack_uint(list, source_of(item));
        weir__pack_str(list, id.ptr, id.len);
        weir__pack_str(list, record.ptr, record.len);
    }
}

static bool has_lanes(const struct weir__settle_call *call)
{
    for (const struct weir__claimed_node *node = call->first; node != call->end;
         node = node->next)
        if (node->is_laned)
            return true;
    return false;
}

/* The script and its keys. */
static void write_keys(struct weir__buf *buf,
                       const struct weir__settle_call *call, size_t args)
{
    const struct weir__prefix *prefix = &call->topic->base.prefix;
    bool has_relay = call->planned_count > call->moves;
    uint32_t key = FIRST_PACK_KEY;

    weir__resp_eval(
        buf, &weir__script_delay_settle,
        FIRST_PACK_KEY + call->packs + call->planned_count + has_relay, args);
    weir__prefix_keys(buf, prefix,
                      "run lease ids meta wait dead rec idle held due");
    for (const struct weir__claimed_node *node = call->first; node != call->end;
         node = node->next)
        if (slots_of(node) > 0 && pack_of(node)->key == key) { /* its first */
            weir__prefix_pack(buf, prefix, node->name);
            key++;
        }
    for (size_t i = 0; i < call->planned_count; i++)
        weir__planned_pack_key(buf, prefix, &call->planned[i]);
    weir__prefix_keys(buf, prefix, has_relay ? "absent relay" : "absent");
}

/* One run that is done, of a node that is its slot: the server has a script for
 * just that, which wakes nobody. */
static bool is_lone(const struct weir__settle_call *call)
{
    const struct weir__claimed_node *node = call->first;
    const struct weir__delay_lease *done =
        call->is_last ? call->topic->done : NULL;

    return !call->topic->is_parallel && call->nodes == 1 &&
           call->back_nodes == 0 && node->size == 1 && node->verdicts == 1 &&
           !node->is_laned && node->endings == 0 &&
           pack_of(node)->pack.count > 0 && /* else nothing is known of it */
           (done == NULL || (done == node->lease && done->next_done == NULL));
}

void weir__settle_call_offer(struct weir__settle_call *call)
{
    const struct weir__delay_topic *topic = call->topic;

    if (is_lone(call) && topic->done != NULL && call->first == topic->touched &&
        call->first->lease->is_handed)
        call->offer = weir__offer_renew(call->topic);
}

static void write_offer(struct weir__buf *buf,
                        const struct weir__settle_call *call)
{
    const struct weir__store_topic *base = &call->topic->base;

    weir__resp_int(buf, base->claim.lease_ms);
    weir__resp_int(buf, call->offer);
    weir__resp_str(buf, base->place->server->worker);
    weir__claim_write_server(buf, base);
    weir__resp_int(buf, ENDS_AND_OFFERS);
}

static void write_lone(struct weir__buf *buf,
                       const struct weir__settle_call *call)
{
    const struct weir__prefix *prefix = &call->topic->base.prefix;
    const struct weir__claimed_node *node = call->first;
    const struct weir__fetched *fetched = pack_of(node);
    bool offers = call->offer != 0;
    struct weir_slice id = {0};

    WEIR_ASSERT(!offers || !node->is_mixed); /* what is handed over is alone */
    if (fetched->batch->ids != NULL)
        id = fetched->batch->ids[node->lo];
    weir__resp_eval(buf, &weir__script_delay_settle_one,
                    6 + node->is_mixed + (offers ? 2u : 0u),
                    6 + (offers ? 4u : 0u));
    weir__prefix_keys(buf, prefix, "run lease ids meta held");
    weir__prefix_pack(buf, prefix, node->name);
    if (node->is_mixed)
        weir__prefix_key(buf, prefix, "due");
    if (offers)
        weir__prefix_keys(buf, prefix, "wait idle");
    weir__resp_bytes(buf, weir__slice_of(node->name, sizeof(node->name)));
    weir__resp_int(buf, (int64_t)node->lease->base.token);
    weir__resp_int(buf, (int64_t)node->lo);
    weir__resp_bytes(buf, id);
    weir__resp_int(buf, (int64_t)fetched->pack.count);
    if (offers)
        write_offer(buf, call);
    else
        weir__resp_int(buf,
                       call->is_last && call->topic->done != NULL ? ENDS : 0);
}

/* Any call. */
static void write_full(struct weir__buf *buf,
                       const struct weir__settle_call *call)
{
    struct weir__delay_topic *topic = call->topic;
    struct weir__buf *lists = topic->shared->scratch;
    bool has_unstarted;

    for (size_t i = 0; i < WEIR__SETTLE_LISTS; i++)
        weir__buf_reset(&lists[i]);
    write_nodes(&lists[NODES], call);
    write_back(&lists[BACK], call);
    write_closed(&lists[CLOSED], call);
    write_moves(&lists[MOVES], call);
    write_ends(&lists[ENDINGS], call);
    has_unstarted = weir__unstarted_write(&lists[UNSTARTED], call);
    write_keys(buf, call, ARGS + has_unstarted);
    weir__resp_str(buf, topic->base.name);
    for (size_t i = 0; i < LISTS; i++) {
        weir__resp_bytes(buf, weir__buf_slice(&lists[i]));
        buf->failed = buf->failed || lists[i].failed;
    }
    weir__resp_int(buf, topic->max_dead);
    if (has_unstarted) {
        weir__resp_bytes(buf, weir__buf_slice(&lists[UNSTARTED]));
        buf->failed = buf->failed || lists[UNSTARTED].failed;
    }
    weir__resp_int(buf, (topic->is_parallel ? WAKES : 0) +
                            (has_lanes(call) ? HAS_LANES : 0));
}

const struct weir__script *
weir__settle_call_write(struct weir__buf *buf,
                        const struct weir__settle_call *call)
{
    if (is_lone(call)) {
        write_lone(buf, call);
        return &weir__script_delay_settle_one;
    }
    write_full(buf, call);
    return &weir__script_delay_settle;
}

size_t weir__settle_call_first_key(const struct weir__settle_call *call)
{
    enum { BEFORE_KEYS = 3 }; /* EVALSHA, digest, number of keys */

    return BEFORE_KEYS + FIRST_PACK_KEY - 1 + call->packs;
}

void weir__settle_call_leave_out(struct weir__buf *buf)
{
    uint8_t *last = buf->ptr + buf->len - 3;

    WEIR_ASSERT(!buf->failed && buf->len > 3);
    WEIR_ASSERT(*last >= '0' && *last <= '0' + LEAVES_OUT + WAKES + HAS_LANES);
    *last |= LEAVES_OUT; /* '0' has none of the bits */
}

void weir__settle_call_offer_nothing(struct weir__buf *buf)
{
    uint8_t *last = buf->ptr + buf->len - 3;

    WEIR_ASSERT(!buf->failed && buf->len > 3);
    WEIR_ASSERT(*last == '0' + ENDS_AND_OFFERS);
    *last = '0' + ENDS;
}

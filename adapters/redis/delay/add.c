/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/add_call.h"
#include "adapters/redis/delay/keys.h"
#include "core/assert.h"
#include "core/mem.h"

/* Adding jobs: what a topic collected in one turn leaves as staged packs and
 * calls of the add script for up to 1,024 jobs. A job alone leaves in its turn.
 * While calls are on their way jobs gather behind them, as Nagle's algorithm
 * has it (RFC 896): the faster they come the fuller the packs. They stay in
 * memory until all are answered, so that a pack can be staged again; of many
 * only a part is written for the connection at a time. */

enum {
    CALL_PACKS = 250, /* keeps the list of keys short */
    CALLS_AHEAD = 2,  /* on their way while less than a full call waits */
    CALLS_MOST = 8,   /* on their way, or so many bytes: then the rest waits */
    BYTES_MOST = 4 * 1024 * 1024,
    SLOTS_LEAST = WEIR__SLOTS_MAX, /* of a call: a pack */
    KEY_HELD = 512,                /* what the script answers then */
    KEYED_MOST = 64, /* jobs with unique keys or packs of lanes of a call: each
                        costs more */
    CALL_NS = 1000 * 1000 /* that one should take: some take five times that */
};

/* --- answering ---------------------------------------------------------- */

/* Each is answered once. A job that never got as far as a pack has no made id
 * yet. */
static void answer(const struct weir__adds *adds, struct weir__item *item,
                   const char *made, int code)
{
    const char *id = item->id_len > 0
                         ? (const char *)adds->items.bytes.ptr + item->id_at
                         : "@";
    const char *holder = weir__item_holder(&adds->items, item);
    weir_added_fn fn = item->fn;

    if (fn == NULL)
        return;
    if (item->code != WEIR_OK && code == WEIR_OK)
        code = item->code;
    if (holder != NULL && code == WEIR_EEXISTS)
        made = holder;
    item->fn = NULL;
    weir__topic_added(&adds->topic->base, fn, code, made != NULL ? made : id,
                      item->arg);
}

/* The planned pack that an item of the call is in, not ahead of `*next`;
 * duplicates are in none. */
static const struct weir__planned_pack *
planned_of(const struct weir__add_call *call, size_t at, size_t *next)
{
    while (*next < call->planned_count) {
        const struct weir__planned_pack *planned = &call->planned_packs[*next];

        if (at < planned->first)
            return NULL;
        if (at < planned->first + planned->count)
            return planned;
        (*next)++;
    }
    return NULL;
}

/* Answers the call's items, except those that went to another call; or only
 * what was refused. Returns how many are left. */
static size_t answer_call(struct weir__add_call *call, int code,
                          bool is_refused_only)
{
    struct weir__adds *adds = call->adds;
    size_t next = 0, left = 0;

    for (size_t at = call->first; at < call->end; at++) {
        struct weir__item *item = &adds->items.list[at];
        const struct weir__planned_pack *planned = planned_of(call, at, &next);
        char made[WEIR__MADE_ID_LEN + 1];
        bool is_made = item->id_len == 0 && planned != NULL;

        if (planned != NULL && planned->is_elsewhere)
            continue;
        if (is_refused_only && item->code == WEIR_OK) {
            left++;
            continue;
        }
        if (is_made)
            weir__made_id(planned->seq, (unsigned)(at - planned->first), made);
        answer(adds, item, is_made ? made : NULL, code);
    }
    return left;
}

static void finish(struct weir__add_call *call, int code)
{
    (void)answer_call(call, code, false); /* none is */
    weir__call_slot_leave(call->adds->topic->base.store, call->call_slot);
    weir__adds_unref(call->adds);
    call->is_over = true;
    if (call->staging == 0)
        weir__mem_free(call);
}

/* --- sending ------------------------------------------------------------ */

enum { FLAGS = WEIR__SEND_AGAIN | WEIR__SEND_REPLAY };

/* Adds nothing where the server knows it. */
static void send_again(struct weir__confirm *confirm)
{
    struct weir__add_call *call = confirm->call;

    call->is_again = true;
    weir__add_call_send(call, WEIR__SEND_HERE | WEIR__SEND_REPLAY);
}

static void on_confirmed(struct weir__confirm *confirm, int code)
{
    finish(confirm->call, code);
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply);

static void prepare_confirm(struct weir__add_call *call)
{
    const struct weir__item *first = &call->adds->items.list[call->first];
    struct weir__confirm *confirm = &call->confirm;

    confirm->durability = weir__group_durability(first->group);
    if (confirm->durability == 0)
        return;
    confirm->topic = &call->adds->topic->base;
    confirm->call = call;
    confirm->done = on_confirmed;
    confirm->send_again = send_again;
    /* Besides the bytes of its jobs, which count until it is done. */
    confirm->bytes = (call->end - call->first) * sizeof(*first);
}

/* Are they for the script that takes such jobs one by one? */
static bool are_keyed(const struct weir__adds *adds,
                      const struct weir__planned_pack *planned_packs,
                      size_t count)
{
    const struct weir__item *first = &adds->items.list[planned_packs[0].first];

    return weir__item_is_alone(first) ||
           (count == 1 && planned_packs[0].count == 1 && first->lane_len > 0);
}

/* Of planned packs that were named just now. NULL when out of memory. */
static struct weir__add_call *
call_new(struct weir__adds *adds,
         const struct weir__planned_pack *planned_packs, size_t count)
{
    struct weir__add_call *call =
        weir__mem_new(sizeof(*call) + count * sizeof(planned_packs[0]));

    if (call == NULL)
        return NULL;
    if (!weir__call_slot_take(adds->topic->base.store, &call->call_slot)) {
        weir__mem_free(call);
        return NULL;
    }
    call->number = adds->topic->base.store->seqs.last;
    call->nonce = weir__call_nonce(adds->topic->base.store);
    call->has_keys = are_keyed(adds, planned_packs, count);
    call->request.store = adds->topic->base.store;
    call->request.done = on_added;
    call->adds = adds;
    call->first = planned_packs[0].first;
    call->end = planned_packs[count - 1].first + planned_packs[count - 1].count;
    call->planned_count = count;
    memcpy(call->planned_packs, planned_packs,
           count * sizeof(planned_packs[0]));
    prepare_confirm(call);
    adds->refs++;
    adds->topic->add_calls++;
    return call;
}

/* --- replies ------------------------------------------------------------ */

static void fail_planned(struct weir__add_call *call, size_t index, int code)
{
    const struct weir__planned_pack *planned = &call->planned_packs[index];

    for (size_t i = 0; i < planned->count; i++)
        call->adds->items.list[planned->first + i].code = code;
}

/* The pack was not staged (its minute passed, the server was out of memory, or
 * takes none so large), or another producer has one of this name, and our
 * number with it: once more under a new name, then it is an error. */
static void stage_again(struct weir__add_call *call, size_t index,
                        bool is_taken)
{
    struct weir__planned_pack planned = call->planned_packs[index];
    struct weir__add_call *second = NULL;

    if (is_taken)
        weir__redis_number_by_chance(call->request.store);
    planned.is_taken = false;
    if (!call->is_second && !planned.is_refused) {
        weir__topic_next_seq(&call->adds->topic->base, planned.seq);
        second = call_new(call->adds, &planned, 1);
    }
    if (second == NULL) {
        fail_planned(call, index,
                     planned.is_refused ? WEIR_ETOOBIG : WEIR_ESERVER);
        return;
    }
    call->planned_packs[index].is_elsewhere = true;
    second->is_second = true;
    weir__add_call_send(second, FLAGS);
}

/* A copy of this process uses the call slot, too. What another server had
 * acknowledged is there. */
static void add_again(struct weir__add_call *call)
{
    for (size_t i = 0; i < call->planned_count && !call->is_again; i++)
        if (!call->planned_packs[i].is_elsewhere)
            stage_again(call, i, true);
}

/* The script added the jobs of another producer under these names, or refused
 * the packs: what it says of them is not about ours. */
static void stage_taken_again(struct weir__add_call *call)
{
    for (size_t i = 0; i < call->planned_count; i++)
        if (call->planned_packs[i].is_taken)
            stage_again(call, i, true);
}

/* Elements of a reply that tell of a job that was refused. */
static size_t told_of_each(const struct weir__add_call *call)
{
    return call->has_keys ? 3 : 2;
}

/* Another job holds the key of this one. */
static bool read_holder(struct weir__adds *adds, struct weir__item *item,
                        const struct redisReply *reply, size_t i)
{
    struct weir_slice id;

    if (!weir__reply_str(reply, i, &id) || id.len > WEIR_MAX_ID ||
        memchr(id.ptr, '\0', id.len) != NULL)
        return false;
    item->code = WEIR_EEXISTS;
    if (item->holder_at != 0)
        return true; /* the call was sent again */
    return weir__adds_set_holder(adds, item, id);
}

/* Enter what the script refused. False: not an answer of the script. */
static bool read_refused(struct weir__add_call *call,
                         const struct redisReply *reply)
{
    size_t each = told_of_each(call);

    for (size_t i = 1; i + each <= (size_t)reply->elements; i += each) {
        struct weir__item *items;
        int64_t index, slot;

        if (!weir__reply_int(reply, i, &index) ||
            !weir__reply_int(reply, i + 1, &slot) || index < 0 ||
            index >= (int64_t)call->planned_count || slot < WEIR__NOT_STORED ||
            slot % WEIR__SLOTS_MAX >= (int64_t)call->planned_packs[index].count)
            return false;
        if (slot == WEIR__NOT_STORED) {
            add_again(call);
            return true;
        }
        if (call->planned_packs[index].is_elsewhere)
            continue; /* the call was sent again */
        items = &call->adds->items.list[call->planned_packs[index].first];
        if (slot == KEY_HELD && call->has_keys) {
            if (!read_holder(call->adds, items, reply, i + 2))
                return false;
        } else if (slot >= WEIR__SLOTS_MAX)
            items[slot % WEIR__SLOTS_MAX].code = WEIR_EFULL;
        else if (slot >= 0)
            items[slot].code = WEIR_EEXISTS;
        else if (slot >= -2)
            stage_again(call, (size_t)index, slot == -1);
        else /* somebody wrote over it, or wrote the answer */
            fail_planned(call, (size_t)index, WEIR_ESERVER);
    }
    return true;
}

/* Where options are stored their revision comes last. When they changed, the
 * next add reads what concerns it. */
static void note_revision(const struct weir__add_call *call,
                          const struct redisReply *reply)
{
    struct weir__delay_topic *topic = call->adds->topic;
    size_t count = (size_t)reply->elements;
    bool has_it = (count - 1) % told_of_each(call) == 1;
    int64_t revision = 0;

    if (has_it && !weir__reply_int(reply, count - 1, &revision))
        return;
    if (topic->limits_revision != revision)
        topic->base.limits.connection = 0;
    topic->limits_revision = revision;
}

/* Returns what it means. */
static int read_answer(struct weir__add_call *call,
                       const struct redisReply *reply)
{
    int64_t added;

    if (!weir__reply_int(reply, 0, &added))
        return WEIR_ESERVER;
    if (added < 0)
        return WEIR_EKIND;
    stage_taken_again(call);
    if (!read_refused(call, reply))
        return WEIR_ESERVER;
    note_revision(call, reply);
    return WEIR_OK;
}

/* Small calls say nothing of what a slot costs. */
static void note_work(const struct weir__add_call *call)
{
    struct weir__delay_topic *topic = call->adds->topic;
    int64_t ns = weir__conn_take_work_ns(topic->base.place->server->commands);
    size_t slots = 0;

    for (size_t i = 0; i < call->planned_count; i++)
        slots += call->planned_packs[i].count;
    if (slots < SLOTS_LEAST || ns < 0)
        return;
    topic->add_costs[topic->oldest_cost] = ns / (int64_t)slots;
    topic->oldest_cost = (topic->oldest_cost + 1) % WEIR__ADD_COSTS;
}

/* Of a call, which leaves room for the next one. */
static void note_answer(struct weir__delay_topic *topic)
{
    WEIR_ASSERT(topic->add_calls > 0);
    topic->add_calls--;
    if (topic->adds != NULL || topic->sending != NULL)
        weir__topic_mark(&topic->base);
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__add_call *call =
        (struct weir__add_call *)request; /* its first member */
    struct weir__delay_topic *topic = call->adds->topic;

    weir__topic_log_error(&topic->base, "add", code, reply);
    if (code == WEIR_OK) {
        note_work(call);
        code = read_answer(call, reply);
        if (code == WEIR_OK)
            weir__add_call_leave_out(call);
        else
            weir__conn_replay_nothing(topic->base.place->server->commands);
    }
    if (!call->is_again)
        note_answer(topic);
    if (code == WEIR_OK && call->confirm.durability != 0 &&
        answer_call(call, WEIR_OK, true) == 0)
        call->confirm.durability = 0;
    code = weir__confirm_answered(&call->confirm, code);
    if (code != WEIR__CONFIRM_WAITS)
        finish(call, code);
}

/* --- giving up ----------------------------------------------------------- */

static void fail_adds(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__adds *adds =
        (struct weir__adds *)request; /* its first member */

    (void)reply; /* there is none */
    for (size_t at = adds->next; at < adds->items.count; at++)
        answer(adds, &adds->items.list[at], NULL, code);
    weir__adds_unref(adds);
}

/* NULL: none are collected. */
static struct weir__adds *take_adds(struct weir__delay_topic *topic)
{
    struct weir__adds *adds = topic->adds;

    if (adds != NULL)
        topic->adds = adds->next_adds;
    if (topic->adds == NULL)
        topic->last_adds = NULL;
    return adds;
}

/* What callbacks add meanwhile is not among them. */
void weir__delay_fail_adds(struct weir__store_topic *base, int code)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__adds *sending = topic->sending, *adds = topic->adds;

    topic->sending = topic->adds = topic->last_adds = NULL;
    if (sending != NULL)
        fail_adds(&sending->request, code, NULL);
    while (adds != NULL) {
        struct weir__adds *next = adds->next_adds;

        fail_adds(&adds->request, code, NULL);
        adds = next;
    }
}

/* --- flushing ----------------------------------------------------------- */

/* Of a call, by the fastest of the last ones: the larger the index of ids, the
 * less of it is in caches, and the server does nothing else meanwhile. */
static size_t most_slots(const struct weir__delay_topic *topic)
{
    int64_t least = topic->add_costs[0], most;

    for (size_t i = 1; i < WEIR__ADD_COSTS; i++)
        if (topic->add_costs[i] < least)
            least = topic->add_costs[i];
    most = least == 0 ? WEIR__SLOTS_PER_CALL : CALL_NS / least;
    if (most < SLOTS_LEAST)
        return SLOTS_LEAST;
    return most > WEIR__SLOTS_PER_CALL ? WEIR__SLOTS_PER_CALL : (size_t)most;
}

/* Planned packs for one call, from item `first` on; false: no memory. */
static bool plan_call(struct weir__adds *adds, size_t first, size_t end)
{
    struct weir__delay *shared = adds->topic->shared;
    uint64_t durability =
        adds->items.list[first].group >> WEIR__GROUP_DURABILITY;
    size_t slots = 0, keyed = 0, most = most_slots(adds->topic);

    shared->planned_packs.count = 0;
    while (first < end && shared->planned_packs.count < CALL_PACKS &&
           adds->items.list[first].group >> WEIR__GROUP_DURABILITY ==
               durability) {
        const struct weir__item *item = &adds->items.list[first];
        struct weir__planned_pack planned;

        weir__planned_pack_plan(&adds->items, first, end, &planned);
        keyed += weir__item_is_alone(item) || item->lane_len > 0;
        if (slots + planned.count > most || keyed > KEYED_MOST)
            break;
        weir__topic_next_seq(&adds->topic->base, planned.seq);
        if (!weir__planned_packs_push(&shared->planned_packs, &planned))
            return false;
        slots += planned.count;
        first += planned.count;
    }
    return true;
}

/* The next answer lets more go. */
static bool is_ahead(const struct weir__delay_topic *topic)
{
    return topic->add_calls >= CALLS_MOST ||
           (topic->add_calls > 0 &&
            weir__place_queued(topic->base.place) >= BYTES_MOST);
}

/* False when out of memory. */
static bool send_next(struct weir__adds *adds)
{
    const struct weir__planned_packs *planned_packs =
        &adds->topic->shared->planned_packs;
    struct weir__add_call *call = NULL;

    if (plan_call(adds, adds->next, adds->end))
        call = call_new(adds, planned_packs->list, planned_packs->count);
    if (call == NULL)
        return false;
    if (call->end == adds->end)
        call->end = adds->items.count; /* the duplicates go with the last */
    adds->next = call->end;
    weir__add_call_send(call, FLAGS);
    return true;
}

/* As much of it as may be on its way. */
static void send_part(struct weir__delay_topic *topic)
{
    struct weir__adds *adds = topic->sending;
    bool has_memory = true;

    while (adds->next < adds->end && has_memory && !is_ahead(topic))
        has_memory = send_next(adds);
    if (adds->next < adds->end && has_memory)
        return;
    topic->sending = NULL;
    if (adds->next == adds->items.count) {
        weir__adds_unref(adds);
        return;
    }
    adds->request.done = fail_adds;
    weir__redis_fail(&adds->request, has_memory ? WEIR_OK : WEIR_ENOMEM);
}

/* More may come before those on their way are answered; the answer flushes. */
static bool gathers(const struct weir__delay_topic *topic)
{
    return topic->add_calls >= CALLS_AHEAD &&
           topic->adds->items.count < most_slots(topic) &&
           topic->adds == topic->last_adds;
}

void weir__delay_flush_adds(struct weir__delay_topic *topic)
{
    int codes[2];

    if ((topic->adds == NULL && topic->sending == NULL) ||
        !weir__limits_known(&topic->base))
        return;
    if (topic->sending != NULL)
        send_part(topic);
    while (topic->sending == NULL && topic->adds != NULL && !is_ahead(topic) &&
           !gathers(topic) && weir__adds_check(topic->adds, codes)) {
        topic->sending = take_adds(topic);
        topic->sending->items.now_ms = weir__topic_server_ms(&topic->base);
        topic->sending->end = weir__adds_arrange(topic->sending, codes);
        send_part(topic);
    }
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/add.h"

#include <string.h>

#include "core/assert.h"
#include "core/mem.h"

/* One call of the add script, with the packs that are staged before it. */

enum { STAGED_MS = 60000, IN_ANOTHER_CALL = 1 };

struct add_call {
    struct weir__request request;
    struct weir__adds *adds;
    size_t first, end; /* its items */
    bool is_second;    /* its packs were staged again */
    uint32_t call_slot;
    uint64_t number; /* grows from call to call */
    size_t planned_count;
    struct weir__planned_pack planned_packs[];
};

/* --- answering ---------------------------------------------------------- */

/* A job that never got as far as a pack has no made id yet. */
void weir__adds_answer(const struct weir__adds *adds,
                       const struct weir__item *item, const char *made,
                       int code)
{
    const char *id = item->id_len > 0
                         ? (const char *)adds->items.bytes.ptr + item->id_at
                         : "~";

    if (item->fn == NULL)
        return;
    if (item->code != WEIR_OK && code == WEIR_OK)
        code = item->code;
    item->fn(code, made != NULL ? made : id, item->arg);
}

/* The planned that an item of the call is in; duplicates are in none. */
static const struct weir__planned_pack *planned_of(const struct add_call *call,
                                                   size_t at, size_t *hint)
{
    while (*hint < call->planned_count) {
        const struct weir__planned_pack *planned = &call->planned_packs[*hint];

        if (at < planned->first)
            return NULL;
        if (at < planned->first + planned->count)
            return planned;
        (*hint)++;
    }
    return NULL;
}

/* Answers all of the call's items, except those that went out again. */
static void finish(struct add_call *call, int code)
{
    struct weir__adds *adds = call->adds;
    struct weir__delay_topic *topic = adds->topic;
    size_t hint = 0;

    WEIR_ASSERT(topic->add_calls > 0);
    topic->add_calls--;
    if (topic->adds != NULL)
        weir__topic_mark(&topic->base);

    for (size_t at = call->first; at < call->end; at++) {
        const struct weir__item *item = &adds->items.list[at];
        const struct weir__planned_pack *planned = planned_of(call, at, &hint);
        char made[WEIR__MADE_ID_LEN + 1];
        bool is_made = item->id_len == 0 && planned != NULL;

        if (is_made)
            weir__made_id(planned->seq, (unsigned)(at - planned->first), made);
        if (item->code != IN_ANOTHER_CALL)
            weir__adds_answer(adds, item, is_made ? made : NULL, code);
    }
    weir__call_slot_leave(topic->base.store, call->call_slot);
    weir__adds_unref(adds);
    weir__mem_free(call);
}

/* --- staging ------------------------------------------------------------- */

void weir__delay_begin_stage(struct weir__buf *buf)
{
    weir__resp_command(buf, 6);
    weir__resp_str(buf, "SET");
}

size_t weir__delay_end_stage(struct weir__buf *buf,
                             const struct weir__items *items,
                             const struct weir__planned_pack *planned)
{
    size_t at;

    /* The pack and what is around it. */
    (void)weir__buf_reserve(buf, planned->size.len + 128);
    weir__resp_begin(buf, planned->size.len);
    at = buf->len;
    weir__planned_pack_write(buf, items, planned);
    weir__resp_end(buf);
    weir__resp_str(buf, "NX");
    weir__resp_str(buf, "PX");
    weir__resp_int(buf, STAGED_MS);
    return at;
}

void weir__delay_write_stage(struct weir__buf *buf,
                             const struct weir__delay_topic *topic,
                             const struct weir__items *items,
                             const struct weir__planned_pack *planned)
{
    weir__delay_begin_stage(buf);
    weir__prefix_pack(buf, &topic->base.prefix, planned->seq);
    (void)weir__delay_end_stage(buf, items, planned);
}

/* --- sending ------------------------------------------------------------ */

static void write_call(struct weir__buf *buf, const struct add_call *call)
{
    const struct weir__delay_topic *topic = call->adds->topic;
    const struct weir__items *items = &call->adds->items;
    struct weir__buf *when = &topic->shared->scratch[0];

    weir__resp_eval(buf, &weir__script_delay_add, 5 + call->planned_count,
                    4 + 3 * call->planned_count);
    weir__prefix_keys(buf, &topic->base.prefix, "wait ids meta idle seen");
    for (size_t i = 0; i < call->planned_count; i++)
        weir__prefix_pack(buf, &topic->base.prefix, call->planned_packs[i].seq);
    weir__resp_str(buf, topic->base.name);
    weir__resp_str(buf, "delay");
    weir__call_slot_write(buf, call->request.store, call->call_slot,
                          call->number);
    for (size_t i = 0; i < call->planned_count; i++) {
        const struct weir__planned_pack *planned = &call->planned_packs[i];
        uint64_t group = items->list[planned->first].group;

        weir__buf_reset(when);
        weir__planned_pack_when(when, items, planned,
                                (group & WEIR__GROUP_ABSOLUTE) != 0);
        weir__resp_int(buf, (int64_t)planned->count);
        weir__resp_int(buf, (int64_t)planned->size.header_len);
        weir__resp_bytes(buf, weir__buf_slice(when));
        buf->failed = buf->failed || when->failed;
    }
}

/* Both kinds of commands are sent again after a reconnect, in this order; the
 * script recognises a repeat by its call slot and number. */
static void send_call(struct add_call *call)
{
    struct weir__delay_topic *topic = call->adds->topic;
    struct weir__delay *shared = topic->shared;
    struct weir__buf bytes = {0};

    for (size_t i = 0; i < call->planned_count; i++) {
        weir__delay_write_stage(&bytes, topic, &call->adds->items,
                                &call->planned_packs[i]);
        weir__redis_send(shared->store, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
    }
    write_call(&bytes, call);
    weir__redis_send(shared->store, &bytes, &weir__script_delay_add,
                     WEIR__SEND_AGAIN, &call->request);
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply);

/* Of planned packs that were named just now. NULL when out of memory. */
static struct add_call *call_new(struct weir__adds *adds,
                                 const struct weir__planned_pack *planned_packs,
                                 size_t count)
{
    struct add_call *call =
        weir__mem_new(sizeof(*call) + count * sizeof(planned_packs[0]));

    if (call == NULL)
        return NULL;
    if (!weir__call_slot_take(adds->topic->base.store, &call->call_slot)) {
        weir__mem_free(call);
        return NULL;
    }
    call->number = adds->topic->base.store->seqs.last;
    call->request.store = adds->topic->base.store;
    call->request.done = on_added;
    call->adds = adds;
    call->first = planned_packs[0].first;
    call->end = planned_packs[count - 1].first + planned_packs[count - 1].count;
    call->planned_count = count;
    memcpy(call->planned_packs, planned_packs,
           count * sizeof(planned_packs[0]));
    adds->refs++;
    adds->topic->add_calls++;
    return call;
}

/* --- replies ------------------------------------------------------------ */

static void fail_planned(struct add_call *call, size_t index)
{
    const struct weir__planned_pack *planned = &call->planned_packs[index];

    for (size_t i = 0; i < planned->count; i++)
        call->adds->items.list[planned->first + i].code = WEIR_ESERVER;
}

/* The pack was not staged (its minute passed, the server was out of memory), or
 * another producer has one of this name: once more under a new name, then it is
 * an error. */
static void stage_again(struct add_call *call, size_t index)
{
    struct weir__planned_pack planned = call->planned_packs[index];
    struct weir__item *items = &call->adds->items.list[planned.first];
    struct add_call *second = NULL;

    if (!call->is_second) {
        weir__redis_next_seq(call->request.store, planned.seq);
        second = call_new(call->adds, &planned, 1);
    }
    for (size_t i = 0; i < planned.count; i++)
        items[i].code = second == NULL ? WEIR_ESERVER : IN_ANOTHER_CALL;
    if (second == NULL)
        return;
    second->is_second = true;
    send_call(second);
}

/* Enter what the script refused. False: not an answer of the script. */
static bool read_pairs(struct add_call *call, const struct redisReply *reply)
{
    for (size_t i = 1; i + 1 < (size_t)reply->elements; i += 2) {
        struct weir__item *items;
        int64_t index, slot;

        if (!weir__reply_int(reply, i, &index) ||
            !weir__reply_int(reply, i + 1, &slot) || index < 0 ||
            index >= (int64_t)call->planned_count || slot < -3 ||
            slot % WEIR__SLOTS_MAX >= (int64_t)call->planned_packs[index].count)
            return false;
        items = &call->adds->items.list[call->planned_packs[index].first];
        if (slot >= WEIR__SLOTS_MAX)
            items[slot % WEIR__SLOTS_MAX].code = WEIR_EFULL;
        else if (slot >= 0)
            items[slot].code = WEIR_EEXISTS;
        else if (slot >= -2)
            stage_again(call, (size_t)index);
        else if (slot == -3) /* somebody wrote over it, or wrote the answer */
            fail_planned(call, (size_t)index);
    }
    return true;
}

/* Stored options come last: an even number of elements in all. When they
 * changed, the next add reads what concerns it. */
static void note_revision(struct weir__delay_topic *topic,
                          const struct redisReply *reply)
{
    size_t count = (size_t)reply->elements;
    int64_t revision = 0;

    if (count % 2 == 0 && !weir__reply_int(reply, count - 1, &revision))
        return;
    if (topic->limits_revision != revision)
        topic->limits_of = 0;
    topic->limits_revision = revision;
}

/* What was marked as sent again must not be marked when it is answered. */
static void unmark(struct add_call *call)
{
    for (size_t i = call->first; i < call->end; i++)
        if (call->adds->items.list[i].code == IN_ANOTHER_CALL)
            call->adds->items.list[i].code = WEIR_OK;
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct add_call *call = (struct add_call *)request; /* its first member */
    int64_t added;

    if (call->is_second)
        unmark(call);
    weir__topic_log_error(&call->adds->topic->base, "add", code, reply);
    if (code == WEIR_OK) {
        if (!weir__reply_int(reply, 0, &added))
            code = WEIR_ESERVER;
        else if (added < 0)
            code = WEIR_EKIND;
        else if (!read_pairs(call, reply))
            code = WEIR_ESERVER;
        else
            note_revision(call->adds->topic, reply);
    }
    finish(call, code);
}

bool weir__adds_send(struct weir__adds *adds,
                     const struct weir__planned_pack *planned_packs,
                     size_t count, size_t end)
{
    struct add_call *call = call_new(adds, planned_packs, count);

    if (call == NULL)
        return false;
    WEIR_ASSERT(end >= call->end);
    call->end = end;
    send_call(call);
    return true;
}

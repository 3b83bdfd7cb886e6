/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/add_call.h"

#include "adapters/redis/delay/keys.h"
#include "adapters/redis/store/cluster.h"
#include "core/assert.h"
#include "core/mem.h"

enum {
    LONE_BYTES = 4096, /* of a pack with its call: Lua hashes it */
    KEYED_ARGS = 5     /* of each job of add_keyed.lua */
};

/* What a script is told first. */
struct head {
    const struct weir__script *script;
    const char *names; /* of its keys */
    size_t keys;
};

static const struct head packs_head = {&weir__script_delay_add,
                                       "wait ids meta idle seen", 5};
static const struct head lone_head = {
    &weir__script_delay_add_one, "wait ids meta idle seen run lease held", 8};
static const struct head keyed_head = {
    &weir__script_delay_add_keyed, "wait ids meta idle seen unique due absent",
    8};

static void write_head(struct weir__buf *buf, const struct weir__add_call *call,
                       const struct head *head, size_t args)
{
    const struct weir__delay_topic *topic = call->adds->topic;
    const struct weir__item *items = call->adds->items.list;
    bool has_mixed = false, has_lanes = false;

    for (size_t i = 0; i < call->planned_count; i++) {
        has_mixed = has_mixed || call->planned_packs[i].is_mixed;
        has_lanes =
            has_lanes || items[call->planned_packs[i].first].lane_len > 0;
    }
    weir__resp_eval(buf, head->script,
                    head->keys + call->planned_count + has_mixed + has_lanes,
                    4 + args);
    weir__prefix_keys(buf, &topic->base.prefix, head->names);
    for (size_t i = 0; i < call->planned_count; i++)
        weir__prefix_pack(buf, &topic->base.prefix, call->planned_packs[i].seq);
    if (has_mixed)
        weir__prefix_key(buf, &topic->base.prefix, "due");
    if (has_lanes)
        weir__prefix_key(buf, &topic->base.prefix, "absent");
    weir__resp_str(buf, topic->base.name);
    weir__resp_str(buf, "delay");
    weir__call_slot_write(buf, call->request.store, call->call_slot,
                          call->number, call->nonce);
}

/* Item `i` of the pack was refused, or another call has it. */
static bool is_refused(const struct weir__add_call *call,
                       const struct weir__planned_pack *planned, size_t i)
{
    return call->has_refused &&
           (planned->is_elsewhere ||
            call->adds->items.list[planned->first + i].code != WEIR_OK);
}

static void write_when(struct weir__buf *buf, const struct weir__add_call *call,
                       const struct weir__planned_pack *planned)
{
    const struct weir__items *items = &call->adds->items;
    struct weir__buf *when = &call->adds->topic->shared->scratch[0];

    weir__buf_reset(when);
    weir__planned_pack_when(when, items, planned);
    weir__resp_bytes(buf, weir__buf_slice(when));
    buf->failed = buf->failed || when->failed;
}

static void write_id(struct weir__buf *buf, const struct weir__add_call *call,
                     const struct weir__planned_pack *planned)
{
    const struct weir__items *items = &call->adds->items;

    weir__resp_bytes(buf, weir__item_id(items, &items->list[planned->first]));
}

static void write_pack(struct weir__buf *buf, const struct weir__add_call *call,
                       const struct weir__planned_pack *planned)
{
    weir__resp_begin(buf, planned->size.len);
    weir__planned_pack_write(buf, &call->adds->items, planned);
    weir__resp_end(buf);
}

/* As pairs of a pack and a slot. */
static void write_refused(struct weir__buf *buf,
                          const struct weir__add_call *call)
{
    struct weir__buf *pairs = &call->adds->topic->shared->scratch[0];

    weir__buf_reset(pairs);
    for (size_t i = 0; i < call->planned_count; i++)
        for (size_t slot = 0; slot < call->planned_packs[i].count; slot++) {
            const uint8_t pair[2] = {(uint8_t)i, (uint8_t)slot};

            if (is_refused(call, &call->planned_packs[i], slot))
                weir__buf_append(pairs, pair, sizeof(pair));
        }
    weir__resp_bytes(buf, weir__buf_slice(pairs));
    buf->failed = buf->failed || pairs->failed;
}

static void write_call(struct weir__buf *buf, const struct weir__add_call *call)
{
    bool has_made = call->adds->has_made || call->has_refused;

    write_head(buf, call, &packs_head,
               3 * call->planned_count + has_made + call->has_refused);
    for (size_t i = 0; i < call->planned_count; i++) {
        const struct weir__planned_pack *planned = &call->planned_packs[i];

        weir__resp_int(buf, (int64_t)planned->count);
        weir__resp_int(buf, (int64_t)planned->size.header_len);
        write_when(buf, call, planned);
    }
    if (has_made)
        weir__resp_str(buf, "@@");
    if (call->has_refused)
        write_refused(buf, call);
}

/* One job, whose pack comes as an argument of a script for just that. */
static bool is_lone(const struct weir__add_call *call)
{
    return call->planned_count == 1 && call->planned_packs[0].count == 1 &&
           call->planned_packs[0].size.len <= LONE_BYTES;
}

/* All nodes of a cluster would hear of the job, body and all. */
static bool hands_over(const struct weir__add_call *call)
{
    return !weir__cluster_is_one(call->request.store);
}

static void write_lone_call(struct weir__buf *buf,
                            const struct weir__add_call *call)
{
    const struct weir__conn *commands =
        call->adds->topic->base.place->server->commands;
    const struct weir__planned_pack *planned = &call->planned_packs[0];

    write_head(buf, call, &lone_head, 4);
    write_when(buf, call, planned);
    write_id(buf, call, planned);
    write_pack(buf, call, planned);
    weir__resp_str(buf, hands_over(call) ? weir__conn_identity(commands) : "");
}

static bool is_staged(const struct weir__add_call *call,
                      const struct weir__planned_pack *planned)
{
    return call->has_keys ? planned->size.len > LONE_BYTES : !is_lone(call);
}

/* Without a time nothing is added, as before. */
static void write_no_job(struct weir__buf *buf)
{
    for (int i = 0; i < KEYED_ARGS; i++)
        weir__resp_str(buf, "");
}

static void write_keyed_call(struct weir__buf *buf,
                             const struct weir__add_call *call)
{
    const struct weir__items *items = &call->adds->items;

    write_head(buf, call, &keyed_head, KEYED_ARGS * call->planned_count);
    for (size_t i = 0; i < call->planned_count; i++) {
        const struct weir__planned_pack *planned = &call->planned_packs[i];

        if (is_refused(call, planned, 0)) {
            write_no_job(buf);
            continue;
        }
        write_id(buf, call, planned);
        if (is_staged(call, planned))
            weir__resp_str(buf, "");
        else
            write_pack(buf, call, planned);
        write_when(buf, call, planned);
        weir__item_write_key(buf, items, &items->list[planned->first]);
    }
}

/* A command that stages a pack. */
struct staging {
    struct weir__add_call *call;
    size_t index;
    uint64_t connection; /* by which it went out first */
};

/* The server says nil if the key exists. If the answer is to the first copy of
 * the command, another producer has staged a pack of this name. */
static bool is_taken(const struct staging *staging,
                     const struct redisReply *reply)
{
    const struct weir__add_call *call = staging->call;

    return reply->type == REDIS_REPLY_NIL && !call->is_again &&
           call->adds->topic->base.place->server->connection ==
               staging->connection;
}

static void on_staged(int code, const struct redisReply *reply, void *arg)
{
    struct staging *staging = arg;
    struct weir__add_call *call = staging->call;
    struct weir__planned_pack *planned = &call->planned_packs[staging->index];

    WEIR_ASSERT(call->staging > 0);
    call->staging--;
    if (call->is_over && call->staging == 0) {
        weir__mem_free(call);
    } else if (!call->is_over) {
        planned->is_refused = planned->is_refused || code == WEIR_ETOOBIG;
        planned->is_taken = code == WEIR_OK && is_taken(staging, reply);
    }
    weir__mem_free(staging);
}

/* Without memory its answer is not read. */
static void stage(struct weir__add_call *call, size_t index,
                  struct weir__buf *bytes, unsigned flags)
{
    struct weir__place *place = call->adds->topic->base.place;
    struct staging *staging = weir__mem_new(sizeof(*staging));

    if (staging == NULL) {
        weir__place_send(place, bytes, NULL, flags, NULL);
        return;
    }
    *staging = (struct staging){call, index, place->server->connection};
    if (weir__place_command(place, bytes, NULL, flags, on_staged, staging) ==
        WEIR_OK)
        call->staging++;
    else
        weir__mem_free(staging);
}

/* The call without the packs that are staged; returns its script. */
static const struct weir__script *write_eval(struct weir__buf *buf,
                                             const struct weir__add_call *call)
{
    if (call->has_keys) {
        write_keyed_call(buf, call);
        return keyed_head.script;
    }
    if (is_lone(call)) {
        write_lone_call(buf, call);
        return lone_head.script;
    }
    write_call(buf, call);
    return packs_head.script;
}

void weir__add_call_send(struct weir__add_call *call, unsigned flags)
{
    struct weir__place *place = call->adds->topic->base.place;
    const struct weir__script *script;
    struct weir__buf bytes = {0};

    for (size_t i = 0; i < call->planned_count; i++) {
        if (!is_staged(call, &call->planned_packs[i]))
            continue;
        (void)weir__planned_pack_stage(&bytes, &call->adds->topic->base.prefix,
                                       &call->adds->items,
                                       &call->planned_packs[i]);
        stage(call, i, &bytes, flags);
    }
    script = write_eval(&bytes, call);
    weir__place_send(place, &bytes, script, flags, &call->request);
}

void weir__add_call_leave_out(struct weir__add_call *call)
{
    struct weir__buf bytes = {0};
    size_t jobs = 0, refused = 0;

    call->has_refused = true;
    for (size_t i = 0; i < call->planned_count; i++) {
        const struct weir__planned_pack *planned = &call->planned_packs[i];

        jobs += planned->count;
        for (size_t slot = 0; slot < planned->count; slot++)
            refused += is_refused(call, planned, slot);
    }
    call->has_refused = refused > 0;
    if (refused == 0)
        return;
    if (refused < jobs)
        (void)write_eval(&bytes, call);
    weir__conn_replay_instead(call->adds->topic->base.place->server->commands,
                              &bytes);
}

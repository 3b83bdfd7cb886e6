/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/external/private.h"
#include "adapters/redis/pack.h"
#include "core/text.h"

/* Entries that become jobs of a delay topic: retries with `on_retry`, dead ones
 * with `on_dead`. They are staged as packs before the call that makes them
 * permanent, as added jobs are. */

enum { STAGED_MS = 60000 };

/* Where it comes from; entries have no headers of their own. */
static struct weir_slice headers_of(const struct weir__external_topic *topic,
                                    const struct weir__run *run)
{
    static const uint8_t map_of_two = 0x82;
    struct weir__buf *headers = &topic->shared->scratch[1];

    weir__buf_reset(headers);
    weir__buf_append(headers, &map_of_two, 1);
    weir__pack_str(headers, "weir.topic", strlen("weir.topic"));
    weir__pack_str(headers, topic->base.name, strlen(topic->base.name));
    weir__pack_str(headers, "weir.id", strlen("weir.id"));
    weir__pack_str(headers, run->id.ptr, run->id.len);
    return headers->failed ? (struct weir_slice){0} : weir__buf_slice(headers);
}

bool weir__external_move(struct weir__external_call *call,
                         const struct weir__run *run, size_t other)
{
    struct weir__items *items = &call->moves;
    struct weir__record record = run->record;
    struct weir__item *item = weir__items_push(items);

    if (item == NULL)
        return false;
    record.spent = record.counters.attempt; /* the ladder starts over there */
    record.headers = headers_of(call->topic, run);
    item->ms = run->outcome == WEIR__OUTCOME_DEAD ? 0 : run->delay_ms;
    item->slot = (uint32_t)other;
    item->record_at = items->bytes.len;
    weir__record_write(&items->bytes, &record);
    item->record_len = (uint32_t)(items->bytes.len - item->record_at);
    return !items->bytes.failed;
}

/* --- staging ------------------------------------------------------------ */

static void write_key(struct weir__buf *buf,
                      const struct weir__external_call *call,
                      const struct weir__planned_pack *planned)
{
    struct weir__prefix prefix;

    weir__prefix_init(&prefix, weir__slice_str(call->target));
    weir__prefix_pack(buf, &prefix, planned->seq);
}

static void stage(struct weir__external_call *call,
                  const struct weir__planned_pack *planned)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 6);
    weir__resp_str(&bytes, "SET");
    write_key(&bytes, call, planned);
    weir__resp_begin(&bytes, planned->size.len);
    weir__planned_pack_write(&bytes, &call->moves, planned);
    weir__resp_end(&bytes);
    weir__resp_str(&bytes, "NX");
    weir__resp_str(&bytes, "PX");
    weir__resp_int(&bytes, STAGED_MS);
    weir__redis_send(call->topic->base.store, &bytes, NULL, WEIR__SEND_AGAIN,
                     NULL);
}

/* key, jobs, when, sources */
static void write_planned(struct weir__buf *list,
                          const struct weir__external_call *call,
                          const struct weir__planned_pack *planned, size_t key)
{
    struct weir__buf *when = &call->topic->shared->scratch[1];

    weir__buf_reset(when);
    weir__planned_pack_when(when, &call->moves, planned, false);
    weir__pack_uint(list, key);
    weir__pack_uint(list, planned->count);
    weir__pack_str(list, when->ptr, when->len);
    weir__pack_array(list, planned->count);
    for (size_t i = 0; i < planned->count; i++)
        weir__pack_uint(list, call->moves.list[planned->first + i].slot);
    list->failed = list->failed || when->failed;
}

size_t weir__external_send_moves(struct weir__external_call *call,
                                 struct weir__buf *list, struct weir__buf *keys)
{
    enum { FIRST_KEY = 14 }; /* behind those of both topics */
    struct weir__redis *base = call->topic->base.store;
    size_t packs = 0, at = 0;

    weir__redis_register_name(base, call->target);
    weir__items_sort(&call->moves);
    while (at < call->moves.count) {
        struct weir__planned_pack planned;

        weir__planned_pack_plan(&call->moves, at, call->moves.count, &planned);
        weir__redis_next_seq(base, planned.seq);
        stage(call, &planned);
        write_key(keys, call, &planned);
        write_planned(list, call, &planned, FIRST_KEY + packs);
        packs++;
        at += planned.count;
    }
    return packs;
}

/* --- the producer number ------------------------------------------------ */

bool weir__external_lacks_number(struct weir__external_topic *topic)
{
    struct weir__external *shared = topic->shared;
    bool has_moves = false;

    for (const struct weir__external_call *call = topic->calls; call != NULL;
         call = call->next)
        has_moves = has_moves || call->moves.count > 0;
    if (!has_moves || shared->store->has_number)
        return false;
    weir__redis_request_number(shared->store);
    if (!shared->store->asks_number)
        weir__topic_mark(&topic->base); /* a later flush asks again */
    return true;
}

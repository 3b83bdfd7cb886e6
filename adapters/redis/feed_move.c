/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/feed_private.h"
#include "adapters/redis/pack.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/random.h"
#include "core/text.h"

/* Entries that become jobs of a delay topic: retries with `on_retry`, dead ones
 * with `on_dead`. They are staged as packs before the call that makes them
 * permanent, as added jobs are. */

enum { STAGED_MS = 60000 };

/* Where it comes from; entries have no headers of their own. */
static struct weir_slice headers_of(const struct weir__feed_topic *topic,
                                    const struct weir__run *run)
{
    static const uint8_t map_of_two = 0x82;
    struct weir__buf *headers = &topic->store->scratch[1];

    weir__buf_reset(headers);
    weir__buf_append(headers, &map_of_two, 1);
    weir__pack_str(headers, "weir.topic", strlen("weir.topic"));
    weir__pack_str(headers, topic->name, strlen(topic->name));
    weir__pack_str(headers, "weir.id", strlen("weir.id"));
    weir__pack_str(headers, run->id.ptr, run->id.len);
    return headers->failed ? (struct weir_slice){0} : weir__buf_slice(headers);
}

bool weir__feed_move(struct weir__feed_call *call, const struct weir__run *run,
                     size_t other)
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

static void write_key(struct weir__buf *buf, const struct weir__feed_call *call,
                      const struct weir__parcel *parcel)
{
    char name[2 + WEIR__SEQ_LEN + 1] = "p:";

    memcpy(name + 2, parcel->seq, WEIR__SEQ_LEN);
    name[2 + WEIR__SEQ_LEN] = '\0';
    weir__feed_keys(buf, call->target, name);
}

static void stage(struct weir__feed_call *call,
                  const struct weir__parcel *parcel)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 6);
    weir__resp_str(&bytes, "SET");
    write_key(&bytes, call, parcel);
    weir__resp_begin(&bytes, parcel->size.len);
    weir__parcel_write(&bytes, &call->moves, parcel);
    weir__resp_end(&bytes);
    weir__resp_str(&bytes, "NX");
    weir__resp_str(&bytes, "PX");
    weir__resp_int(&bytes, STAGED_MS);
    weir__feed_send(call->topic->store, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
}

/* key, jobs, when, sources */
static void write_parcel(struct weir__buf *list,
                         const struct weir__feed_call *call,
                         const struct weir__parcel *parcel, size_t key)
{
    struct weir__buf *when = &call->topic->store->scratch[1];

    weir__buf_reset(when);
    weir__parcel_when(when, &call->moves, parcel, false);
    weir__pack_uint(list, key);
    weir__pack_uint(list, parcel->count);
    weir__pack_str(list, when->ptr, when->len);
    weir__pack_array(list, parcel->count);
    for (size_t i = 0; i < parcel->count; i++)
        weir__pack_uint(list, call->moves.list[parcel->first + i].slot);
    list->failed = list->failed || when->failed;
}

static void announce_target(struct weir__feed_call *call)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_str(&bytes, call->target);
    weir__feed_send(call->topic->store, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
}

size_t weir__feed_send_moves(struct weir__feed_call *call,
                             struct weir__buf *list, struct weir__buf *keys)
{
    enum { FIRST_KEY = 14 }; /* behind those of both topics */
    struct weir__feed *store = call->topic->store;
    size_t packs = 0, at = 0;

    announce_target(call);
    weir__items_sort(&call->moves);
    while (at < call->moves.count) {
        struct weir__parcel parcel;

        weir__parcel_plan(&call->moves, at, call->moves.count, &parcel);
        weir__seq_next(&store->seqs,
                       store->ahead_ms + weir__feed_now_ns(store) / 1000000,
                       parcel.seq);
        stage(call, &parcel);
        write_key(keys, call, &parcel);
        write_parcel(list, call, &parcel, FIRST_KEY + packs);
        packs++;
        at += parcel.count;
    }
    return packs;
}

/* --- the producer number ------------------------------------------------ */

static int64_t number_of(struct weir_slice digits)
{
    int64_t number = 0;

    for (size_t i = 0; i < digits.len && i < 12; i++)
        number = number * 10 + (digits.ptr[i] - '0');
    return number;
}

static void on_time(int code, const struct redisReply *reply, void *arg)
{
    struct weir__feed *store = arg;
    struct weir_slice seconds, us;

    if (code != WEIR_OK || !weir__reply_str(reply, 0, &seconds) ||
        !weir__reply_str(reply, 1, &us))
        return;
    store->ahead_ms = number_of(seconds) * 1000 + number_of(us) / 1000 -
                      weir__feed_now_ns(store) / 1000000;
}

/* Numbers above those that are counted, by chance: for a server that is full,
 * which counts nobody. */
static uint32_t number_by_chance(const struct weir__feed *store)
{
    uint64_t state = store->options.seed ^ store->connections ^
                     (uint64_t)weir__feed_now_ns(store);

    return (uint32_t)(weir__random_next(&state) & 0x7fffff) | 0x800000;
}

static void on_number(int code, const struct redisReply *reply, void *arg)
{
    struct weir__feed *store = arg;

    store->asks_number = false;
    if (store->is_closed || (code != WEIR_OK && code != WEIR_ESERVER))
        return; /* the next connection asks again */
    store->seqs.producer = code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER
                               ? (uint32_t)reply->integer
                               : number_by_chance(store);
    store->has_number = true;
    for (struct weir__feed_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        weir__feed_flush_settles(topic);
    weir__conn_flush(store->commands);
}

static void ask_number(struct weir__feed *store)
{
    struct weir__buf time = {0}, number = {0};

    if (store->asks_number || store->is_closed)
        return;
    weir__resp_command(&time, 1);
    weir__resp_str(&time, "TIME");
    (void)weir__conn_send(store->commands, &time, NULL, WEIR__SEND_AGAIN,
                          on_time, store); /* then names do not tell the time */
    weir__resp_command(&number, 2);
    weir__resp_str(&number, "INCR");
    weir__resp_str(&number, "weir:producers");
    store->asks_number =
        weir__conn_send(store->commands, &number, NULL, WEIR__SEND_AGAIN,
                        on_number, store) == WEIR_OK;
}

bool weir__feed_lacks_number(struct weir__feed_topic *topic)
{
    struct weir__feed *store = topic->store;
    bool has_moves = false;

    for (const struct weir__feed_call *call = topic->calls; call != NULL;
         call = call->next)
        has_moves = has_moves || call->moves.count > 0;
    if (!has_moves || store->has_number)
        return false;
    ask_number(store);
    if (!store->asks_number)
        weir__feed_mark(topic); /* a later flush asks again */
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Sending lots back, many in one call. */

enum {
    HEAD_KEYS = 8,
    LOT_ARGS = 11,
    LOTS_MAX = 100,   /* of one call */
    EVENTS_MAX = 2000 /* that go back by one call, about */
};

struct settle_call {
    struct weir__request request; /* first */
    struct weir__bounded_topic *topic;
    struct weir__lot *first; /* linked by next_spent */
    size_t count, runs;
};

static struct weir__lot *lot_at(const struct settle_call *call, int64_t place)
{
    struct weir__lot *lot = call->first;

    while (lot != NULL && place-- > 0)
        lot = lot->next_spent;
    return lot;
}

/* Returns how many runs were refused. */
static size_t read_refused(struct settle_call *call,
                           const struct redisReply *reply)
{
    size_t i = 0, refused = 0;
    int64_t place, count;

    for (; weir__reply_int(reply, i, &place); i++) {
        struct weir__lot *lot = lot_at(call, place);

        if (lot == NULL)
            continue;
        refused += lot->count;
        lot->aged = 0;
    }
    for (i++; weir__reply_int(reply, i, &place) &&
              weir__reply_int(reply, i + 1, &count);
         i += 2) {
        const struct weir__lot *lot = lot_at(call, place);

        if (lot != NULL && count > 0)
            weir__bounded_tell_drop(call->topic, lot->group, WEIR_DROP_OVERFLOW,
                                    (uint64_t)count);
    }
    return refused;
}

/* Frees the call and its lots. */
static void finish(struct settle_call *call, size_t refused)
{
    struct weir__bounded_topic *topic = call->topic;
    size_t runs = call->runs;

    while (call->first != NULL) {
        struct weir__lot *lot = call->first;

        call->first = lot->next_spent;
        weir__lot_free(lot);
    }
    weir__mem_free(call);
    weir__topic_settled(&topic->base, runs, refused);
}

static void on_settled(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct settle_call *call =
        (struct settle_call *)request; /* its first member */
    struct weir__bounded_topic *topic = call->topic;
    size_t refused = call->runs;

    weir__topic_log_error(&topic->base, "settle", code, reply);
    if (code == WEIR_OK) {
        refused = read_refused(call, reply);
        if (refused > call->runs)
            refused = call->runs; /* the script names a batch once */
        for (const struct weir__lot *lot = call->first; lot != NULL;
             lot = lot->next_spent)
            weir__bounded_tell_drop(topic, lot->group, WEIR_DROP_AGE,
                                    lot->aged);
    }
    if (code == WEIR_OK)
        weir__topic_log_refused(&topic->base, refused);
    finish(call, refused);
}

static bool is_untouched(const struct weir__lot *lot)
{
    return lot->is_leased && lot->back == lot->count && lot->retried == 0 &&
           lot->snoozed == 0;
}

static void write_lot(struct weir__buf *buf, const struct weir__lot *lot)
{
    weir__resp_bytes(buf, lot->group);
    weir__resp_int(buf, (int64_t)lot->base.token);
    weir__resp_int(buf, lot->is_leased);
    weir__resp_int(buf, lot->wait_ms);
    weir__resp_int(buf, lot->done);
    weir__resp_int(buf, lot->failed);
    weir__resp_int(buf, lot->aged);
    weir__resp_int(buf, lot->retried);
    weir__resp_int(buf, lot->snoozed);
    weir__resp_int(buf, (int64_t)lot->count);
    if (is_untouched(lot)) {
        weir__resp_int(buf, -1);
        return;
    }
    weir__resp_int(buf, lot->back);
    for (size_t i = 0; i < lot->count; i++) {
        const struct weir__lot_event *event = &lot->events[i];
        const struct weir__buf *bytes =
            event->is_rewritten ? &lot->rewritten : &lot->bytes;

        if (event->is_back)
            weir__resp_bytes(
                buf, (struct weir_slice){bytes->ptr + event->at, event->len});
    }
}

static void send_call(struct settle_call *call)
{
    struct weir__bounded_topic *topic = call->topic;
    struct weir__buf bytes = {0};
    size_t back = 0;

    for (const struct weir__lot *lot = call->first; lot != NULL;
         lot = lot->next_spent)
        back += is_untouched(lot) ? 0 : lot->back;
    weir__resp_eval(&bytes, &weir__script_bounded_settle,
                    HEAD_KEYS + 2 * call->count,
                    1 + LOT_ARGS * call->count + back);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "rot hot lease out meta idle options ttl");
    for (const struct weir__lot *lot = call->first; lot != NULL;
         lot = lot->next_spent) {
        struct weir_slice group = lot->group;

        weir__bounded_group_key(&bytes, topic, 'g', group);
        weir__bounded_group_key(&bytes, topic, 'l', group);
    }
    weir__resp_str(&bytes, topic->base.name);
    for (const struct weir__lot *lot = call->first; lot != NULL;
         lot = lot->next_spent)
        write_lot(&bytes, lot);
    call->request.done = on_settled;
    weir__redis_send(topic->base.store, &bytes, &weir__script_bounded_settle,
                     WEIR__SEND_AGAIN, &call->request);
}

/* Lots whose lease is lost are not sent: their events run elsewhere. */
static void drop_lost(struct weir__bounded_topic *topic)
{
    struct weir__lot **link = &topic->spent;

    while (*link != NULL) {
        struct weir__lot *lot = *link;

        if (!lot->is_lost) {
            link = &lot->next_spent;
            continue;
        }
        *link = lot->next_spent;
        weir__topic_forgo(&topic->base, lot->count);
        weir__lot_free(lot);
    }
    topic->spent_end = link;
}

/* False when out of memory. */
static bool flush_some(struct weir__bounded_topic *topic)
{
    struct settle_call *call = weir__mem_new(sizeof(*call));
    struct weir__lot **link;
    size_t back = 0;

    if (call == NULL)
        return false;
    link = &call->first;
    call->topic = topic;
    while (topic->spent != NULL && call->count < LOTS_MAX &&
           back < EVENTS_MAX) {
        struct weir__lot *lot = topic->spent;

        topic->spent = lot->next_spent;
        lot->next_spent = NULL;
        lot->is_sent = true;
        *link = lot;
        link = &lot->next_spent;
        call->count++;
        call->runs += lot->count;
        back += lot->back;
    }
    if (topic->spent == NULL)
        topic->spent_end = &topic->spent;
    send_call(call);
    return true;
}

void weir__bounded_flush_settles(struct weir__bounded_topic *topic)
{
    drop_lost(topic);
    while (topic->spent != NULL)
        if (!flush_some(topic)) {
            weir__topic_mark(&topic->base); /* the next flush tries again */
            return;
        }
}

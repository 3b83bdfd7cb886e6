/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/bounded_private.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum { HEAD_KEYS = 8, HEAD_ARGS = 4 };

/* Calls of the boundadd script: each adds some groups with all their events. */

struct weir__add_call {
    struct weir__bound_ask ask; /* first */
    struct weir__bound_adds *adds;
    size_t first, end; /* its groups */
    size_t events;
    uint32_t seat;
    uint64_t number; /* grows from call to call */
};

static struct weir_slice name_of(const struct weir__bound_adds *adds,
                                 const struct weir__event_group *group)
{
    return (struct weir_slice){adds->bytes.ptr + group->name_at,
                               group->name_len};
}

/* --- seats -------------------------------------------------------------- */

static bool take_seat(struct weir__bounded *store, uint32_t *ret_seat)
{
    struct weir__bound_seats *seats = &store->seats;
    uint32_t *list;

    if (seats->free_count > 0) {
        *ret_seat = seats->free[--seats->free_count];
        return true;
    }
    list = weir__mem_grow(seats->free, seats->count + 1u, sizeof(*list));
    if (list == NULL)
        return false;
    seats->free = list;
    *ret_seat = seats->count++;
    return true;
}

static void leave_seat(struct weir__bounded *store, uint32_t seat)
{
    WEIR_ASSERT(store->seats.free_count < store->seats.count);
    store->seats.free[store->seats.free_count++] = seat;
}

/* --- answering ---------------------------------------------------------- */

void weir__bound_adds_free(struct weir__bound_adds *adds)
{
    weir__buf_fini(&adds->bytes);
    weir__mem_free(adds->events);
    weir__mem_free(adds->groups);
    weir__mem_free(adds->index);
    weir__mem_free(adds->calls);
    weir__mem_free(adds);
}

static void answer_event(const struct weir__bound_adds *adds, size_t place,
                         int code)
{
    const struct weir__event *event = &adds->events[place];
    char id[WEIR_MAX_ID + 1] = "";

    if (event->fn == NULL)
        return;
    if (event->id_len > 0)
        memcpy(id, adds->bytes.ptr + event->at + WEIR__EVENT_ID_AT,
               event->id_len);
    else if (adds->seqs[0][0] != '\0')
        weir__made_id(adds->seqs[place / WEIR__SLOTS_MAX],
                      (unsigned)(place % WEIR__SLOTS_MAX), id);
    event->fn(code == WEIR_OK ? event->code : code, id, event->arg);
}

void weir__bound_adds_answer(struct weir__bound_adds *adds, int code)
{
    for (size_t i = 0; i < adds->count; i++)
        answer_event(adds, i, code);
    weir__bound_adds_free(adds);
}

/* The last `count` events of the group came to nothing. */
static void refuse_last(struct weir__bound_adds *adds,
                        const struct weir__event_group *group, size_t count,
                        int code)
{
    uint32_t number = group->first;

    for (size_t i = 0; i < group->count; i++) {
        struct weir__event *event = &adds->events[number - 1];

        if (i + count >= group->count)
            event->code = code;
        number = event->next;
    }
}

static void note_drops(const struct weir__add_call *call,
                       const struct redisReply *reply)
{
    struct weir__bound_adds *adds = call->adds;
    int64_t mode, place, count;

    if (!weir__reply_int(reply, 0, &mode))
        return;
    for (size_t i = 1; i + 1 < (size_t)reply->elements; i += 2) {
        const struct weir__event_group *group;

        if (!weir__reply_int(reply, i, &place) ||
            !weir__reply_int(reply, i + 1, &count) || place < 0 ||
            (size_t)place >= call->end - call->first || count < 0)
            return;
        group = &adds->groups[call->first + (size_t)place];
        if (mode != WEIR__DROP_OLDEST)
            refuse_last(adds, group, (size_t)count,
                        mode == WEIR__REJECT ? WEIR_EFULL : WEIR_EDROPPED);
        if (mode != WEIR__REJECT)
            weir__bound_tell_drop(adds->topic, name_of(adds, group),
                                  WEIR_DROP_OVERFLOW, (uint64_t)count);
    }
}

/* Ends the call, and with the last one its adds. */
static void answer_call(struct weir__add_call *call, int code)
{
    struct weir__bound_adds *adds = call->adds;

    for (size_t i = call->first; i < call->end; i++)
        for (uint32_t number = adds->groups[i].first; number != 0;
             number = adds->events[number - 1].next)
            answer_event(adds, number - 1, code);
    adds->left--;
    if (adds->left == 0)
        weir__bound_adds_free(adds);
}

static void on_added(struct weir__bound_ask *ask, int code,
                     const struct redisReply *reply)
{
    struct weir__add_call *call =
        (struct weir__add_call *)ask; /* its first member */
    int64_t mode;

    weir__bound_log_error(call->adds->topic, "add", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &mode))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && mode < 0)
        code = WEIR_EKIND;
    if (code == WEIR_OK)
        note_drops(call, reply);
    leave_seat(ask->store, call->seat);
    answer_call(call, code);
}

static void on_unseated(struct weir__bound_ask *ask, int code,
                        const struct redisReply *reply)
{
    (void)reply; /* none was asked for */
    answer_call((struct weir__add_call *)ask, code);
}

/* --- sending ------------------------------------------------------------ */

static void name_events(struct weir__bound_adds *adds)
{
    struct weir__bounded *store = adds->topic->store;
    int64_t now_ms = store->ahead_ms + weir__bounded_now_ns(store) / 1000000;

    for (size_t i = 0; i * WEIR__SLOTS_MAX < adds->count; i++)
        weir__seq_next(&store->seqs, now_ms, adds->seqs[i]);
    for (size_t i = 0; i < adds->count; i++)
        weir__event_name(adds->bytes.ptr + adds->events[i].at,
                         adds->seqs[i / WEIR__SLOTS_MAX],
                         (unsigned)(i % WEIR__SLOTS_MAX));
    if (store->seats.name[0] == '\0')
        memcpy(store->seats.name, adds->seqs[0], WEIR__SEQ_LEN);
}

/* Numbers are times of names, as in the calls of a delay topic: seats that
 * nobody used for long can be told. */
static void write_seat(struct weir__buf *buf, const struct weir__add_call *call)
{
    const struct weir__bounded *store = call->ask.store;
    char text[WEIR__SEQ_LEN + 12];

    (void)snprintf(text, sizeof(text), "%s%" PRIu32, store->seats.name,
                   call->seat); /* it fits */
    weir__resp_str(buf, text);
    weir__resp_int(buf, (int64_t)call->number);
}

static void write_group(struct weir__buf *buf,
                        const struct weir__bound_adds *adds,
                        const struct weir__event_group *group)
{
    weir__resp_bytes(buf, name_of(adds, group));
    weir__resp_int(buf, group->count);
    for (uint32_t number = group->first; number != 0;
         number = adds->events[number - 1].next) {
        const struct weir__event *event = &adds->events[number - 1];

        weir__resp_bytes(
            buf, weir__slice_of(adds->bytes.ptr + event->at, event->len));
    }
}

static void write_call(struct weir__buf *buf, const struct weir__add_call *call,
                       size_t len)
{
    const struct weir__bound_adds *adds = call->adds;
    const char *topic = adds->topic->name;
    size_t groups = call->end - call->first;

    /* The events and what is around them. */
    (void)weir__buf_reserve(buf, len + 16 * call->events + 120 * groups + 512);
    weir__resp_eval(buf, &weir__script_boundadd, HEAD_KEYS + groups,
                    HEAD_ARGS + 2 * groups + call->events);
    weir__bound_keys(buf, topic, "rot hot out meta idle options seen ttl");
    for (size_t i = call->first; i < call->end; i++)
        weir__bound_group_key(buf, topic, 'g', name_of(adds, &adds->groups[i]));
    weir__resp_str(buf, topic);
    weir__resp_str(buf, "bounded");
    write_seat(buf, call);
    for (size_t i = call->first; i < call->end; i++)
        write_group(buf, adds, &adds->groups[i]);
}

static void send_call(struct weir__add_call *call, size_t len)
{
    struct weir__bounded *store = call->adds->topic->store;
    struct weir__buf bytes = {0};
    char seq[WEIR__SEQ_LEN];

    call->ask.store = store;
    call->ask.done = on_added;
    if (!take_seat(store, &call->seat)) {
        call->ask.done = on_unseated;
        weir__bounded_fail(&call->ask, WEIR_ENOMEM);
        return;
    }
    weir__seq_next(&store->seqs, 0, seq);
    call->number = store->seqs.last;
    write_call(&bytes, call, len);
    weir__bounded_send(store, &bytes, &weir__script_boundadd, WEIR__SEND_AGAIN,
                       &call->ask);
}

/* The groups from `first` on that fit into one call, one at least. */
static size_t plan(const struct weir__bound_adds *adds, size_t first,
                   size_t *ret_events, size_t *ret_len)
{
    size_t at = first, events = 0, len = 0;

    for (; at < adds->group_count; at++) {
        const struct weir__event_group *group = &adds->groups[at];

        if (at > first && (events + group->count > WEIR__BOUND_EVENTS ||
                           len + group->len > WEIR__BOUND_BYTES))
            break;
        events += group->count;
        len += group->len;
    }
    *ret_events = events;
    *ret_len = len;
    return at;
}

static void on_unsent(struct weir__bound_ask *ask, int code,
                      const struct redisReply *reply)
{
    (void)reply; /* none was asked for */
    weir__bound_adds_answer((struct weir__bound_adds *)ask, code);
}

void weir__bound_adds_send(struct weir__bound_adds *adds)
{
    size_t count = 0, events, len;

    for (size_t at = 0; at < adds->group_count; count++)
        at = plan(adds, at, &events, &len);
    if (adds->count == 0) {
        weir__bound_adds_free(adds);
        return;
    }
    adds->ask.store = adds->topic->store;
    adds->ask.done = on_unsent;
    adds->calls = weir__mem_new(count * sizeof(struct weir__add_call));
    if (adds->calls == NULL) {
        weir__bounded_fail(&adds->ask, WEIR_ENOMEM);
        return;
    }
    name_events(adds);
    adds->left = count;
    for (size_t at = 0, i = 0; i < count; i++) {
        struct weir__add_call *call = &adds->calls[i];

        call->adds = adds;
        call->first = at;
        at = plan(adds, at, &call->events, &len);
        call->end = at;
        send_call(call, len);
    }
}

/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/bounded_private.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/mem.h"

/* One call of the boundadd script. */

enum { HEAD_KEYS = 8, HEAD_ARGS = 4 };

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

void weir__bound_adds_answer(struct weir__bound_adds *adds, int code)
{
    for (size_t i = 0; i < adds->count; i++) {
        struct weir__event *event = &adds->events[i];
        char id[WEIR_MAX_ID + 1] = "";

        if (event->fn == NULL)
            continue;
        if (event->id_len > 0)
            memcpy(id, adds->bytes.ptr + event->at + WEIR__EVENT_ID_AT,
                   event->id_len);
        else if (adds->seqs[0][0] != '\0')
            weir__made_id(adds->seqs[i / WEIR__SLOTS_MAX],
                          (unsigned)(i % WEIR__SLOTS_MAX), id);
        event->fn(code == WEIR_OK ? event->code : code, id, event->arg);
    }
    weir__buf_fini(&adds->bytes);
    weir__mem_free(adds->events);
    weir__mem_free(adds->groups);
    weir__mem_free(adds);
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

static void note_drops(struct weir__bound_adds *adds,
                       const struct redisReply *reply)
{
    int64_t mode, place, count;

    if (!weir__reply_int(reply, 0, &mode))
        return;
    for (size_t i = 1; i + 1 < (size_t)reply->elements; i += 2) {
        const struct weir__event_group *group;

        if (!weir__reply_int(reply, i, &place) ||
            !weir__reply_int(reply, i + 1, &count) || place < 0 ||
            (size_t)place >= adds->group_count || count < 0)
            return;
        group = &adds->groups[place];
        if (mode != WEIR__DROP_OLDEST)
            refuse_last(adds, group, (size_t)count,
                        mode == WEIR__REJECT ? WEIR_EFULL : WEIR_EDROPPED);
        if (mode != WEIR__REJECT)
            weir__bound_tell_drop(adds->topic, name_of(adds, group),
                                  WEIR_DROP_OVERFLOW, (uint64_t)count);
    }
}

static void on_added(struct weir__bound_ask *ask, int code,
                     const struct redisReply *reply)
{
    struct weir__bound_adds *adds =
        (struct weir__bound_adds *)ask; /* its first member */
    int64_t mode;

    weir__bound_log_error(adds->topic, "add", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &mode))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && mode < 0)
        code = WEIR_EKIND;
    if (code == WEIR_OK)
        note_drops(adds, reply);
    if (adds->has_seat)
        leave_seat(ask->store, adds->seat);
    weir__bound_adds_answer(adds, code);
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
static void write_seat(struct weir__buf *buf,
                       const struct weir__bound_adds *adds)
{
    const struct weir__bounded *store = adds->topic->store;
    char text[WEIR__SEQ_LEN + 12];

    (void)snprintf(text, sizeof(text), "%s%" PRIu32, store->seats.name,
                   adds->seat); /* it fits */
    weir__resp_str(buf, text);
    weir__resp_int(buf, (int64_t)store->seqs.last);
}

static void write_call(struct weir__buf *buf,
                       const struct weir__bound_adds *adds)
{
    const char *topic = adds->topic->name;

    /* The events and what is around them. */
    (void)weir__buf_reserve(buf, adds->bytes.len + 16 * adds->count +
                                     120 * adds->group_count + 512);
    weir__resp_eval(buf, &weir__script_boundadd, HEAD_KEYS + adds->group_count,
                    HEAD_ARGS + 2 * adds->group_count + adds->count);
    weir__bound_keys(buf, topic, "rot hot out meta idle options seen ttl");
    for (size_t i = 0; i < adds->group_count; i++)
        weir__bound_group_key(buf, topic, 'g', name_of(adds, &adds->groups[i]));
    weir__resp_str(buf, topic);
    weir__resp_str(buf, "bounded");
    write_seat(buf, adds);
    for (size_t i = 0; i < adds->group_count; i++) {
        const struct weir__event_group *group = &adds->groups[i];

        weir__resp_bytes(buf, name_of(adds, group));
        weir__resp_int(buf, group->count);
        for (uint32_t number = group->first; number != 0;
             number = adds->events[number - 1].next) {
            const struct weir__event *event = &adds->events[number - 1];

            weir__resp_bytes(buf, (struct weir_slice){
                                      adds->bytes.ptr + event->at, event->len});
        }
    }
}

void weir__bound_adds_send(struct weir__bound_adds *adds)
{
    struct weir__bounded *store = adds->topic->store;
    struct weir__buf bytes = {0};

    adds->ask.done = on_added;
    adds->has_seat = take_seat(store, &adds->seat);
    if (!adds->has_seat) {
        weir__bounded_fail(&adds->ask, WEIR_ENOMEM);
        return;
    }
    name_events(adds);
    write_call(&bytes, adds);
    weir__bounded_send(store, &bytes, &weir__script_boundadd, WEIR__SEND_AGAIN,
                       &adds->ask);
}

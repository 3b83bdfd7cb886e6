/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Collecting events, by group, until a flush sends them. They leave by groups:
 * each call has all collected events of its groups, a call slot and a number,
 * so that a repeat adds nothing. */

enum {
    COLLECTED_MAX = 64 << 20, /* bytes that wait to be sent */
    COLLECT_BYTES = 4 << 20,  /* that are sorted into calls, about */
    INDEX_MIN = 64,
    HEAD_KEYS = 8,
    HEAD_ARGS = 4
};

/* A call of the script: it adds some groups with all their events. */
struct weir__add_call {
    struct weir__request request; /* first */
    struct weir__bounded_adds *adds;
    size_t first, end; /* its groups */
    size_t events;
    uint32_t call_slot;
    uint64_t number; /* grows from call to call */
};

static struct weir_slice name_of(const struct weir__bounded_adds *adds,
                                 const struct weir__event_group *group)
{
    return (struct weir_slice){adds->bytes.ptr + group->name_at,
                               group->name_len};
}

/* --- collecting --------------------------------------------------------- */

static struct weir__bounded_adds *adds_new(struct weir__bounded_topic *topic)
{
    struct weir__bounded_adds *adds = weir__mem_new(sizeof(*adds));

    if (adds == NULL)
        return NULL;
    adds->topic = topic;
    *topic->adds_end = adds;
    topic->adds_end = &adds->next;
    topic->last_adds = adds;
    return adds;
}

static struct weir__bounded_adds *adds_of(struct weir__bounded_topic *topic,
                                          size_t len)
{
    struct weir__bounded_adds *adds =
        topic->adds == NULL ? NULL : topic->last_adds;

    if (adds == NULL || adds->count == WEIR__BOUND_COLLECT ||
        (adds->count > 0 && adds->bytes.len + len > COLLECT_BYTES))
        return adds_new(topic);
    return adds;
}

/* At most half of the places are used. False: out of memory. */
static bool make_room(struct weir__bounded_adds *adds)
{
    size_t size = adds->index_size == 0 ? INDEX_MIN : adds->index_size * 2;
    struct weir__event_group *groups;
    uint16_t *index;

    if (adds->group_count * 2 < adds->index_size)
        return true;
    groups = weir__mem_grow(adds->groups, size / 2, sizeof(*groups));
    if (groups == NULL)
        return false;
    adds->groups = groups;
    index = weir__mem_new(size * sizeof(*index));
    if (index == NULL)
        return false;
    weir__mem_free(adds->index);
    adds->index = index;
    adds->index_size = size;
    for (size_t i = 0; i < adds->group_count; i++) {
        size_t place = adds->groups[i].hash & (size - 1);

        while (index[place] != 0)
            place = (place + 1) & (size - 1);
        index[place] = (uint16_t)(i + 1);
    }
    return true;
}

/* The group of that name, which is made if need be; NULL: out of memory. */
static struct weir__event_group *group_of(struct weir__bounded_adds *adds,
                                          struct weir_slice name)
{
    uint32_t hash = (uint32_t)weir__slice_hash(name);
    struct weir__event_group *group;
    size_t place;

    if (!make_room(adds))
        return NULL;
    place = hash & (adds->index_size - 1);
    while (adds->index[place] != 0) {
        group = &adds->groups[adds->index[place] - 1];
        if (group->hash == hash &&
            weir__slice_equal(name_of(adds, group), name))
            return group;
        place = (place + 1) & (adds->index_size - 1);
    }
    group = &adds->groups[adds->group_count];
    *group = (struct weir__event_group){.name_at = adds->bytes.len,
                                        .name_len = (uint32_t)name.len,
                                        .hash = hash};
    weir__buf_append(&adds->bytes, name.ptr, name.len);
    if (adds->bytes.failed)
        return NULL;
    adds->group_count++;
    adds->index[place] = (uint16_t)adds->group_count;
    return group;
}

/* A group with as many events as fit into one call is full. */
static struct weir__event_group *group_in(struct weir__bounded_topic *topic,
                                          const struct weir__new_job *job,
                                          struct weir__bounded_adds **ret_adds)
{
    size_t len = job->record->body.len;
    struct weir__bounded_adds *adds = adds_of(topic, len);
    struct weir__event_group *group =
        adds == NULL ? NULL : group_of(adds, job->group);

    if (group != NULL &&
        (group->count == WEIR__BOUND_EVENTS ||
         (group->count > 0 && group->len + len > WEIR__BOUND_BYTES))) {
        adds = adds_new(topic);
        group = adds == NULL ? NULL : group_of(adds, job->group);
    }
    *ret_adds = adds;
    return group;
}

static struct weir__event *event_new(struct weir__bounded_adds *adds)
{
    if (adds->count == adds->cap) {
        size_t cap = adds->cap * 2 + 16;
        struct weir__event *events =
            weir__mem_grow(adds->events, cap, sizeof(*events));

        if (events == NULL)
            return NULL;
        adds->events = events;
        adds->cap = cap;
    }
    return &adds->events[adds->count];
}

static void link(struct weir__bounded_adds *adds,
                 struct weir__event_group *group)
{
    uint32_t number = (uint32_t)++adds->count;

    if (group->count == 0)
        group->first = number;
    else
        adds->events[group->last - 1].next = number;
    group->last = number;
    group->count++;
    group->len += adds->events[number - 1].len;
}

int weir__bounded_add(struct weir__store_topic *base,
                      const struct weir__new_job *job, weir_added_fn fn,
                      void *arg)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct weir__bounded *shared = topic->shared;
    struct weir__event_group *group;
    struct weir__event *event;
    struct weir__bounded_adds *adds;
    size_t at;

    WEIR_ASSERT(job->group.len > 0 && job->group.len <= WEIR_MAX_ID);
    if (job->record->body.len > WEIR_MAX_BODY)
        return WEIR_ETOOBIG;
    if (shared->collected > COLLECTED_MAX)
        return WEIR_EFULL;
    group = group_in(topic, job, &adds);
    event = group == NULL ? NULL : event_new(adds);
    if (event == NULL) {
        if (adds != NULL)
            adds->bytes.failed = false;
        return WEIR_ENOMEM;
    }
    at = adds->bytes.len;
    weir__event_write(&adds->bytes, job->id, job->record);
    if (adds->bytes.failed) {
        adds->bytes.len = at;
        adds->bytes.failed = false;
        return WEIR_ENOMEM;
    }
    *event = (struct weir__event){.fn = fn,
                                  .arg = arg,
                                  .at = at,
                                  .len = (uint32_t)(adds->bytes.len - at),
                                  .id_len = (uint32_t)job->id.len};
    link(adds, group);
    shared->collected += event->len;
    weir__topic_mark(&topic->base);
    return WEIR_OK;
}

/* --- answering ---------------------------------------------------------- */

static void adds_free(struct weir__bounded_adds *adds)
{
    weir__buf_fini(&adds->bytes);
    weir__mem_free(adds->events);
    weir__mem_free(adds->groups);
    weir__mem_free(adds->index);
    weir__mem_free(adds->calls);
    weir__mem_free(adds);
}

static void answer_event(const struct weir__bounded_adds *adds, size_t place,
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

static void adds_answer(struct weir__bounded_adds *adds, int code)
{
    for (size_t i = 0; i < adds->count; i++)
        answer_event(adds, i, code);
    adds_free(adds);
}

/* The last `count` events of the group came to nothing. */
static void refuse_last(struct weir__bounded_adds *adds,
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
    struct weir__bounded_adds *adds = call->adds;
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
            weir__bounded_report_drop(adds->topic, name_of(adds, group),
                                      WEIR_DROP_OVERFLOW, (uint64_t)count);
    }
}

/* Ends the call, and with the last one its adds. */
static void answer_call(struct weir__add_call *call, int code)
{
    struct weir__bounded_adds *adds = call->adds;

    for (size_t i = call->first; i < call->end; i++)
        for (uint32_t number = adds->groups[i].first; number != 0;
             number = adds->events[number - 1].next)
            answer_event(adds, number - 1, code);
    adds->left--;
    if (adds->left == 0)
        adds_free(adds);
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__add_call *call =
        (struct weir__add_call *)request; /* its first member */
    int64_t mode;

    weir__topic_log_error(&call->adds->topic->base, "add", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &mode))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && mode < 0)
        code = WEIR_EKIND;
    if (code == WEIR_OK)
        note_drops(call, reply);
    weir__call_slot_leave(request->store, call->call_slot);
    answer_call(call, code);
}

static void on_no_call_slot(struct weir__request *request, int code,
                            const struct redisReply *reply)
{
    (void)reply; /* none was asked for */
    answer_call((struct weir__add_call *)request, code);
}

/* --- sending ------------------------------------------------------------ */

static void name_events(struct weir__bounded_adds *adds)
{
    for (size_t i = 0; i * WEIR__SLOTS_MAX < adds->count; i++)
        weir__redis_next_seq(adds->topic->base.store, adds->seqs[i]);
    for (size_t i = 0; i < adds->count; i++)
        weir__event_name(adds->bytes.ptr + adds->events[i].at,
                         adds->seqs[i / WEIR__SLOTS_MAX],
                         (unsigned)(i % WEIR__SLOTS_MAX));
}

static void write_group(struct weir__buf *buf,
                        const struct weir__bounded_adds *adds,
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
    const struct weir__bounded_adds *adds = call->adds;
    const struct weir__bounded_topic *topic = adds->topic;
    size_t groups = call->end - call->first;

    /* The events and what is around them. */
    (void)weir__buf_reserve(buf, len + 16 * call->events + 120 * groups + 512);
    weir__resp_eval(buf, &weir__script_bounded_add, HEAD_KEYS + groups,
                    HEAD_ARGS + 2 * groups + call->events);
    weir__prefix_keys(buf, &topic->base.prefix,
                      "rot hot out meta idle options seen ttl");
    for (size_t i = call->first; i < call->end; i++)
        weir__bounded_group_key(buf, topic, 'g',
                                name_of(adds, &adds->groups[i]));
    weir__resp_str(buf, topic->base.name);
    weir__resp_str(buf, "bounded");
    weir__call_slot_write(buf, call->request.store, call->call_slot,
                          call->number);
    for (size_t i = call->first; i < call->end; i++)
        write_group(buf, adds, &adds->groups[i]);
}

static void send_call(struct weir__add_call *call, size_t len)
{
    struct weir__store_topic *topic = &call->adds->topic->base;
    struct weir__buf bytes = {0};
    char seq[WEIR__SEQ_LEN];

    call->request.store = topic->store;
    call->request.done = on_added;
    if (!weir__call_slot_take(topic->store, &call->call_slot)) {
        call->request.done = on_no_call_slot;
        weir__redis_fail(&call->request, WEIR_ENOMEM);
        return;
    }
    weir__seq_next(&topic->store->seqs, 0, seq);
    call->number = topic->store->seqs.last;
    write_call(&bytes, call, len);
    weir__place_send(topic->place, &bytes, &weir__script_bounded_add,
                     WEIR__SEND_AGAIN | WEIR__SEND_REPLAY, &call->request);
}

/* The groups from `first` on that fit into one call, one at least. */
static size_t plan(const struct weir__bounded_adds *adds, size_t first,
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

static void on_unsent(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    (void)reply; /* none was asked for */
    adds_answer((struct weir__bounded_adds *)request, code);
}

static void adds_send(struct weir__bounded_adds *adds)
{
    size_t count = 0, events, len;

    for (size_t at = 0; at < adds->group_count; count++)
        at = plan(adds, at, &events, &len);
    if (adds->count == 0) {
        adds_free(adds);
        return;
    }
    adds->request.store = adds->topic->base.store;
    adds->request.done = on_unsent;
    adds->calls = weir__mem_new(count * sizeof(struct weir__add_call));
    if (adds->calls == NULL) {
        weir__redis_fail(&adds->request, WEIR_ENOMEM);
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

/* --- leaving ------------------------------------------------------------ */

static struct weir__bounded_adds *take(struct weir__bounded_topic *topic)
{
    struct weir__bounded_adds *adds = topic->adds;

    topic->adds = NULL;
    topic->adds_end = &topic->adds;
    for (struct weir__bounded_adds *one = adds; one != NULL; one = one->next)
        for (size_t i = 0; i < one->count; i++)
            topic->shared->collected -= one->events[i].len;
    return adds;
}

/* A server that is full takes no names of topics, and says so of events, too.
 */
static void on_waited(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__bounded_topic *topic =
        ((struct weir__bounded_wait *)request)->topic;

    (void)reply;
    topic->wait.is_sent = false;
    if (code == WEIR_OK || code == WEIR_ESERVER)
        weir__bounded_flush_adds(topic);
    else
        weir__bounded_fail_adds(&topic->base, code);
    weir__place_flush(topic->base.place);
}

/* Events are named by the server's time. They gather until there is one, and as
 * long as its first command waits for it. */
static void wait_for_connection(struct weir__bounded_topic *topic)
{
    if (topic->wait.is_sent)
        return;
    topic->wait.is_sent = true;
    topic->wait.topic = topic;
    topic->wait.request.done = on_waited;
    weir__redis_register_for(topic->base.store, topic->base.name,
                             &topic->wait.request);
}

void weir__bounded_flush_adds(struct weir__bounded_topic *topic)
{
    struct weir__bounded_adds *adds;

    if (topic->adds == NULL || topic->base.store->is_closed)
        return;
    if (!topic->base.place->server->is_up) {
        wait_for_connection(topic);
        return;
    }
    adds = take(topic);
    while (adds != NULL) {
        struct weir__bounded_adds *next = adds->next;

        adds_send(adds);
        adds = next;
    }
}

void weir__bounded_fail_adds(struct weir__store_topic *topic, int code)
{
    struct weir__bounded_adds *adds = take(weir__bounded_topic_of(topic));

    while (adds != NULL) {
        struct weir__bounded_adds *next = adds->next;

        adds_answer(adds, code);
        adds = next;
    }
}

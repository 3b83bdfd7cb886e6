/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "adapters/redis/store/confirm.h"
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

#define LIMITS_NS INT64_C(5000000000) /* how old what is stored may be */

/* A call of the script: it adds some groups with all their events. */
struct weir__add_call {
    struct weir__request request; /* first */
    struct weir__confirm confirm;
    struct weir__bounded_adds *adds;
    size_t first, end;  /* its groups */
    size_t events, len; /* number and bytes of its events */
    bool is_again;      /* it was acknowledged by another server */
    uint32_t call_slot;
    uint32_t nonce;
    uint64_t number; /* grows from call to call */
};

static struct weir_slice name_of(const struct weir__bounded_adds *adds,
                                 const struct weir__event_group *group)
{
    return (struct weir_slice){adds->bytes.ptr + group->name_at,
                               group->name_len};
}

/* --- collecting --------------------------------------------------------- */

static struct weir__bounded_adds *adds_new(struct weir__bounded_topic *topic,
                                           uint32_t durability)
{
    struct weir__bounded_adds *adds = weir__mem_new(sizeof(*adds));

    if (adds == NULL)
        return NULL;
    adds->topic = topic;
    adds->durability = durability;
    *topic->adds_end = adds;
    topic->adds_end = &adds->next;
    topic->last_adds = adds;
    return adds;
}

static struct weir__bounded_adds *adds_of(struct weir__bounded_topic *topic,
                                          const struct weir__new_job *job)
{
    struct weir__bounded_adds *adds =
        topic->adds == NULL ? NULL : topic->last_adds;
    size_t len = job->record->body.len;

    if (adds == NULL || adds->count == WEIR__BOUND_COLLECT ||
        adds->durability != job->durability ||
        (adds->count > 0 && adds->bytes.len + len > COLLECT_BYTES))
        return adds_new(topic, job->durability);
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
    struct weir__bounded_adds *adds = adds_of(topic, job);
    struct weir__event_group *group =
        adds == NULL ? NULL : group_of(adds, job->group);

    if (group != NULL &&
        (group->count == WEIR__BOUND_EVENTS ||
         (group->count > 0 && group->len + len > WEIR__BOUND_BYTES))) {
        adds = adds_new(topic, job->durability);
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
    if (shared->collected + shared->store->unconfirmed > COLLECTED_MAX)
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

/* Once. */
static void answer_event(const struct weir__bounded_adds *adds, size_t place,
                         int code)
{
    struct weir__event *event = &adds->events[place];
    weir_added_fn fn = event->fn;
    char id[WEIR_MAX_ID + 1] = "";

    if (fn == NULL)
        return;
    event->fn = NULL;
    if (event->id_len > 0)
        memcpy(id, adds->bytes.ptr + event->at + WEIR__EVENT_ID_AT,
               event->id_len);
    else if (adds->seqs[0][0] != '\0')
        weir__made_id(adds->seqs[place / WEIR__SLOTS_MAX],
                      (unsigned)(place % WEIR__SLOTS_MAX), id);
    weir__topic_added(&adds->topic->base, fn,
                      code == WEIR_OK ? event->code : code, id, event->arg);
}

static void adds_answer(struct weir__bounded_adds *adds, int code)
{
    for (size_t i = 0; i < adds->count; i++)
        answer_event(adds, i, code);
    adds_free(adds);
}

/* The last `count` events of the group came to nothing: the call has them no
 * more. */
static void refuse_last(struct weir__add_call *call,
                        struct weir__event_group *group, size_t count, int code)
{
    size_t left = count < group->count ? group->count - count : 0;
    uint32_t number = group->first;

    for (size_t i = 0; i < group->count; i++) {
        struct weir__event *event = &call->adds->events[number - 1];

        if (i >= left)
            event->code = code;
        number = event->next;
    }
    call->events -= group->count - left;
    group->count = (uint32_t)left;
}

/* What others dropped is told once only, though the call was sent again; then
 * an answer that ends with a word is the first one. */
static void note_drops(struct weir__add_call *call,
                       const struct redisReply *reply, int64_t mode)
{
    struct weir__bounded_adds *adds = call->adds;
    struct weir_slice word;
    int64_t place, count;

    if (call->is_again && weir__reply_str(reply, reply->elements - 1, &word))
        return;
    for (size_t i = 1; i + 1 < (size_t)reply->elements; i += 2) {
        struct weir__event_group *group;

        if (!weir__reply_int(reply, i, &place) ||
            !weir__reply_int(reply, i + 1, &count) || place < 0 ||
            (size_t)place >= call->end - call->first || count < 0)
            return;
        group = &adds->groups[call->first + (size_t)place];
        if (mode != WEIR__DROP_OLDEST)
            refuse_last(call, group, (size_t)count,
                        mode == WEIR__REJECT ? WEIR_EFULL : WEIR_EDROPPED);
        if (mode != WEIR__REJECT && !call->is_again)
            weir__bounded_report_drop(adds->topic, name_of(adds, group),
                                      WEIR_DROP_OVERFLOW, (uint64_t)count);
    }
}

/* Answers its events; or only what was refused. */
static void answer_events(const struct weir__add_call *call, int code,
                          bool is_refused_only)
{
    const struct weir__bounded_adds *adds = call->adds;

    for (size_t i = call->first; i < call->end; i++)
        for (uint32_t number = adds->groups[i].first; number != 0;
             number = adds->events[number - 1].next)
            if (!is_refused_only || adds->events[number - 1].code != WEIR_OK)
                answer_event(adds, number - 1, code);
}

/* Ends the call, and with the last one its adds. */
static void answer_call(struct weir__add_call *call, int code)
{
    struct weir__bounded_adds *adds = call->adds;

    answer_events(call, code, false);
    adds->left--;
    if (adds->left == 0)
        adds_free(adds);
}

static void finish(struct weir__add_call *call, int code)
{
    weir__call_slot_leave(call->request.store, call->call_slot);
    answer_call(call, code);
}

static void on_confirmed(struct weir__confirm *confirm, int code)
{
    finish(confirm->call, code);
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
        weir__topic_next_seq(&adds->topic->base, adds->seqs[i]);
    for (size_t i = 0; i < adds->count; i++)
        weir__event_name(adds->bytes.ptr + adds->events[i].at,
                         adds->seqs[i / WEIR__SLOTS_MAX],
                         (unsigned)(i % WEIR__SLOTS_MAX));
}

static void write_call(struct weir__buf *buf, const struct weir__add_call *call)
{
    const struct weir__bounded_adds *adds = call->adds;
    const struct weir__bounded_topic *topic = adds->topic;
    size_t groups = call->end - call->first;

    /* The events and what is around them. */
    (void)weir__buf_reserve(buf,
                            call->len + 16 * call->events + 120 * groups + 512);
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
                          call->number, call->nonce);
    for (size_t i = call->first; i < call->end; i++)
        weir__event_group_write(buf, adds, &adds->groups[i]);
}

/* Returns what it means. What was refused is not replayed. */
static int read_answer(struct weir__add_call *call,
                       const struct redisReply *reply)
{
    struct weir__conn *conn = call->adds->topic->base.place->server->commands;
    struct weir__buf rest = {0};
    size_t events = call->events;
    int64_t mode;

    if (!weir__reply_int(reply, 0, &mode) || mode == WEIR__NOT_STORED)
        return WEIR_ESERVER;
    if (mode < 0) {
        weir__conn_replay_nothing(conn);
        return WEIR_EKIND;
    }
    note_drops(call, reply, mode);
    if (call->events == events)
        return WEIR_OK;
    if (call->events > 0)
        write_call(&rest, call);
    weir__conn_replay_instead(conn, &rest);
    return WEIR_OK;
}

static void on_added(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct weir__add_call *call = (struct weir__add_call *)request; /* first */

    weir__topic_log_error(&call->adds->topic->base, "add", code, reply);
    if (code == WEIR_OK)
        code = read_answer(call, reply);
    if (code == WEIR_OK && call->confirm.durability != 0)
        answer_events(call, WEIR_OK, true);
    if (call->events == 0)
        call->confirm.durability = 0;
    code = weir__confirm_answered(&call->confirm, code);
    if (code != WEIR__CONFIRM_WAITS)
        finish(call, code);
}

static void send_call(struct weir__add_call *call, unsigned flags)
{
    struct weir__buf bytes = {0};

    write_call(&bytes, call);
    weir__place_send(call->adds->topic->base.place, &bytes,
                     &weir__script_bounded_add, flags, &call->request);
}

/* Adds nothing where the server knows it. */
static void send_again(struct weir__confirm *confirm)
{
    struct weir__add_call *call = confirm->call;

    call->is_again = true;
    send_call(call, WEIR__SEND_HERE | WEIR__SEND_REPLAY);
}

static void begin_call(struct weir__add_call *call)
{
    struct weir__bounded_adds *adds = call->adds;
    struct weir__redis *store = adds->topic->base.store;
    char seq[WEIR__SEQ_LEN];

    call->confirm.topic = &adds->topic->base;
    call->confirm.call = call;
    if (adds->durability != WEIR__DURABILITY_SERVER)
        call->confirm.durability = adds->durability;
    call->confirm.bytes = call->len + call->events * sizeof(*adds->events);
    call->confirm.done = on_confirmed;
    call->confirm.send_again = send_again;
    call->request.store = store;
    call->request.done = on_added;
    if (!weir__call_slot_take(store, &call->call_slot)) {
        call->request.done = on_no_call_slot;
        weir__redis_fail(&call->request, WEIR_ENOMEM);
        return;
    }
    weir__seq_next(&store->seqs, 0, seq);
    call->number = store->seqs.last;
    call->nonce = weir__call_nonce(store);
    send_call(call, WEIR__SEND_AGAIN | WEIR__SEND_REPLAY);
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

static void fail(struct weir__bounded_adds *adds, int code)
{
    adds->request.store = adds->topic->base.store;
    adds->request.done = on_unsent;
    weir__redis_fail(&adds->request, code);
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
    adds->calls = weir__mem_new(count * sizeof(struct weir__add_call));
    if (adds->calls == NULL) {
        fail(adds, WEIR_ENOMEM);
        return;
    }
    name_events(adds);
    adds->left = count;
    for (size_t at = 0, i = 0; i < count; i++) {
        struct weir__add_call *call = &adds->calls[i];

        call->adds = adds;
        call->first = at;
        at = plan(adds, at, &call->events, &call->len);
        call->end = at;
        begin_call(call);
    }
}

/* --- leaving ------------------------------------------------------------ */

/* The first of those that are collected; NULL: there are none. */
static struct weir__bounded_adds *take(struct weir__bounded_topic *topic)
{
    struct weir__bounded_adds *adds = topic->adds;

    if (adds == NULL)
        return NULL;
    topic->adds = adds->next;
    if (topic->adds == NULL)
        topic->adds_end = &topic->adds;
    for (size_t i = 0; i < adds->count; i++)
        topic->shared->collected -= adds->events[i].len;
    return adds;
}

/* Resolve what they have to be confirmed by. WEIR_OK; WEIR__CONFIRM_ASKED: not
 * yet; else why not. */
static int check_confirm(struct weir__bounded_adds *adds)
{
    if (adds->durability == 0)
        adds->durability = adds->topic->base.limits.durability;
    if (adds->durability == WEIR__DURABILITY_SERVER)
        return WEIR_OK;
    return weir__confirm_check(adds->topic->base.place, adds->durability);
}

/* The answers of adds do not tell that the stored options changed. Events are
 * named by the server's time: they gather until there is a connection. */
static bool knows_limits(struct weir__bounded_topic *topic)
{
    struct weir__limits *limits = &topic->base.limits;

    if (weir__redis_now_ns(topic->base.store) - limits->read_ns > LIMITS_NS)
        limits->connection = 0;
    return weir__limits_known(&topic->base);
}

void weir__bounded_flush_adds(struct weir__bounded_topic *topic)
{
    if (topic->adds == NULL || topic->base.store->is_closed ||
        !knows_limits(topic))
        return;
    while (topic->adds != NULL) {
        struct weir__bounded_adds *adds = topic->adds;
        int code = check_confirm(adds);

        if (code == WEIR__CONFIRM_ASKED)
            return;
        (void)take(topic); /* these */
        if (code == WEIR_OK)
            adds_send(adds);
        else
            fail(adds, code);
    }
}

void weir__bounded_fail_adds(struct weir__store_topic *topic, int code)
{
    struct weir__bounded_adds *adds;

    while ((adds = take(weir__bounded_topic_of(topic))) != NULL)
        adds_answer(adds, code);
}

/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Taking runs back, and renewing the leases of runs that are out. A lease is
 * settled once all of its runs came back, many of them in one call. */

enum {
    RENEW_MAX = 500, /* leases of one call */
    HEAD_KEYS = 8,   /* of a call that settles */
    LOT_ARGS = 11,
    LOTS_MAX = 100,        /* of one call */
    EVENTS_MAX = 2000,     /* that go back by one call, about */
    BYTES_MAX = 512 * 1024 /* as many, of several batches */
};

/* --- verdicts ----------------------------------------------------------- */

/* The server remembers how many leases ended, so the record is without them. */
static void rewrite(struct weir__bounded_lease *lease,
                    const struct weir__run *run)
{
    struct weir__leased_event *event = &lease->events[run->node];
    struct weir_slice old = {lease->bytes.ptr + event->at, event->len};
    size_t at = lease->rewritten.len;
    struct weir__record record = run->record;
    struct weir__buf attempts = {0};

    record.counters.crashes -= lease->ended;
    weir__attempts_note(lease->topic->base.store, run, 0, &record, &attempts);
    weir__event_rewrite(&lease->rewritten, old, &record);
    weir__buf_fini(&attempts);
    if (lease->rewritten.failed) { /* it goes back as it was */
        lease->rewritten.len = at;
        lease->rewritten.failed = false;
        return;
    }
    event->at = at;
    event->len = lease->rewritten.len - at;
    event->is_rewritten = true;
}

static void give_back(struct weir__bounded_lease *lease,
                      const struct weir__run *run)
{
    lease->events[run->node].is_back = true;
    lease->back++;
}

static void take_verdict(struct weir__bounded_lease *lease,
                         struct weir__run *run)
{
    switch (run->outcome) {
    case WEIR__OUTCOME_DONE:
        lease->done++;
        return;
    case WEIR__OUTCOME_DEAD:
        if (weir__slice_equal(run->record.reason, weir__slice_str("expired")))
            lease->aged++;
        else
            lease->failed++;
        return;
    case WEIR__OUTCOME_RETRY:
    case WEIR__OUTCOME_SNOOZE:
        lease->retried += run->outcome == WEIR__OUTCOME_RETRY;
        lease->snoozed += run->outcome == WEIR__OUTCOME_SNOOZE;
        if (run->delay_ms > lease->wait_ms)
            lease->wait_ms = run->delay_ms;
        rewrite(lease, run);
        give_back(lease, run);
        return;
    case WEIR__OUTCOME_RETURN:
        give_back(lease, run);
        return;
    case WEIR__OUTCOME_TAKEN:
        weir__keeper_shut(lease->topic->base.store->keeper);
        lease->is_lost = true;
        weir__keeper_reopen(lease->topic->base.store->keeper);
        return;
    case WEIR__OUTCOME_NONE:
    default:
        WEIR_UNREACHABLE("a run was settled without an outcome");
    }
}

void weir__bounded_settle(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct weir__bounded_lease *lease = run->batch;

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC);
    WEIR_ASSERT(lease->topic == topic && lease->out > 0);
    WEIR_ASSERT(lease->starting == NULL);
    take_verdict(lease, run);
    if (run->asker != NULL) {
        run->asker->next = lease->askers;
        lease->askers = run->asker;
    }
    topic->base.unsettled++;
    weir__run_fini(run);
    lease->out--;
    if (lease->out > 0)
        return;
    *topic->spent_end = lease;
    topic->spent_end = &lease->next_spent;
    weir__topic_mark(&topic->base);
}

/* --- leases ------------------------------------------------------------- */

/* A lease that was sent back ends with that call. */
static bool is_kept(const struct weir__lease *base)
{
    const struct weir__bounded_lease *lease =
        (const struct weir__bounded_lease *)base; /* first */

    return lease->has_end && !lease->is_lost && !lease->is_sent;
}

static void write_lease(struct weir__buf *buf,
                        const struct weir__bounded_lease *lease)
{
    weir__resp_bytes(buf, lease->group);
    weir__resp_int(buf, (int64_t)lease->base.token);
}

void weir__bounded_renew(struct weir__renewals *renewals,
                         const struct weir__store_topic *topic,
                         int64_t lease_ms)
{
    const struct weir__lease *lease = topic->leases;

    for (;;) {
        size_t count = weir__leases_count(lease, RENEW_MAX, is_kept);

        if (count == 0)
            return;
        weir__renewals_begin(renewals, &weir__script_bounded_renew);
        weir__resp_eval(&renewals->bytes, &weir__script_bounded_renew, 2,
                        1 + 2 * count);
        weir__prefix_keys(&renewals->bytes, &topic->prefix, "lease out");
        weir__resp_int(&renewals->bytes, lease_ms);
        for (; count > 0; lease = lease->next)
            if (is_kept(lease)) {
                write_lease(&renewals->bytes,
                            (const struct weir__bounded_lease *)lease);
                count--;
            }
        weir__renewals_end(renewals);
    }
}

/* --- suspects ----------------------------------------------------------- */

static struct weir__bounded_lease *lease_of(struct weir__request *start)
{
    return (
        struct weir__bounded_lease *)(void *)((char *)start -
                                              offsetof(
                                                  struct weir__bounded_lease,
                                                  start));
}

static void on_started(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__bounded_lease *lease = lease_of(request);
    struct weir__run *run = lease->starting;
    struct weir__bounded_topic *topic = lease->topic;

    lease->starting = NULL;
    weir__topic_log_error(&topic->base, "start", code, reply);
    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && reply->elements > 0)
        code = WEIR_ENOTFOUND;
    if (topic->base.user != NULL)
        topic->base.store->events.started(topic->base.user, run, code);
}

void weir__bounded_start(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct weir__bounded_lease *lease = run->batch;
    struct weir__buf bytes = {0};

    WEIR_ASSERT(run->is_suspect && lease->starting == NULL);
    lease->starting = run;
    lease->start.done = on_started;
    weir__resp_eval(&bytes, &weir__script_bounded_renew, 2, 3);
    weir__prefix_keys(&bytes, &topic->base.prefix, "lease out");
    weir__resp_int(&bytes, 0);
    write_lease(&bytes, lease);
    weir__place_send(topic->base.place, &bytes, &weir__script_bounded_renew,
                     WEIR__SEND_AGAIN, &lease->start);
}

/* --- answers ------------------------------------------------------------ */

struct settle_call {
    struct weir__request request; /* first */
    struct weir__bounded_topic *topic;
    struct weir__bounded_lease *first; /* linked by next_spent */
    size_t count, runs;
};

static struct weir__bounded_lease *lease_at(const struct settle_call *call,
                                            int64_t place)
{
    struct weir__bounded_lease *lease = call->first;

    while (lease != NULL && place-- > 0)
        lease = lease->next_spent;
    return lease;
}

static void tell_askers(struct weir__bounded_lease *lease, int code)
{
    while (lease->askers != NULL) {
        struct weir__asker *asker = lease->askers;

        lease->askers = asker->next;
        weir__asker_tell(asker, code);
    }
}

/* Returns how many runs were refused. */
static size_t read_refused(struct settle_call *call,
                           const struct redisReply *reply)
{
    size_t i = 0, refused = 0;
    int64_t place, count;

    for (; weir__reply_int(reply, i, &place); i++) {
        struct weir__bounded_lease *lease = lease_at(call, place);

        if (lease == NULL)
            continue;
        refused += lease->count;
        lease->aged = 0;
        tell_askers(lease, WEIR_ENOTFOUND);
    }
    for (i++; weir__reply_int(reply, i, &place) &&
              weir__reply_int(reply, i + 1, &count);
         i += 2) {
        const struct weir__bounded_lease *lease = lease_at(call, place);

        if (lease != NULL && count > 0)
            weir__bounded_report_drop(call->topic, lease->group,
                                      WEIR_DROP_OVERFLOW, (uint64_t)count);
    }
    return refused;
}

/* Frees the call and its leases. */
static void finish(struct settle_call *call, int code, size_t refused)
{
    struct weir__bounded_topic *topic = call->topic;
    size_t runs = call->runs;

    while (call->first != NULL) {
        struct weir__bounded_lease *lease = call->first;

        call->first = lease->next_spent;
        tell_askers(lease, code);
        weir__bounded_lease_free(lease);
    }
    weir__mem_free(call);
    weir__topic_settled(&topic->base, runs, refused);
}

static void send_call(struct settle_call *call);

/* Drop the largest of the events that were to go back. */
static bool drop_largest(struct weir__bounded_lease *lease)
{
    struct weir__leased_event *largest = NULL;

    for (size_t i = 0; i < lease->count; i++) {
        struct weir__leased_event *event = &lease->events[i];

        if (event->is_back && (largest == NULL || event->len > largest->len))
            largest = event;
    }
    if (largest == NULL)
        return false;
    weir__log(lease->topic->base.store->options.log, WEIR_LEVEL_ERROR,
              "redis: %s: an event is dropped: it has %zu bytes, the server "
              "takes less: raise proto-max-bulk-len and "
              "client-query-buffer-limit",
              lease->topic->base.name, largest->len);
    largest->is_back = false;
    lease->back--;
    lease->failed++;
    lease->retried -= lease->retried > 0;
    return true;
}

/* The call is larger than the server takes (conn/refusal.c). Such a call has
 * one batch. */
static bool send_less(struct settle_call *call)
{
    if (call->count > 1 || !drop_largest(call->first))
        return false;
    send_call(call);
    weir__place_flush(call->topic->base.place);
    return true;
}

static void on_settled(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct settle_call *call =
        (struct settle_call *)request; /* its first member */
    struct weir__bounded_topic *topic = call->topic;
    size_t refused = call->runs;

    if (code == WEIR_ETOOBIG && send_less(call))
        return;
    weir__topic_log_error(&topic->base, "settle", code, reply);
    if (code == WEIR_OK) {
        refused = read_refused(call, reply);
        if (refused > call->runs)
            refused = call->runs; /* the script names a batch once */
        if (refused == call->runs)
            weir__conn_replay_nothing(topic->base.place->server->commands);
        for (const struct weir__bounded_lease *lease = call->first;
             lease != NULL; lease = lease->next_spent)
            weir__bounded_report_drop(topic, lease->group, WEIR_DROP_AGE,
                                      lease->aged);
    }
    finish(call, code, refused);
}

/* --- sending ------------------------------------------------------------ */

static bool is_untouched(const struct weir__bounded_lease *lease)
{
    return lease->has_end && lease->back == lease->count &&
           lease->retried == 0 && lease->snoozed == 0;
}

static void write_verdicts(struct weir__buf *buf,
                           const struct weir__bounded_lease *lease)
{
    weir__resp_bytes(buf, lease->group);
    weir__resp_int(buf, (int64_t)lease->base.token);
    weir__resp_int(buf, lease->has_end);
    weir__resp_int(buf, lease->wait_ms);
    weir__resp_int(buf, lease->done);
    weir__resp_int(buf, lease->failed);
    weir__resp_int(buf, lease->aged);
    weir__resp_int(buf, lease->retried);
    weir__resp_int(buf, lease->snoozed);
    weir__resp_int(buf, (int64_t)lease->count);
    if (is_untouched(lease)) {
        weir__resp_int(buf, -1);
        return;
    }
    weir__resp_int(buf, lease->back);
    for (size_t i = 0; i < lease->count; i++) {
        const struct weir__leased_event *event = &lease->events[i];
        const struct weir__buf *bytes =
            event->is_rewritten ? &lease->rewritten : &lease->bytes;

        if (event->is_back)
            weir__resp_bytes(
                buf, (struct weir_slice){bytes->ptr + event->at, event->len});
    }
}

/* Without a lease a batch has no token by which a repeat is known. */
static void send_call(struct settle_call *call)
{
    struct weir__bounded_topic *topic = call->topic;
    struct weir__buf bytes = {0};
    unsigned flags = WEIR__SEND_AGAIN | WEIR__SEND_REPLAY;
    size_t back = 0;

    for (const struct weir__bounded_lease *lease = call->first; lease != NULL;
         lease = lease->next_spent) {
        back += is_untouched(lease) ? 0 : lease->back;
        if (!lease->has_end)
            flags = WEIR__SEND_AGAIN;
    }
    weir__resp_eval(&bytes, &weir__script_bounded_settle,
                    HEAD_KEYS + 2 * call->count + 1,
                    1 + LOT_ARGS * call->count + back);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "rot hot lease out meta idle options ttl");
    for (const struct weir__bounded_lease *lease = call->first; lease != NULL;
         lease = lease->next_spent) {
        struct weir_slice group = lease->group;

        weir__bounded_group_key(&bytes, topic, 'g', group);
        weir__bounded_group_key(&bytes, topic, 'l', group);
    }
    weir__prefix_key(&bytes, &topic->base.prefix, "absent");
    weir__resp_str(&bytes, topic->base.name);
    for (const struct weir__bounded_lease *lease = call->first; lease != NULL;
         lease = lease->next_spent)
        write_verdicts(&bytes, lease);
    call->request.done = on_settled;
    weir__place_send(topic->base.place, &bytes, &weir__script_bounded_settle,
                     flags, &call->request);
}

/* Lost leases are not sent: their events run elsewhere. */
static void drop_lost(struct weir__bounded_topic *topic)
{
    struct weir__bounded_lease **link = &topic->spent;

    while (*link != NULL) {
        struct weir__bounded_lease *lease = *link;

        if (!lease->is_lost) {
            link = &lease->next_spent;
            continue;
        }
        *link = lease->next_spent;
        tell_askers(lease, WEIR_ENOTFOUND);
        weir__topic_forgo(&topic->base, lease->count);
        weir__bounded_lease_free(lease);
    }
    topic->spent_end = link;
}

/* The bytes of events that go back, but for those that the server has. */
static size_t bytes_of(const struct weir__bounded_lease *lease)
{
    size_t bytes = 0;

    for (size_t i = 0; i < lease->count && !is_untouched(lease); i++)
        bytes += lease->events[i].is_back ? lease->events[i].len : 0;
    return bytes;
}

/* False when out of memory. */
static bool flush_some(struct weir__bounded_topic *topic)
{
    struct settle_call *call = weir__mem_new(sizeof(*call));
    struct weir__bounded_lease **link;
    size_t back = 0, bytes = 0;

    if (call == NULL)
        return false;
    link = &call->first;
    call->topic = topic;
    while (topic->spent != NULL && call->count < LOTS_MAX &&
           back < EVENTS_MAX) {
        struct weir__bounded_lease *lease = topic->spent;

        bytes += lease->back > 0 ? bytes_of(lease) : 0;
        if (bytes > BYTES_MAX && call->count > 0)
            break;
        topic->spent = lease->next_spent;
        lease->next_spent = NULL;
        weir__keeper_shut(topic->base.store->keeper);
        lease->is_sent = true;
        weir__keeper_reopen(topic->base.store->keeper);
        *link = lease;
        link = &lease->next_spent;
        call->count++;
        call->runs += lease->count;
        back += lease->back;
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

/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Taking runs back, and renewing the leases of runs that are out. A lease is
 * settled once all of its runs came back, by bounded/verdicts.c. */

enum { RENEW_MAX = 500 }; /* leases of one call */

/* --- verdicts ----------------------------------------------------------- */

/* The server remembers how many leases ended, so the record is without them. */
static void rewrite(struct weir__bounded_lease *lease, struct weir__run *run)
{
    struct weir__leased_event *event = &lease->events[run->node];
    struct weir_slice old = {lease->bytes.ptr + event->at, event->len};
    size_t at = lease->rewritten.len;

    run->record.counters.crashes -= lease->ended;
    weir__event_rewrite(&lease->rewritten, old, &run->record);
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
        lease->is_lost = true;
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

static size_t count_kept(const struct weir__lease *lease)
{
    size_t count = 0;

    for (; lease != NULL && count < RENEW_MAX; lease = lease->next)
        count += is_kept(lease);
    return count;
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
        size_t count = count_kept(lease);

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
    weir__redis_send(topic->base.store, &bytes, &weir__script_bounded_renew,
                     WEIR__SEND_AGAIN, &lease->start);
}

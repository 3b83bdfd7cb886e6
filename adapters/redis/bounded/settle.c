/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Taking runs back, and keeping the leases of those that are out. A lot is
 * settled once all of its runs came back: bounded/verdicts.c sends it. */

enum { RENEW_MAX = 500 }; /* leases of one call */

/* --- verdicts ----------------------------------------------------------- */

/* The ended leases of the lot are the server's to remember. */
static void rewrite(struct weir__lot *lot, struct weir__run *run)
{
    struct weir__lot_event *event = &lot->events[run->node];
    struct weir_slice old = {lot->bytes.ptr + event->at, event->len};
    size_t at = lot->rewritten.len;

    run->record.counters.crashes -= lot->ended;
    weir__event_rewrite(&lot->rewritten, old, &run->record);
    if (lot->rewritten.failed) { /* it goes back as it was */
        lot->rewritten.len = at;
        lot->rewritten.failed = false;
        return;
    }
    event->at = at;
    event->len = lot->rewritten.len - at;
    event->is_rewritten = true;
}

static void give_back(struct weir__lot *lot, const struct weir__run *run)
{
    lot->events[run->node].is_back = true;
    lot->back++;
}

static void take_verdict(struct weir__lot *lot, struct weir__run *run)
{
    switch (run->outcome) {
    case WEIR__OUTCOME_DONE:
        lot->done++;
        return;
    case WEIR__OUTCOME_DEAD:
        if (weir__slice_equal(run->record.reason, weir__slice_str("expired")))
            lot->aged++;
        else
            lot->failed++;
        return;
    case WEIR__OUTCOME_RETRY:
    case WEIR__OUTCOME_SNOOZE:
        lot->retried += run->outcome == WEIR__OUTCOME_RETRY;
        lot->snoozed += run->outcome == WEIR__OUTCOME_SNOOZE;
        if (run->delay_ms > lot->wait_ms)
            lot->wait_ms = run->delay_ms;
        rewrite(lot, run);
        give_back(lot, run);
        return;
    case WEIR__OUTCOME_RETURN:
        give_back(lot, run);
        return;
    case WEIR__OUTCOME_TAKEN:
        lot->is_lost = true;
        return;
    case WEIR__OUTCOME_NONE:
    default:
        WEIR_UNREACHABLE("a run was settled without an outcome");
    }
}

void weir__bounded_settle(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);
    struct weir__lot *lot = run->batch;

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC);
    WEIR_ASSERT(lot->topic == topic && lot->out > 0);
    WEIR_ASSERT(lot->starting == NULL);
    take_verdict(lot, run);
    topic->base.unsettled++;
    weir__run_fini(run);
    lot->out--;
    if (lot->out > 0)
        return;
    *topic->spent_end = lot;
    topic->spent_end = &lot->next_spent;
    weir__topic_mark(&topic->base);
}

/* --- leases ------------------------------------------------------------- */

/* What was sent back ends with that. */
static bool is_kept(const struct weir__lease *base)
{
    const struct weir__lot *lot = (const struct weir__lot *)base; /* first */

    return lot->is_leased && !lot->is_lost && !lot->is_sent;
}

static size_t count_kept(const struct weir__lease *lease)
{
    size_t count = 0;

    for (; lease != NULL && count < RENEW_MAX; lease = lease->next)
        count += is_kept(lease);
    return count;
}

static void write_lot(struct weir__buf *buf, const struct weir__lot *lot)
{
    weir__resp_bytes(buf, lot->group);
    weir__resp_int(buf, (int64_t)lot->base.token);
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
                write_lot(&renewals->bytes, (const struct weir__lot *)lease);
                count--;
            }
        weir__renewals_end(renewals);
    }
}

/* --- suspects ----------------------------------------------------------- */

static struct weir__lot *lot_of(struct weir__request *start)
{
    return (struct weir__lot *)(void *)((char *)start -
                                        offsetof(struct weir__lot, start));
}

static void on_started(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__lot *lot = lot_of(request);
    struct weir__run *run = lot->starting;
    struct weir__bounded_topic *topic = lot->topic;

    lot->starting = NULL;
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
    struct weir__lot *lot = run->batch;
    struct weir__buf bytes = {0};

    WEIR_ASSERT(run->is_suspect && lot->starting == NULL);
    lot->starting = run;
    lot->start.done = on_started;
    weir__resp_eval(&bytes, &weir__script_bounded_renew, 2, 3);
    weir__prefix_keys(&bytes, &topic->base.prefix, "lease out");
    weir__resp_int(&bytes, 0);
    write_lot(&bytes, lot);
    weir__redis_send(topic->base.store, &bytes, &weir__script_bounded_renew,
                     WEIR__SEND_AGAIN, &lot->start);
}

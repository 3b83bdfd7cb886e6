/* SPDX-License-Identifier: MIT */
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

static void unlink_lot(struct weir__lot *lot)
{
    if (lot->previous != NULL)
        lot->previous->next = lot->next;
    else
        lot->topic->lots = lot->next;
    if (lot->next != NULL)
        lot->next->previous = lot->previous;
    lot->previous = NULL;
    lot->next = NULL;
}

void weir__bound_settle(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__bound_topic *topic = weir__bound_topic_of(base);
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
    unlink_lot(lot);
    *topic->spent_end = lot;
    topic->spent_end = &lot->next_spent;
    weir__base_mark(&topic->base);
}

/* --- leases ------------------------------------------------------------- */

struct renew_ask {
    struct weir__ask ask;
    struct weir__bound_topic *topic;
    size_t count;
    uint64_t tokens[];
};

static void on_renewed(struct weir__ask *ask, int code,
                       const struct redisReply *reply)
{
    struct renew_ask *renewal = (struct renew_ask *)ask; /* its first member */
    struct weir__bound_topic *topic = renewal->topic;
    int64_t place;

    weir__base_log_error(&topic->base, "renew", code, reply);
    for (size_t i = 0; code == WEIR_OK && weir__reply_int(reply, i, &place);
         i++)
        if (topic->base.user != NULL && place >= 0 &&
            (size_t)place < renewal->count)
            topic->store->base.events.lost(topic->base.user,
                                           renewal->tokens[place]);
    weir__mem_free(renewal);
}

static void write_lot(struct weir__buf *buf, const struct weir__lot *lot)
{
    weir__resp_bytes(buf, lot->group);
    weir__resp_int(buf, (int64_t)lot->token);
}

/* Returns where the next call goes on. */
static const struct weir__lot *renew_some(struct weir__bound_topic *topic,
                                          const struct weir__lot *first,
                                          int64_t lease_ms)
{
    struct weir__buf bytes = {0};
    const struct weir__lot *end = first;
    struct renew_ask *renewal;
    size_t count = 0;

    for (; end != NULL && count < RENEW_MAX; end = end->next)
        count++;
    renewal = weir__mem_new(sizeof(*renewal) + count * sizeof(uint64_t));
    if (renewal == NULL)
        return end; /* there are two more chances */
    renewal->ask.done = on_renewed;
    renewal->topic = topic;
    weir__resp_eval(&bytes, &weir__script_bounded_renew, 2, 1 + 2 * count);
    weir__prefix_keys(&bytes, &topic->base.prefix, "lease out");
    weir__resp_int(&bytes, lease_ms);
    for (; first != end; first = first->next) {
        write_lot(&bytes, first);
        renewal->tokens[renewal->count++] = first->token;
    }
    weir__base_send(&topic->store->base, &bytes, &weir__script_bounded_renew,
                    WEIR__SEND_AGAIN, &renewal->ask);
    return end;
}

void weir__bound_renew(struct weir__store_topic *base, int64_t lease_ms)
{
    struct weir__bound_topic *topic = weir__bound_topic_of(base);
    const struct weir__lot *lot = topic->lots;

    while (lot != NULL && lot->is_leased && !topic->store->base.is_closed)
        lot = renew_some(topic, lot, lease_ms);
}

static size_t count_leases(const struct weir__lot *out,
                           const struct weir__lot *spent)
{
    size_t count = 0;

    for (; out != NULL; out = out->next)
        count += out->is_leased;
    for (; spent != NULL; spent = spent->next_spent)
        count += spent->is_leased && !spent->is_lost;
    return count;
}

/* Also of lots whose verdicts wait for the end of the turn. One call: further
 * than RENEW_MAX they are not kept. */
void weir__bound_write_renewals(struct weir__buf *buf,
                                const struct weir__base_topic *base)
{
    const struct weir__bound_topic *topic =
        (const struct weir__bound_topic *)base; /* its first member */
    size_t left = count_leases(topic->lots, topic->spent);

    if (left == 0)
        return;
    left = left < RENEW_MAX ? left : RENEW_MAX;
    weir__resp_eval(buf, &weir__script_bounded_renew, 2, 1 + 2 * left);
    weir__prefix_keys(buf, &base->prefix, "lease out");
    weir__resp_int(buf, base->claim.lease_ms);
    for (const struct weir__lot *lot = topic->lots; lot != NULL && left > 0;
         lot = lot->next)
        if (lot->is_leased) {
            write_lot(buf, lot);
            left--;
        }
    for (const struct weir__lot *lot = topic->spent; lot != NULL && left > 0;
         lot = lot->next_spent)
        if (lot->is_leased && !lot->is_lost) {
            write_lot(buf, lot);
            left--;
        }
    weir__buf_append(buf, "", 1); /* ends the call */
}

/* --- suspects ----------------------------------------------------------- */

static void on_started(struct weir__ask *ask, int code,
                       const struct redisReply *reply)
{
    struct weir__lot *lot = (struct weir__lot *)ask; /* its first member */
    struct weir__run *run = lot->starting;
    struct weir__bound_topic *topic = lot->topic;

    lot->starting = NULL;
    weir__base_log_error(&topic->base, "start", code, reply);
    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK && reply->elements > 0)
        code = WEIR_ENOTFOUND;
    if (topic->base.user != NULL)
        topic->store->base.events.started(topic->base.user, run, code);
}

void weir__bound_start(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__bound_topic *topic = weir__bound_topic_of(base);
    struct weir__lot *lot = run->batch;
    struct weir__buf bytes = {0};

    WEIR_ASSERT(run->is_suspect && lot->starting == NULL);
    lot->starting = run;
    lot->start.done = on_started;
    weir__resp_eval(&bytes, &weir__script_bounded_renew, 2, 3);
    weir__prefix_keys(&bytes, &topic->base.prefix, "lease out");
    weir__resp_int(&bytes, 0);
    write_lot(&bytes, lot);
    weir__base_send(&topic->store->base, &bytes, &weir__script_bounded_renew,
                    WEIR__SEND_AGAIN, &lot->start);
}

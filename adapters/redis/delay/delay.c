/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/backlog.h"
#include "core/assert.h"
#include "core/mem.h"

/* The rules of delay topics as a table, and the life of one. */

struct weir__delay_topic *weir__delay_topic_of(struct weir__store_topic *topic)
{
    WEIR_ASSERT(topic->kind == &weir__delay_kind);
    return (struct weir__delay_topic *)topic; /* its first member */
}

static struct weir__delay *delay_of(struct weir__shared *shared)
{
    return (struct weir__delay *)shared; /* its first member */
}

/* --- life --------------------------------------------------------------- */

static void shared_init(struct weir__shared *shared)
{
    delay_of(shared)->random =
        shared->store->options.seed ^ (uintptr_t)shared->store;
}

static void shared_fini(struct weir__shared *base)
{
    struct weir__delay *shared = delay_of(base);

    for (size_t i = 0; i < 5; i++)
        weir__buf_fini(&shared->scratch[i]);
    weir__mem_free(shared->planned_packs.list);
    weir__block_cache_fini(&shared->batches);
    weir__adds_fini(shared);
}

static void topic_init(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    topic->shared =
        delay_of(weir__redis_shared(base->store, &weir__delay_kind));
    topic->touched_end = &topic->touched;
    topic->number = ++topic->shared->topics_made;
    weir__backlog_init(topic);
    weir__relays_init(&topic->outbox, base, &topic->max_dead);
}

static void topic_fini(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    weir__delay_clear_verdicts(topic);
    weir__backlog_fini(topic); /* its calls name leases */
    weir__relays_fini(&topic->outbox);
    while (base->leases != NULL)
        weir__delay_lease_free((struct weir__delay_lease *)base->leases);
    weir__items_fini(&topic->endings);
    WEIR_ASSERT(topic->adds == NULL);
}

static void serve(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    topic->max_dead = base->options->max_dead;
    memcpy(topic->on_dead, base->options->on_dead, sizeof(topic->on_dead));
    topic->grave = NULL;
}

/* A worker that stops waits for what it sends on, too. */
static size_t unsettled(const struct weir__store_topic *base)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)base; /* its first member */

    return base->unsettled + topic->outbox.sending;
}

/* --- connections -------------------------------------------------------- */

/* It may be another server than the one before. */
static void close_fetchers(struct weir__store_topic *topic)
{
    weir__fetchers_close(weir__delay_topic_of(topic)->shared);
}

static void leaving(struct weir__store_topic *topic)
{
    weir__delay_send_settles(weir__delay_topic_of(topic));
}

static void hinted(struct weir__store_topic *topic, const char *seq)
{
    weir__early_fetch_note(weir__delay_topic_of(topic), seq);
}

static void fail_adds(struct weir__store_topic *topic, int code)
{
    weir__delay_fail_adds(weir__delay_topic_of(topic), code);
}

static void numbered(struct weir__store_topic *base, int code)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    if (code != WEIR_OK) {
        weir__delay_fail_adds(topic, code);
        return;
    }
    weir__delay_flush_adds(topic);
    weir__delay_flush_settles(topic);
}

/* --- flush -------------------------------------------------------------- */

/* New packs need the producer number in their names: of jobs added, and of
 * retries and snoozes. */
static bool wants_number(const struct weir__delay_topic *topic)
{
    return !topic->base.store->has_number &&
           (topic->adds != NULL || topic->endings.count > 0);
}

/* Settle before claim: what was settled makes room on the server first. */
static void flush(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    if (topic->adds != NULL || base->wants_claim)
        weir__topic_register(base);
    if (wants_number(topic))
        weir__redis_request_number(base->store); /* its answer flushes them */
    weir__delay_flush_adds(topic);
    weir__delay_flush_settles(topic);
    weir__delay_flush_claim(topic);
    if (wants_number(topic) && !base->store->asks_number)
        weir__topic_mark(base); /* a later flush asks for it */
}

const struct weir__kind weir__delay_kind = {
    .name = "delay",
    .topic_size = sizeof(struct weir__delay_topic),
    .shared_size = sizeof(struct weir__delay),
    .takes_follows = true,
    .shared_init = shared_init,
    .shared_fini = shared_fini,
    .topic_init = topic_init,
    .topic_fini = topic_fini,
    .serve = serve,
    .connected = close_fetchers,
    .hinted = hinted,
    .flush = flush,
    .numbered = numbered,
    .fail_adds = fail_adds,
    .leaving = leaving,
    .closing = close_fetchers,
    .settle = weir__delay_settle,
    .start = weir__delay_start,
    .unsettled = unsettled,
    .renew = weir__delay_renew,
    .overdue_new = weir__overdue_new,
    .add = weir__delay_add,
    .show = weir__delay_show,
    .remove = weir__delay_remove,
    .reschedule = weir__delay_reschedule,
    .requeue = weir__delay_requeue,
    .purge = weir__delay_purge,
    .forget = weir__delay_forget,
    .dead = weir__delay_dead,
    .list = weir__delay_list,
    .stats = weir__delay_stats,
    .counted = weir__delay_counted,
};

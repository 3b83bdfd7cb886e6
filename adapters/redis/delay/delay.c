/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/delay.h"

#include <string.h>

#include "adapters/redis/delay/hold.h"
#include "adapters/redis/store/keeper.h"
#include "core/assert.h"
#include "core/mem.h"

static const struct weir__base_kind delay_kind;

static struct weir__delay *delay_of(struct weir__base *base)
{
    return (struct weir__delay *)base; /* its first member */
}

static struct weir__store_topic *topic_of(struct weir__base_topic *base)
{
    return (struct weir__store_topic *)base; /* its first member */
}

/* --- life --------------------------------------------------------------- */

static void topic_fini(struct weir__base_topic *base)
{
    struct weir__store_topic *topic = topic_of(base);

    weir__topic_clear_verdicts(topic);
    while (topic->leases != NULL)
        weir__lease_free(topic->leases);
    while (topic->spent_leases != NULL) {
        struct weir__lease *lease = topic->spent_leases;

        topic->spent_leases = lease->next;
        weir__lease_free(lease);
    }
    weir__items_fini(&topic->endings);
    weir__hold_fini(topic);
    WEIR_ASSERT(topic->adds == NULL);
}

static void fini(struct weir__base *base)
{
    struct weir__delay *store = delay_of(base);

    for (size_t i = 0; i < 4; i++)
        weir__buf_fini(&store->scratch[i]);
    weir__mem_free(store->parcels.list);
    weir__shelf_fini(&store->batches);
    weir__adds_fini(store);
}

/* It may be another server than the one before. */
static void connected(struct weir__base *base)
{
    weir__fetchers_close(delay_of(base));
    weir__base_ask_number(base);
}

static void leaving(struct weir__base *base)
{
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next)
        weir__topic_send_settles(topic_of(topic));
}

static void closing(struct weir__base *base)
{
    weir__fetchers_close(delay_of(base));
}

static void hinted(struct weir__base_topic *topic, const char *seq)
{
    weir__hint_note(topic_of(topic), seq);
}

static void fail_adds(struct weir__base_topic *topic, int code)
{
    weir__topic_fail_adds(topic_of(topic), code);
}

static void numbered(struct weir__base_topic *base, int code)
{
    struct weir__store_topic *topic = topic_of(base);

    if (code != WEIR_OK) {
        weir__topic_fail_adds(topic, code);
        return;
    }
    weir__topic_flush_adds(topic);
    weir__topic_flush_settles(topic);
}

/* --- topics ------------------------------------------------------------- */

static void topic_init(struct weir__base_topic *base)
{
    struct weir__store_topic *topic = topic_of(base);

    topic->store = delay_of(base->base);
    topic->touched_end = &topic->touched;
    topic->number = ++topic->store->topics_made;
    weir__hold_init(topic);
}

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__base *base = weir__base_of(port, &delay_kind);
    bool was_in = weir__keeper_shut(base->keeper);
    struct weir__store_topic *topic =
        topic_of(weir__base_topic_open(base, options->name));

    weir__keeper_reopen(base->keeper, was_in);
    if (topic == NULL)
        return WEIR_ENOMEM;
    if (options->max_dead > 0) { /* requests name none */
        WEIR_ASSERT(options->on_dead.len <= WEIR_MAX_TOPIC);
        topic->max_dead = options->max_dead;
        memset(topic->on_dead, 0, sizeof(topic->on_dead));
        if (options->on_dead.len > 0)
            memcpy(topic->on_dead, options->on_dead.ptr, options->on_dead.len);
    }
    *ret_topic = topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    topic->base.user = user;
    if (user != NULL)
        weir__keep_begin(topic->base.base);
}

static void topic_settle(struct weir__store_topic *topic, struct weir__run *run)
{
    struct weir__keeper *keeper = topic->base.base->keeper;
    bool was_in = weir__keeper_shut(keeper);

    weir__topic_settle(topic, run);
    weir__keeper_reopen(keeper, was_in);
}

static int topic_claim(struct weir__store_topic *topic,
                       const struct weir__claim *claim)
{
    WEIR_ASSERT(claim->room <= WEIR__CALL_SLOTS);
    return weir__base_claim(&topic->base, claim);
}

/* --- flush -------------------------------------------------------------- */

/* New packs need the producer number in their names: of jobs added, and of
 * retries and snoozes. */
static bool wants_number(const struct weir__store_topic *topic)
{
    return !topic->store->base.has_number &&
           (topic->adds != NULL || topic->endings.count > 0);
}

/* Settle before claim: what was settled makes room on the server first. */
static void flush_topic(struct weir__base_topic *base)
{
    struct weir__store_topic *topic = topic_of(base);
    struct weir__delay *store = topic->store;

    if (topic->adds != NULL || topic->base.wants_claim)
        weir__base_announce(&topic->base);
    if (wants_number(topic))
        weir__base_ask_number(&store->base); /* its answer flushes them */
    weir__topic_flush_adds(topic);
    weir__topic_flush_settles(topic);
    weir__topic_flush_claim(topic);
    if (wants_number(topic) && !store->base.asks_number)
        weir__base_mark(
            &topic->base); /* it could not be asked: a later flush will */
}

/* --- opening ------------------------------------------------------------ */

static const struct weir__store_ops delay_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .start = weir__topic_start,
    .settle = topic_settle,
    .enter = weir__keep_enter,
    .leave = weir__keep_leave,
    .kept_ns = weir__keep_kept_ns,
    .renew = weir__topic_renew,
    .unsettled = weir__base_unsettled,
    .lateness = weir__base_lateness,
    .add = weir__topic_add,
    .show = weir__topic_show,
    .remove = weir__topic_remove,
    .reschedule = weir__topic_reschedule,
    .requeue = weir__topic_requeue,
    .purge = weir__topic_purge,
    .forget = weir__topic_forget,
    .dead = weir__topic_dead,
    .list = weir__topic_list,
    .pause = weir__topic_pause,
    .set = weir__topic_set,
    .settings = weir__topic_settings,
    .kind = weir__topic_kind,
    .stats = weir__topic_stats,
    .topics = weir__delay_topics,
    .flush = weir__base_flush,
    .close = weir__base_close,
};

static const struct weir__kept delay_kept = {
    .renew = &weir__script_delay_renew,
    .write_renewals = weir__topic_write_renewals,
    .overdue_new = weir__overdue_new,
};

static const struct weir__base_kind delay_kind = {
    .size = sizeof(struct weir__delay),
    .topic_size = sizeof(struct weir__store_topic),
    .ops = &delay_ops,
    .scripts = weir__scripts,
    .has_wakes = true,
    .kept = &delay_kept,
    .connected = connected,
    .flush_topic = flush_topic,
    .numbered = numbered,
    .hinted = hinted,
    .fail_adds = fail_adds,
    .leaving = leaving,
    .closing = closing,
    .topic_init = topic_init,
    .topic_fini = topic_fini,
    .fini = fini,
};

int weir__delay_open(const struct weir__redis_options *options,
                     struct weir__store **ret_store)
{
    struct weir__base *base;
    int rc = weir__base_open(&delay_kind, options, &base);

    if (rc != WEIR_OK)
        return rc;
    base->port.takes_follows = true;
    delay_of(base)->random = options->seed ^ (uintptr_t)base;
    *ret_store = &base->port;
    return WEIR_OK;
}

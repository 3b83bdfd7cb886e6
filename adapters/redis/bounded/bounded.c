/* SPDX-License-Identifier: MIT */
#include "adapters/redis/bounded/bounded.h"

#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "adapters/redis/refuse.h"
#include "adapters/redis/store/keeper.h"
#include "core/assert.h"
#include "core/text.h"

/* Life of the store and of its topics. */

static const struct weir__base_kind bounded_kind;

static struct weir__bounded *store_of(struct weir__base *base)
{
    return (struct weir__bounded *)base; /* its first member */
}

static struct weir__bound_topic *topic_of(struct weir__base_topic *base)
{
    return (struct weir__bound_topic *)base; /* its first member */
}

struct weir__bound_topic *weir__bound_topic_of(struct weir__store_topic *port)
{
    return topic_of(weir__base_topic_of(port, &bounded_kind));
}

void weir__bound_group_key(struct weir__buf *buf,
                           const struct weir__bound_topic *topic, char list,
                           struct weir_slice group)
{
    const struct weir__prefix *prefix = &topic->base.prefix;

    weir__resp_begin(buf, prefix->len + 2 + group.len);
    weir__buf_append(buf, prefix->text, prefix->len);
    weir__buf_append(buf, &list, 1);
    weir__buf_append(buf, ":", 1);
    weir__buf_append(buf, group.ptr, group.len);
    weir__resp_end(buf);
}

void weir__bound_tell_drop(const struct weir__bound_topic *topic,
                           struct weir_slice group, enum weir_drop reason,
                           uint64_t count)
{
    const struct weir__bounded *store = topic->store;
    struct weir__dropped dropped = {
        .topic = weir__slice_str(topic->base.name),
        .group =
            weir__group_is_sound(group) ? group : weir__slice_str("unreadable"),
        .reason = reason,
        .count = count,
    };

    if (store->base.events.dropped != NULL && count > 0 &&
        !store->base.is_closed)
        store->base.events.dropped(&dropped, store->base.options.arg);
}

/* --- topics ------------------------------------------------------------- */

static void topic_fini(struct weir__base_topic *base)
{
    struct weir__bound_topic *topic = topic_of(base);

    while (topic->lots != NULL)
        weir__lot_free(topic->lots);
    while (topic->spent != NULL) {
        struct weir__lot *lot = topic->spent;

        topic->spent = lot->next_spent;
        weir__lot_free(lot);
    }
    WEIR_ASSERT(topic->adds == NULL);
    weir__buf_fini(&topic->offers);
}

static void topic_init(struct weir__base_topic *base)
{
    struct weir__bound_topic *topic = topic_of(base);

    topic->store = store_of(base->base);
    topic->spent_end = &topic->spent;
    topic->adds_end = &topic->adds;
}

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__base *base = weir__base_of(port, &bounded_kind);
    bool was_in = weir__keeper_shut(base->keeper);
    struct weir__bound_topic *topic =
        topic_of(weir__base_topic_open(base, options->name));

    weir__keeper_reopen(base->keeper, was_in);
    if (topic == NULL)
        return WEIR_ENOMEM;
    if (options->bounded.length > 0) /* requests name none */
        topic->options = options->bounded;
    *ret_topic = (void *)topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *port, void *user)
{
    struct weir__base_topic *topic = weir__base_topic_of(port, &bounded_kind);

    topic->user = user;
    if (user != NULL)
        weir__keep_begin(topic->base);
}

/* What has no lease is never lost. */
static int64_t topic_kept_ns(const struct weir__store_topic *port)
{
    const struct weir__bound_topic *topic = (const void *)port;

    return topic->options.is_unleased ? weir__base_now_ns(&topic->store->base)
                                      : weir__keep_kept_ns(port);
}

static void topic_settle(struct weir__store_topic *port, struct weir__run *run)
{
    struct weir__keeper *keeper =
        weir__bound_topic_of(port)->store->base.keeper;
    bool was_in = weir__keeper_shut(keeper);

    weir__bound_settle(port, run);
    weir__keeper_reopen(keeper, was_in);
}

static int topic_claim(struct weir__store_topic *port,
                       const struct weir__claim *claim)
{
    struct weir__bound_topic *topic = weir__bound_topic_of(port);

    topic->tries = 0;
    return weir__base_claim(&topic->base, claim);
}

/* --- what the base asks for --------------------------------------------- */

static void fail_adds(struct weir__base_topic *topic, int code)
{
    weir__bound_fail_adds(topic_of(topic), code);
}

static void numbered(struct weir__base_topic *topic, int code)
{
    if (code == WEIR_OK)
        weir__bound_flush_adds(topic_of(topic));
    else
        weir__bound_fail_adds(topic_of(topic), code);
}

static void followed(struct weir__base_topic *topic, int code)
{
    (void)code; /* the next claim tells the revision again */
    weir__bound_followed(topic_of(topic));
}

/* Settle before claim: what came back frees its group first. */
static void flush_topic(struct weir__base_topic *base)
{
    struct weir__bound_topic *topic = topic_of(base);

    if (topic->adds != NULL || topic->base.wants_claim)
        weir__base_announce(&topic->base);
    weir__bound_flush_adds(topic);
    weir__bound_flush_settles(topic);
    weir__bound_flush_claim(topic);
}

/* --- opening ------------------------------------------------------------ */

static const struct weir__store_ops bounded_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .settle = topic_settle,
    .start = weir__bound_start,
    .enter = weir__keep_enter,
    .leave = weir__keep_leave,
    .kept_ns = topic_kept_ns,
    .renew = weir__bound_renew,
    .unsettled = weir__base_unsettled,
    .lateness = weir__base_lateness,
    .add = weir__bound_add,
    .show = weir__refuse_show,
    .remove = weir__refuse_remove,
    .reschedule = weir__refuse_reschedule,
    .requeue = weir__refuse_count,
    .purge = weir__bound_purge,
    .forget = weir__refuse_count,
    .dead = weir__refuse_dead,
    .list = weir__bound_list,
    .pause = weir__refuse_pause,
    .set = weir__refuse_set,
    .settings = weir__refuse_settings,
    .kind = weir__refuse_kind,
    .stats = weir__bound_stats,
    .topics = weir__refuse_topics,
    .flush = weir__base_flush,
    .close = weir__base_close,
};

static const struct weir__kept bounded_kept = {
    .renew = &weir__script_bounded_renew,
    .write_renewals = weir__bound_write_renewals,
};

static const struct weir__base_kind bounded_kind = {
    .size = sizeof(struct weir__bounded),
    .topic_size = sizeof(struct weir__bound_topic),
    .ops = &bounded_ops,
    .scripts = weir__scripts,
    .has_wakes = true,
    .kept = &bounded_kept,
    .connected = weir__base_ask_number,
    .flush_topic = flush_topic,
    .numbered = numbered,
    .followed = followed,
    .fail_adds = fail_adds,
    .topic_init = topic_init,
    .topic_fini = topic_fini,
};

int weir__bounded_open(const struct weir__redis_options *options,
                       struct weir__store **ret_store)
{
    struct weir__base *base;
    int rc = weir__base_open(&bounded_kind, options, &base);

    if (rc == WEIR_OK)
        *ret_store = &base->port;
    return rc;
}

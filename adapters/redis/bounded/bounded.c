/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/text.h"

/* The rules of bounded topics as a table, and a topic from opening to end. */

static struct weir__bounded *shared_of(const struct weir__redis *store)
{
    return (struct weir__bounded *)weir__redis_shared(
        store, &weir__bounded_kind); /* its first member */
}

struct weir__bounded_topic *
weir__bounded_topic_of(struct weir__store_topic *topic)
{
    WEIR_ASSERT(topic->kind == &weir__bounded_kind);
    return (struct weir__bounded_topic *)topic; /* its first member */
}

void weir__bounded_group_key(struct weir__buf *buf,
                             const struct weir__bounded_topic *topic, char list,
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

void weir__bounded_report_drop(const struct weir__bounded_topic *topic,
                               struct weir_slice group, enum weir_drop reason,
                               uint64_t count)
{
    const struct weir__redis *store = topic->base.store;
    struct weir__dropped dropped = {
        .topic = weir__slice_str(topic->base.name),
        .group =
            weir__group_is_sound(group) ? group : weir__slice_str("unreadable"),
        .reason = reason,
        .count = count,
    };

    if (store->events.dropped != NULL && count > 0 && !store->is_closed)
        store->events.dropped(&dropped, store->options.arg);
}

/* --- topics ------------------------------------------------------------- */

static void topic_fini(struct weir__store_topic *base)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);

    while (base->leases != NULL)
        weir__bounded_lease_free((struct weir__bounded_lease *)base->leases);
    WEIR_ASSERT(topic->adds == NULL);
    weir__buf_fini(&topic->offers);
}

static void topic_init(struct weir__store_topic *base)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);

    topic->shared = shared_of(base->store);
    topic->spent_end = &topic->spent;
    topic->adds_end = &topic->adds;
}

/* Jobs of a topic with lease = none are never lost. */
static bool is_unleased(const struct weir__store_topic *topic)
{
    return topic->options->lease == WEIR__OPTION_NONE;
}

static int claim(struct weir__store_topic *topic,
                 const struct weir__claim *wanted)
{
    (void)wanted; /* noted with the topic */
    weir__bounded_topic_of(topic)->tries = 0;
    weir__topic_mark(topic);
    return WEIR_OK;
}

/* --- what the store asks for -------------------------------------------- */

/* Settle before claim: what came back frees its group first. */
static void flush(struct weir__store_topic *base)
{
    struct weir__bounded_topic *topic = weir__bounded_topic_of(base);

    if ((topic->adds != NULL || base->wants_claim) &&
        !weir__topic_register(base))
        return;
    weir__bounded_flush_adds(topic);
    weir__bounded_flush_settles(topic);
    weir__bounded_flush_claim(topic);
}

static size_t collected(const struct weir__store_topic *base)
{
    const struct weir__bounded_topic *topic =
        (const struct weir__bounded_topic *)base; /* its first member */

    return topic->shared->collected;
}

const struct weir__kind weir__bounded_kind = {
    .name = "bounded",
    .topic_size = sizeof(struct weir__bounded_topic),
    .shared_size = sizeof(struct weir__bounded),
    .topic_init = topic_init,
    .topic_fini = topic_fini,
    .flush = flush,
    .serve = weir__bounded_serve,
    .followed = weir__bounded_followed,
    .fail_adds = weir__bounded_fail_adds,
    .claim = claim,
    .settle = weir__bounded_settle,
    .start = weir__bounded_start,
    .renew = weir__bounded_renew,
    .is_unleased = is_unleased,
    .collected = collected,
    .add = weir__bounded_add,
    .purge = weir__bounded_purge,
    .list = weir__bounded_list,
    .stats = weir__topic_stats,
    .stats_script = &weir__script_bounded_stats,
    .stats_keys = "meta lease rot hot",
    .stats_key_count = 4,
};

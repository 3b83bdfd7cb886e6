/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/base.h"

#include <string.h>

#include "adapters/redis/store/keeper.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

struct weir__base *weir__base_of(struct weir__store *store,
                                 const struct weir__base_kind *kind)
{
    struct weir__base *base = (struct weir__base *)store; /* first member */

    WEIR_ASSERT(base != NULL && base->kind == kind);
    return base;
}

/* The port knows topics by name only. */
struct weir__base_topic *weir__base_topic_of(struct weir__store_topic *topic,
                                             const struct weir__base_kind *kind)
{
    struct weir__base_topic *base = (void *)topic;

    WEIR_ASSERT(base != NULL && base->base->kind == kind);
    return base;
}

int64_t weir__base_now_ns(const struct weir__base *base)
{
    return base->options.clock(base->options.clock_arg);
}

int64_t weir__base_server_ms(const struct weir__base *base)
{
    return base->ahead_ms + weir__base_now_ns(base) / 1000000;
}

/* --- topics ------------------------------------------------------------- */

static size_t bucket_of(struct weir_slice name)
{
    return weir__slice_hash(name) & (WEIR__TOPIC_BUCKETS - 1);
}

struct weir__base_topic *weir__base_find(const struct weir__base *base,
                                         struct weir_slice name)
{
    struct weir__base_topic *topic = base->buckets[bucket_of(name)];

    while (topic != NULL &&
           !weir__slice_equal(weir__slice_str(topic->name), name))
        topic = topic->next_in_bucket;
    return topic;
}

static struct weir__base_topic *topic_new(struct weir__base *base,
                                          struct weir_slice name)
{
    struct weir__base_topic *topic = weir__mem_new(base->kind->topic_size);
    struct weir__base_topic **bucket = &base->buckets[bucket_of(name)];

    if (topic == NULL)
        return NULL;
    topic->base = base;
    weir__base_topic_name(topic, name);
    topic->refused_ns = INT64_MIN;
    for (size_t i = 0; i < WEIR__LOSSES; i++)
        topic->losses[i].ns = INT64_MIN;
    base->kind->topic_init(topic);
    topic->next_in_bucket = *bucket;
    *bucket = topic;
    topic->next = base->topics;
    base->topics = topic;
    return topic;
}

struct weir__base_topic *weir__base_topic_open(struct weir__base *base,
                                               struct weir_slice name)
{
    struct weir__base_topic *topic = weir__base_find(base, name);

    WEIR_ASSERT(name.len > 0 && name.len <= WEIR_MAX_TOPIC);
    return topic == NULL ? topic_new(base, name) : topic;
}

void weir__base_mark(struct weir__base_topic *topic)
{
    if (topic->is_dirty)
        return;
    topic->is_dirty = true;
    topic->next_dirty = topic->base->dirty;
    topic->base->dirty = topic;
}

int weir__base_check_claimed(const struct weir__claimed *claimed, size_t room)
{
    if (claimed->count > room || (claimed->is_paused && claimed->count > 0))
        return WEIR_ESERVER;
    return WEIR_OK;
}

int weir__base_claim(struct weir__base_topic *topic,
                     const struct weir__claim *claim)
{
    if (topic->base->is_closed)
        return WEIR_ECANCELED;
    if (topic->base->keeper != NULL)
        weir__keeper_note(topic->base->keeper, claim->lease_ms);
    topic->claim = *claim;
    topic->wants_claim = true;
    weir__base_mark(topic);
    return WEIR_OK;
}

size_t weir__base_unsettled(const struct weir__store_topic *topic)
{
    return ((const struct weir__base_topic *)(const void *)topic)->unsettled;
}

/* --- flush and close ---------------------------------------------------- */

void weir__base_flush(struct weir__store *store)
{
    struct weir__base *base = (struct weir__base *)store; /* first member */
    struct weir__base_topic *topic = base->dirty;

    WEIR_ASSERT(base->kind != NULL);
    base->dirty = NULL;
    while (topic != NULL) {
        struct weir__base_topic *next = topic->next_dirty;

        topic->is_dirty = false;
        weir__base_log_losses(topic, false);
        base->kind->flush_topic(topic);
        topic = next;
    }
    weir__conn_flush(base->commands);
}

static void destroy(struct weir__base *base)
{
    const struct weir__base_kind *kind = base->kind;

    WEIR_ASSERT(base->failed == NULL);
    while (base->topics != NULL) {
        struct weir__base_topic *topic = base->topics;

        base->topics = topic->next;
        weir__base_log_losses(topic, true);
        if (kind->topic_fini != NULL)
            kind->topic_fini(topic);
        weir__mem_free(topic);
    }
    if (kind->fini != NULL)
        kind->fini(base);
    weir__mem_free(base->seats.free);
    base->kind = NULL;
    weir__mem_free(base);
}

void weir__base_close(struct weir__store *store)
{
    struct weir__base *base = (struct weir__base *)store; /* first member */

    WEIR_ASSERT(base->kind != NULL && !base->is_closed);
    WEIR_ASSERT(base->options.depth == NULL || *base->options.depth == 0);
    if (base->kind->leaving != NULL) {
        base->kind->leaving(base);
        weir__conn_flush(base->commands);
    }
    base->is_closed = true;
    weir__keeper_close(base->keeper);
    base->keeper = NULL;
    if (base->kind->closing != NULL)
        base->kind->closing(base);
    weir__conn_close(base->wakes);
    weir__conn_close(base->commands);
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next)
        base->kind->fail_adds(topic, WEIR_ECANCELED);
    weir__base_ask_fini(base);
    destroy(base);
}

int weir__base_open(const struct weir__base_kind *kind,
                    const struct weir__redis_options *options,
                    struct weir__base **ret_base)
{
    struct weir__base *base = weir__mem_new(kind->size);
    int rc;

    if (base == NULL)
        return WEIR_ENOMEM;
    WEIR_ASSERT(strlen(options->worker) < sizeof(base->worker));
    base->port.ops = kind->ops;
    base->kind = kind;
    base->options = *options;
    base->url = *options->url;
    base->options.url = &base->url;
    base->events = *options->events;
    base->options.events = &base->events;
    memcpy(base->worker, options->worker, strlen(options->worker) + 1);
    base->options.worker = base->worker;
    base->connections = 1; /* so that 0 is none */
    weir__base_ask_init(base);
    rc = weir__base_connect(base);
    if (rc != WEIR_OK) {
        weir__conn_close(base->commands);
        destroy(base);
        return rc;
    }
    *ret_base = base;
    return WEIR_OK;
}

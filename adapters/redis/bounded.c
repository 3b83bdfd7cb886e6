/* SPDX-License-Identifier: MIT */
#include "adapters/redis/bounded.h"

#include <string.h>

#include "adapters/redis/bounded_private.h"
#include "adapters/redis/refuse.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Life of the store and of its topics. */

enum { BOUNDED_MAGIC = 0x626f756e, TOPIC_MAGIC = 0x62746f70 };

struct weir__bounded *weir__bounded_of(struct weir__store *base)
{
    struct weir__bounded *store = (struct weir__bounded *)base; /* first */

    WEIR_ASSERT(store != NULL && store->magic == BOUNDED_MAGIC);
    return store;
}

/* The port knows topics by name only: each kind of store has its own. */
struct weir__bound_topic *weir__bound_topic_of(struct weir__store_topic *base)
{
    struct weir__bound_topic *topic = (void *)base;

    WEIR_ASSERT(topic != NULL && topic->magic == TOPIC_MAGIC);
    return topic;
}

int64_t weir__bounded_now_ns(const struct weir__bounded *store)
{
    return store->options.clock(store->options.clock_arg);
}

/* --- topics ------------------------------------------------------------- */

static void topic_free(struct weir__bound_topic *topic)
{
    while (topic->lots != NULL)
        weir__lot_free(topic->lots);
    while (topic->spent != NULL) {
        struct weir__lot *lot = topic->spent;

        topic->spent = lot->next_spent;
        weir__lot_free(lot);
    }
    WEIR_ASSERT(topic->adds == NULL);
    weir__buf_fini(&topic->offers);
    topic->magic = 0;
    weir__mem_free(topic);
}

struct weir__bound_topic *weir__bound_find(const struct weir__bounded *store,
                                           struct weir_slice name)
{
    struct weir__bound_topic *topic = store->topics;

    while (topic != NULL &&
           !weir__slice_equal(weir__slice_str(topic->name), name))
        topic = topic->next;
    return topic;
}

static struct weir__bound_topic *topic_new(struct weir__bounded *store,
                                           struct weir_slice name)
{
    struct weir__bound_topic *topic = weir__mem_new(sizeof(*topic));

    if (topic == NULL)
        return NULL;
    topic->magic = TOPIC_MAGIC;
    topic->store = store;
    memcpy(topic->name, name.ptr, name.len);
    topic->spent_end = &topic->spent;
    topic->adds_end = &topic->adds;
    topic->error_ns = INT64_MIN;
    topic->next = store->topics;
    store->topics = topic;
    return topic;
}

static int topic_open(struct weir__store *base,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__bounded *store = weir__bounded_of(base);
    struct weir__bound_topic *topic = weir__bound_find(store, options->name);

    WEIR_ASSERT(options->name.len > 0 && options->name.len <= WEIR_MAX_TOPIC);
    if (topic == NULL)
        topic = topic_new(store, options->name);
    if (topic == NULL)
        return WEIR_ENOMEM;
    if (options->bounded.length > 0) /* requests name none */
        topic->options = options->bounded;
    *ret_topic = (void *)topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *base, void *user)
{
    weir__bound_topic_of(base)->user = user;
}

void weir__bound_mark(struct weir__bound_topic *topic)
{
    if (topic->is_dirty)
        return;
    topic->is_dirty = true;
    topic->next_dirty = topic->store->dirty;
    topic->store->dirty = topic;
}

static int topic_claim(struct weir__store_topic *base,
                       const struct weir__claim *claim)
{
    struct weir__bound_topic *topic = weir__bound_topic_of(base);

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    topic->claim = *claim;
    topic->wants_claim = true;
    topic->tries = 0;
    weir__bound_mark(topic);
    return WEIR_OK;
}

static size_t topic_unsettled(const struct weir__store_topic *base)
{
    const struct weir__bound_topic *topic = (const void *)base;

    WEIR_ASSERT(topic->magic == TOPIC_MAGIC);
    return topic->unsettled;
}

/* --- flush and close ---------------------------------------------------- */

/* Settle before claim: what came back frees its group first. */
static void flush_topic(struct weir__bound_topic *topic)
{
    if (topic->adds != NULL || topic->wants_claim)
        weir__bound_announce(topic);
    weir__bound_flush_adds(topic);
    weir__bound_flush_settles(topic);
    weir__bound_flush_claim(topic);
}

static void flush(struct weir__store *base)
{
    struct weir__bounded *store = weir__bounded_of(base);
    struct weir__bound_topic *topic = store->dirty;

    store->dirty = NULL;
    while (topic != NULL) {
        struct weir__bound_topic *next = topic->next_dirty;

        topic->is_dirty = false;
        flush_topic(topic);
        topic = next;
    }
    weir__conn_flush(store->commands);
}

static void destroy(struct weir__bounded *store)
{
    WEIR_ASSERT(store->failed == NULL);
    while (store->topics != NULL) {
        struct weir__bound_topic *topic = store->topics;

        store->topics = topic->next;
        topic_free(topic);
    }
    weir__mem_free(store->seats.free);
    store->magic = 0;
    weir__mem_free(store);
}

static void close_store(struct weir__store *base)
{
    struct weir__bounded *store = weir__bounded_of(base);

    WEIR_ASSERT(!store->is_closed);
    WEIR_ASSERT(store->options.depth == NULL || *store->options.depth == 0);
    store->is_closed = true;
    weir__conn_close(store->wakes);
    weir__conn_close(store->commands);
    for (struct weir__bound_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        weir__bound_fail_adds(topic, WEIR_ECANCELED);
    ev_timer_stop(store->options.loop, &store->failing);
    weir__bounded_fail_all(store);
    destroy(store);
}

/* --- opening ------------------------------------------------------------ */

static const struct weir__store_ops bounded_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .settle = weir__bound_settle,
    .start = weir__bound_start,
    .renew = weir__bound_renew,
    .unsettled = topic_unsettled,
    .lateness = weir__bound_lateness,
    .add = weir__bound_add,
    .show = weir__refuse_show,
    .remove = weir__refuse_remove,
    .reschedule = weir__refuse_reschedule,
    .requeue = weir__refuse_count,
    .purge = weir__bound_purge,
    .forget = weir__refuse_count,
    .dead = weir__refuse_dead,
    .list = weir__refuse_list,
    .pause = weir__refuse_pause,
    .set = weir__refuse_set,
    .settings = weir__refuse_settings,
    .kind = weir__refuse_kind,
    .stats = weir__bound_stats,
    .topics = weir__refuse_topics,
    .flush = flush,
    .close = close_store,
};

int weir__bounded_open(const struct weir__redis_options *options,
                       struct weir__store **ret_store)
{
    struct weir__bounded *store = weir__mem_new(sizeof(*store));
    int rc;

    if (store == NULL)
        return WEIR_ENOMEM;
    WEIR_ASSERT(strlen(options->worker) < sizeof(store->worker));
    store->base.ops = &bounded_ops;
    store->magic = BOUNDED_MAGIC;
    store->options = *options;
    store->url = *options->url;
    store->options.url = &store->url;
    store->events = *options->events;
    store->options.events = &store->events;
    memcpy(store->worker, options->worker, strlen(options->worker) + 1);
    store->options.worker = store->worker;
    store->connections = 1; /* so that 0 is none */
    weir__bounded_failing_init(store);
    rc = weir__bounded_connect(store);
    if (rc != WEIR_OK) {
        weir__conn_close(store->commands);
        destroy(store);
        return rc;
    }
    *ret_store = &store->base;
    return WEIR_OK;
}

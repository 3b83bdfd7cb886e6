/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/store.h"

#include <string.h>

#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/confirm.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/sentinel.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Life of the store and of its topics, and the flush at the end of a turn. */

int64_t weir__redis_now_ns(const struct weir__redis *store)
{
    return store->options.clock(store->options.clock_arg);
}

int64_t weir__topic_server_ms(const struct weir__store_topic *topic)
{
    return topic->place->server->ahead_ms +
           weir__redis_now_ns(topic->store) / 1000000;
}

/* --- topics ------------------------------------------------------------- */

enum { CALM_MS = 1000 }; /* at least, before claims go on */

static size_t number_of(const struct weir__kind *kind)
{
    size_t number = 0;

    while (weir__kinds[number] != kind) {
        number++;
        WEIR_ASSERT(number < WEIR__KINDS);
    }
    return number;
}

struct weir__shared *weir__redis_shared(const struct weir__redis *store,
                                        const struct weir__kind *kind)
{
    return store->shared[number_of(kind)];
}

static size_t bucket_of(struct weir_slice name)
{
    return weir__slice_hash(name) & (WEIR__TOPIC_BUCKETS - 1);
}

struct weir__store_topic *weir__redis_find(struct weir__redis *store,
                                           struct weir_slice name)
{
    struct weir__store_topic *topic = store->found;

    if (topic != NULL && weir__slice_equal(weir__slice_str(topic->name), name))
        return topic;
    topic = store->buckets[bucket_of(name)];
    while (topic != NULL &&
           !weir__slice_equal(weir__slice_str(topic->name), name))
        topic = topic->next_in_bucket;
    store->found = topic;
    return topic;
}

/* False when out of memory. */
static bool share(struct weir__redis *store, const struct weir__kind *kind)
{
    struct weir__shared **shared = &store->shared[number_of(kind)];

    WEIR_ASSERT(kind->shared_size >= sizeof(**shared));
    if (*shared != NULL)
        return true;
    *shared = weir__mem_new(kind->shared_size);
    if (*shared == NULL)
        return false;
    (*shared)->store = store;
    if (kind->shared_init != NULL)
        kind->shared_init(*shared);
    return true;
}

static struct weir__store_topic *topic_new(struct weir__redis *store,
                                           const struct weir__kind *kind,
                                           struct weir_slice name)
{
    struct weir__store_topic **last = &store->buckets[bucket_of(name)];
    struct weir__store_topic *topic = NULL;
    struct weir__place *place = weir__place_of_topic(store, name);

    if (place != NULL && share(store, kind))
        topic = weir__mem_new(kind->topic_size);
    if (topic == NULL)
        return NULL;
    topic->store = store;
    topic->place = place;
    topic->kind = kind;
    topic->options = &weir__options_default;
    weir__topic_name(topic, name);
    for (size_t i = 0; i < WEIR__LOSSES; i++)
        topic->losses[i].ns = INT64_MIN;
    kind->topic_init(topic);
    while (*last != NULL)
        last = &(*last)->next_in_bucket;
    *last = topic;
    weir__keeper_shut(store->keeper);
    topic->next = store->topics;
    store->topics = topic;
    weir__keeper_reopen(store->keeper);
    store->topic_count++;
    return topic;
}

void weir__topic_put_first(struct weir__store_topic *topic)
{
    struct weir__store_topic **bucket =
        &topic->store->buckets[bucket_of(weir__slice_str(topic->name))];
    struct weir__store_topic **at = bucket;

    while (*at != topic)
        at = &(*at)->next_in_bucket;
    *at = topic->next_in_bucket;
    topic->next_in_bucket = *bucket;
    *bucket = topic;
    topic->store->found = topic;
}

struct weir__store_topic *weir__topic_open(struct weir__redis *store,
                                           const struct weir__kind *kind,
                                           struct weir_slice name)
{
    struct weir__store_topic *topic = store->buckets[bucket_of(name)];

    WEIR_ASSERT(name.len > 0 && name.len <= WEIR_MAX_TOPIC);
    while (topic != NULL &&
           (topic->kind != kind ||
            !weir__slice_equal(weir__slice_str(topic->name), name)))
        topic = topic->next_in_bucket;
    return topic == NULL ? topic_new(store, kind, name) : topic;
}

void weir__topic_mark(struct weir__store_topic *topic)
{
    if (topic->is_dirty)
        return;
    topic->is_dirty = true;
    topic->next_dirty = NULL;
    *topic->store->dirty_end = topic;
    topic->store->dirty_end = &topic->next_dirty;
}

void weir__topic_calm(struct weir__store_topic *topic)
{
    int64_t lease_ms = topic->claim.lease_ms;
    int64_t calm_ms = lease_ms / 2 > CALM_MS ? lease_ms / 2 : CALM_MS;

    topic->claims_from_ns =
        weir__redis_now_ns(topic->store) + calm_ms * INT64_C(1000000);
    (void)weir__leases_renew(topic, lease_ms);
}

void weir__topic_settled(struct weir__store_topic *topic, size_t count,
                         size_t refused)
{
    WEIR_ASSERT(topic->unsettled >= count && refused <= count);
    topic->unsettled -= count;
    if (refused > 0 && !topic->store->is_closed)
        weir__topic_log_loss(topic, WEIR__LOSS_VERDICTS, refused,
                             (struct weir_slice){0});
    if (topic->user != NULL && count > 0)
        topic->store->events.settled(topic->user, count, refused);
}

void weir__topic_evicted(const struct weir__store_topic *topic, int64_t count)
{
    const struct weir__store_events *events = &topic->store->events;

    if (topic->user != NULL && events->evicted != NULL && count > 0)
        events->evicted(topic->user, (size_t)count);
}

static void on_forgone(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__forgo_request *forgone =
        (struct weir__forgo_request *)request; /* its first member */
    size_t count = forgone->count;

    (void)code;
    (void)reply;
    forgone->count = 0;
    weir__topic_settled(forgone->topic, count, count);
}

void weir__topic_forgo(struct weir__store_topic *topic, size_t count)
{
    struct weir__forgo_request *forgone = &topic->forgone;
    bool is_queued = forgone->count > 0;

    forgone->count += count;
    if (is_queued || count == 0)
        return;
    forgone->request.store = topic->store;
    forgone->request.done = on_forgone;
    forgone->topic = topic;
    weir__redis_fail(&forgone->request, WEIR_ECANCELED);
}

int weir__claimed_check(const struct weir__claimed *claimed, size_t room)
{
    if (claimed->count > room || (claimed->is_paused && claimed->count > 0))
        return WEIR_ESERVER;
    return WEIR_OK;
}

/* --- flush and close ---------------------------------------------------- */

/* The server has enough to do. What topics have to say goes on gathering, so
 * that it is said in fewer calls; an answer flushes them. One that speaks alone
 * has nobody to leave room for. */
static bool is_put_off(const struct weir__store_topic *topic)
{
    const struct weir__redis *store = topic->store;

    return !topic->is_urgent &&
           (topic != store->flushed || store->dirty != NULL ||
            topic->next_dirty != NULL) &&
           weir__conn_is_busy(topic->place->server->commands);
}

/* The first of those that are dirty; none is any more. */
static struct weir__store_topic *take_dirty(struct weir__redis *store)
{
    struct weir__store_topic *topic = store->dirty;

    store->dirty = NULL;
    store->dirty_end = &store->dirty;
    return topic;
}

/* Returns how many topics were put off. */
static size_t flush_topics(struct weir__redis *store)
{
    struct weir__store_topic *topic = take_dirty(store), *next;
    size_t count = 0;

    for (; topic != NULL; topic = next) {
        next = topic->next_dirty;
        topic->is_dirty = false;
        if (is_put_off(topic)) {
            weir__topic_mark(topic);
            count++;
            continue;
        }
        topic->is_urgent = false;
        store->flushed = topic;
        weir__topic_log_losses(topic, false);
        weir__topic_flush_listed(topic);
        topic->kind->flush(topic);
    }
    return count;
}

void weir__redis_flush(struct weir__store *port)
{
    struct weir__redis *store = (struct weir__redis *)port; /* first member */
    size_t put_off = flush_topics(store);

    for (size_t i = 0; i < WEIR__KINDS; i++)
        if (store->shared[i] != NULL && weir__kinds[i]->flush_shared != NULL)
            weir__kinds[i]->flush_shared(store->shared[i]);
    weir__link_flush(store);
    if (store->dirty != NULL && put_off == 0) /* no memory for a part of it */
        weir__redis_flush_again(store);
    weir__keeper_turn(store->keeper);
}

static void free_topics(struct weir__redis *store)
{
    while (store->topics != NULL) {
        struct weir__store_topic *topic = store->topics;

        store->topics = topic->next;
        weir__topic_log_losses(topic, true);
        if (topic->kind->topic_fini != NULL)
            topic->kind->topic_fini(topic);
        WEIR_ASSERT(topic->leases == NULL);
        weir__mem_free(topic);
    }
}

static void destroy(struct weir__redis *store)
{
    WEIR_ASSERT(store->failed == NULL);
    free_topics(store);
    for (size_t i = 0; i < WEIR__KINDS; i++) {
        if (store->shared[i] != NULL && weir__kinds[i]->shared_fini != NULL)
            weir__kinds[i]->shared_fini(store->shared[i]);
        weir__mem_free(store->shared[i]);
    }
    weir__places_fini(store);
    weir__link_fini(store);
    weir__cluster_fini(store);
    weir__sentinels_close(store->sentinels);
    weir__mem_free(store->call_slots.free);
    weir__mem_free(store);
}

void weir__topic_write_sleeper(struct weir__buf *buf,
                               const struct weir__store_topic *topic)
{
    const char *worker = topic->place->server->worker;
    const char *groups = topic->sleeps_for == NULL ? "" : topic->sleeps_for;
    size_t len = strlen(worker), more = strlen(groups);

    weir__resp_begin(buf, len + (more > 0) + more);
    weir__buf_append(buf, worker, len);
    weir__buf_append(buf, " ", more > 0);
    weir__buf_append(buf, groups, more);
    weir__resp_end(buf);
}

void weir__topic_leave_idle(struct weir__store_topic *topic)
{
    struct weir__buf bytes = {0};

    if (!topic->may_sleep)
        return;
    topic->may_sleep = topic->wants_claim; /* that one is sent afterwards */
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "ZREM");
    weir__prefix_key(&bytes, &topic->prefix, "idle");
    weir__topic_write_sleeper(&bytes, topic);
    weir__place_send(topic->place, &bytes, NULL, WEIR__SEND_ONCE, NULL);
}

static void leave_topics(struct weir__redis *store)
{
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next) {
        if (topic->kind->leaving != NULL)
            topic->kind->leaving(topic);
        weir__topic_leave_idle(topic);
    }
    weir__presence_leave(store);
    weir__link_flush(store);
}

void weir__redis_close(struct weir__store *port)
{
    struct weir__redis *store = (struct weir__redis *)port; /* first member */

    WEIR_ASSERT(!store->is_closed);
    WEIR_ASSERT(store->options.depth == NULL || *store->options.depth == 0);
    leave_topics(store);
    store->is_closed = true;
    weir__keeper_close(store->keeper);
    store->keeper = NULL;
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        if (topic->kind->closing != NULL)
            topic->kind->closing(topic);
    for (struct weir__server *server = store->servers; server != NULL;
         server = server->next)
        weir__confirms_close(server);
    weir__places_release(store);
    weir__link_close(store);
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        topic->kind->fail_adds(topic, WEIR_ECANCELED);
    weir__redis_requests_fini(store);
    destroy(store);
}

int weir__redis_open(const struct weir__redis_options *options,
                     struct weir__store **ret_store)
{
    struct weir__redis *store = weir__mem_new(sizeof(*store));
    int rc;

    if (store == NULL)
        return WEIR_ENOMEM;
    WEIR_ASSERT(strlen(options->worker) < sizeof(store->worker));
    store->port.ops = &weir__redis_ops;
    store->options = *options;
    store->url = *options->url;
    store->options.url = &store->url;
    store->events = *options->events;
    store->options.events = &store->events;
    memcpy(store->worker, options->worker, strlen(options->worker) + 1);
    store->options.worker = store->worker;
    store->connections = 1; /* so that 0 is none */
    store->dirty_end = &store->dirty;
    weir__redis_requests_init(store);
    weir__presence_init(store);
    rc = weir__redis_connect(store);
    if (rc != WEIR_OK) {
        weir__link_close(store);
        destroy(store);
        return rc;
    }
    *ret_store = &store->port;
    return WEIR_OK;
}

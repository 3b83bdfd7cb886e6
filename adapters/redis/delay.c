/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay.h"

#include <string.h>

#include "adapters/redis/delay_private.h"
#include "adapters/redis/delay_wire.h"
#include "adapters/redis/keeper.h"
#include "core/assert.h"
#include "core/chaos.h"
#include "core/mem.h"
#include "core/text.h"

enum { DELAY_MAGIC = 0x64656c61 };

struct weir__delay *weir__delay_of(struct weir__store *store)
{
    /* The port is the first member. */
    struct weir__delay *delay = (struct weir__delay *)store;

    WEIR_ASSERT(delay != NULL && delay->magic == DELAY_MAGIC);
    return delay;
}

int64_t weir__delay_now_ns(const struct weir__delay *store)
{
    return store->options.clock(store->options.clock_arg);
}

/* --- life --------------------------------------------------------------- */

static void topic_free(struct weir__store_topic *topic)
{
    while (topic->leases != NULL)
        weir__lease_free(topic->leases);
    while (topic->spent_leases != NULL) {
        struct weir__lease *lease = topic->spent_leases;

        topic->spent_leases = lease->next_spent;
        weir__lease_free(lease);
    }
    weir__items_fini(&topic->endings);
    WEIR_ASSERT(topic->adds == NULL);
    weir__mem_free(topic);
}

static void destroy(struct weir__delay *store)
{
    WEIR_ASSERT(store->failed == NULL);
    for (size_t i = 0; i < WEIR__TOPIC_BUCKETS; i++) {
        while (store->buckets[i] != NULL) {
            struct weir__store_topic *topic = store->buckets[i];

            store->buckets[i] = topic->next_in_bucket;
            topic_free(topic);
        }
    }
    for (size_t i = 0; i < 4; i++)
        weir__buf_fini(&store->scratch[i]);
    weir__mem_free(store->parcels.list);
    weir__mem_free(store->seats.free);
    store->magic = 0;
    weir__mem_free(store);
}

/* --- sending ------------------------------------------------------------ */

static void answered(int code, const struct redisReply *reply, void *arg)
{
    struct weir__ask *ask = arg;

    WEIR_ASSERT(ask->store->magic == DELAY_MAGIC);
    WEIR__STEP("answer");
    ask->done(ask, code, reply);
}

static void fail_all(struct weir__delay *store)
{
    while (store->failed != NULL) {
        struct weir__ask *ask = store->failed;

        store->failed = ask->next;
        if (store->failed == NULL)
            store->failed_end = &store->failed;
        ask->done(ask, ask->code, NULL);
    }
}

static void on_failing(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__delay *store = timer->data;
    int none = 0, *depth = store->options.depth;

    (void)loop; /* the store's own */
    (void)events;
    if (depth == NULL)
        depth = &none;
    (*depth)++; /* the owner does not close us from in here */
    fail_all(store);
    (*depth)--;
}

void weir__delay_fail(struct weir__ask *ask, int code)
{
    struct weir__delay *store = ask->store;

    ask->code = code;
    ask->next = NULL;
    *store->failed_end = ask;
    store->failed_end = &ask->next;
    if (!store->is_closed && !ev_is_active(&store->failing))
        ev_timer_start(store->options.loop, &store->failing);
}

void weir__delay_send(struct weir__delay *store, struct weir__buf *bytes,
                      const struct weir__script *script, unsigned flags,
                      struct weir__ask *ask)
{
    int rc = WEIR_ECANCELED;

    if (ask != NULL)
        ask->store = store;
    if (store->is_closed)
        weir__buf_fini(bytes);
    else
        rc = weir__conn_send(store->commands, bytes, script, flags,
                             ask == NULL ? NULL : answered, ask);
    if (rc != WEIR_OK && ask != NULL)
        weir__delay_fail(ask, rc);
}

/* --- topics ------------------------------------------------------------- */

struct weir__store_topic *weir__topic_find(struct weir__delay *store,
                                           struct weir_slice name)
{
    struct weir__store_topic *topic =
        store->buckets[weir__slice_hash(name) & (WEIR__TOPIC_BUCKETS - 1)];

    while (topic != NULL &&
           !weir__slice_equal(weir__slice_str(topic->name), name))
        topic = topic->next_in_bucket;
    return topic;
}

static int topic_open(struct weir__store *base,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__delay *store = weir__delay_of(base);
    struct weir__store_topic *topic = weir__topic_find(store, options->name);
    size_t bucket = weir__slice_hash(options->name) & (WEIR__TOPIC_BUCKETS - 1);

    bool was_in;

    WEIR_ASSERT(options->name.len > 0 && options->name.len <= WEIR_MAX_TOPIC);
    if (topic == NULL) {
        topic = weir__mem_new(sizeof(*topic));
        if (topic == NULL)
            return WEIR_ENOMEM;
        topic->store = store;
        weir__topic_name(topic, options->name);
        topic->touched_end = &topic->touched;
        topic->refused_ns = INT64_MIN;
        was_in = weir__keeper_shut(store->keeper);
        topic->next_in_bucket = store->buckets[bucket];
        store->buckets[bucket] = topic;
        weir__keeper_reopen(store->keeper, was_in);
    }
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

/* Who listens claims: leases have to be kept while handlers run. */
static void topic_listen(struct weir__store_topic *topic, void *user)
{
    struct weir__delay *store = topic->store;

    topic->user = user;
    if (user == NULL || store->keeper != NULL)
        return;
    if (weir__keeper_open(store, &store->url, &store->keeper) < 0)
        weir__log(
            store->options.log, WEIR_LEVEL_WARN,
            "redis: no thread to keep leases: those of jobs whose handler "
            "holds the loop run out");
}

static void topic_enter(struct weir__store_topic *topic, struct weir__run *run,
                        int64_t deadline_ns)
{
    if (topic->store->keeper != NULL)
        weir__keeper_enter(topic->store->keeper, topic, run, deadline_ns);
}

static bool topic_leave(struct weir__store_topic *topic, struct weir__run *run)
{
    (void)run; /* the one that entered */
    return topic->store->keeper != NULL &&
           weir__keeper_leave(topic->store->keeper);
}

static int64_t topic_kept_ns(const struct weir__store_topic *topic)
{
    return topic->store->keeper == NULL
               ? 0
               : weir__keeper_kept_ns(topic->store->keeper);
}

static void topic_settle(struct weir__store_topic *topic, struct weir__run *run)
{
    struct weir__keeper *keeper = topic->store->keeper;
    bool was_in = weir__keeper_shut(keeper);

    weir__topic_settle(topic, run);
    weir__keeper_reopen(keeper, was_in);
}

void weir__topic_mark(struct weir__store_topic *topic)
{
    if (topic->is_dirty)
        return;
    topic->is_dirty = true;
    topic->next_dirty = topic->store->dirty;
    topic->store->dirty = topic;
}

static int topic_claim(struct weir__store_topic *topic,
                       const struct weir__claim *claim)
{
    WEIR_ASSERT(claim->room <= WEIR__CALL_SLOTS);
    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    topic->claim = *claim;
    if (topic->store->keeper != NULL)
        weir__keeper_note(topic->store->keeper, claim->lease_ms);
    topic->wants_claim = true;
    weir__topic_mark(topic);
    return WEIR_OK;
}

static size_t topic_unsettled(const struct weir__store_topic *topic)
{
    return topic->unsettled;
}

/* --- flush and close ---------------------------------------------------- */

void weir__topic_announce(struct weir__store_topic *topic)
{
    struct weir__delay *store = topic->store;
    struct weir__buf bytes = {0};

    if (topic->announced == store->connections)
        return;
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_str(&bytes, topic->name);
    weir__delay_send(store, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
    topic->announced = store->connections;
}

/* New packs need the producer number in their names: of jobs added, and of
 * retries and snoozes. */
static bool wants_number(const struct weir__store_topic *topic)
{
    return !topic->store->has_number &&
           (topic->adds != NULL || topic->endings.count > 0);
}

/* Settle before claim: what was settled makes room on the server first. */
static void flush_topic(struct weir__store_topic *topic)
{
    struct weir__delay *store = topic->store;

    if (topic->adds != NULL || topic->wants_claim)
        weir__topic_announce(topic);
    if (wants_number(topic))
        weir__delay_ask_number(store); /* its answer flushes them */
    weir__topic_flush_adds(topic);
    weir__topic_flush_settles(topic);
    weir__topic_flush_claim(topic);
    if (wants_number(topic) && !store->asks_number)
        weir__topic_mark(topic); /* it could not be asked: a later flush will */
}

static void flush(struct weir__store *base)
{
    struct weir__delay *store = weir__delay_of(base);
    struct weir__store_topic *topic = store->dirty;

    store->dirty = NULL;
    while (topic != NULL) {
        struct weir__store_topic *next = topic->next_dirty;

        topic->is_dirty = false;
        flush_topic(topic);
        topic = next;
    }
    weir__conn_flush(store->commands);
}

static void close_store(struct weir__store *base)
{
    struct weir__delay *store = weir__delay_of(base);

    WEIR_ASSERT(!store->is_closed);
    WEIR_ASSERT(store->options.depth == NULL || *store->options.depth == 0);
    store->is_closed = true;
    weir__keeper_close(store->keeper);
    store->keeper = NULL;
    weir__conn_close(store->wakes);
    weir__conn_close(store->commands);
    weir__delay_fail_collected(store, WEIR_ECANCELED);
    ev_timer_stop(store->options.loop, &store->failing);
    fail_all(store);
    destroy(store);
}

/* --- opening ------------------------------------------------------------ */

static const struct weir__store_ops delay_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .start = weir__topic_start,
    .settle = topic_settle,
    .enter = topic_enter,
    .leave = topic_leave,
    .kept_ns = topic_kept_ns,
    .renew = weir__topic_renew,
    .unsettled = topic_unsettled,
    .lateness = weir__topic_lateness,
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
    .flush = flush,
    .close = close_store,
};

int weir__delay_open(const struct weir__redis_options *options,
                     struct weir__store **ret_store)
{
    struct weir__delay *store = weir__mem_new(sizeof(*store));
    int rc;

    if (store == NULL)
        return WEIR_ENOMEM;
    WEIR_ASSERT(strlen(options->worker) < sizeof(store->worker));
    store->base.ops = &delay_ops;
    store->base.takes_follows = true;
    store->magic = DELAY_MAGIC;
    store->options = *options;
    store->events = *options->events;
    store->url = *options->url;
    store->options.events = &store->events;
    memcpy(store->worker, options->worker, strlen(options->worker) + 1);
    store->options.worker = store->worker;
    store->connections = 1; /* so that 0 is none */
    store->failed_end = &store->failed;
    ev_timer_init(&store->failing, on_failing, 0., 0.);
    store->failing.data = store;
    rc = weir__delay_connect(store);
    store->options.url = NULL; /* was borrowed for the connections */
    if (rc != WEIR_OK) {
        weir__conn_close(store->commands);
        destroy(store);
        return rc;
    }
    *ret_store = &store->base;
    return WEIR_OK;
}

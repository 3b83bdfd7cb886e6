/* SPDX-License-Identifier: MIT */
#include "adapters/redis/feed.h"

#include <string.h>

#include "adapters/redis/feed_private.h"
#include "adapters/redis/refuse.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"

/* Life of the store and of its connection for commands. */

enum { FEED_MAGIC = 0x66656564, TOPIC_MAGIC = 0x66746f70 };

struct weir__feed *weir__feed_of(struct weir__store *base)
{
    struct weir__feed *store = (struct weir__feed *)base; /* first member */

    WEIR_ASSERT(store != NULL && store->magic == FEED_MAGIC);
    return store;
}

/* The port knows topics by name only: each kind of store has its own. */
struct weir__feed_topic *weir__feed_topic_of(struct weir__store_topic *base)
{
    struct weir__feed_topic *topic = (void *)base;

    WEIR_ASSERT(topic != NULL && topic->magic == TOPIC_MAGIC);
    return topic;
}

int64_t weir__feed_now_ns(const struct weir__feed *store)
{
    return store->options.clock(store->options.clock_arg);
}

/* --- sending ------------------------------------------------------------ */

static void answered(int code, const struct redisReply *reply, void *arg)
{
    struct weir__feed_ask *ask = arg;

    WEIR_ASSERT(ask->store->magic == FEED_MAGIC);
    ask->done(ask, code, reply);
}

static void fail_all(struct weir__feed *store)
{
    while (store->failed != NULL) {
        struct weir__feed_ask *ask = store->failed;

        store->failed = ask->next;
        if (store->failed == NULL)
            store->failed_end = &store->failed;
        ask->done(ask, ask->code, NULL);
    }
}

static void on_failing(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__feed *store = timer->data;
    int none = 0, *depth = store->options.depth;

    (void)loop; /* the store's own */
    (void)events;
    if (depth == NULL)
        depth = &none;
    (*depth)++; /* the owner does not close us from in here */
    fail_all(store);
    (*depth)--;
}

void weir__feed_fail(struct weir__feed_ask *ask, int code)
{
    struct weir__feed *store = ask->store;

    ask->code = code;
    ask->next = NULL;
    *store->failed_end = ask;
    store->failed_end = &ask->next;
    if (!store->is_closed && !ev_is_active(&store->failing))
        ev_timer_start(store->options.loop, &store->failing);
}

void weir__feed_send(struct weir__feed *store, struct weir__buf *bytes,
                     const struct weir__script *script, unsigned flags,
                     struct weir__feed_ask *ask)
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
        weir__feed_fail(ask, rc);
}

/* --- topics ------------------------------------------------------------- */

static void topic_free(struct weir__feed_topic *topic)
{
    while (topic->claims != NULL)
        weir__feed_claim_free(topic->claims);
    while (topic->calls != NULL) {
        struct weir__feed_call *call = topic->calls;

        topic->calls = call->next;
        weir__feed_call_free(call);
    }
    WEIR_ASSERT(topic->adds == NULL && topic->waits == NULL);
    topic->magic = 0;
    weir__mem_free(topic);
}

static struct weir__feed_topic *find(const struct weir__feed *store,
                                     struct weir_slice name)
{
    struct weir__feed_topic *topic = store->topics;

    while (topic != NULL &&
           !weir__slice_equal(weir__slice_str(topic->name), name))
        topic = topic->next;
    return topic;
}

static struct weir__feed_topic *topic_new(struct weir__feed *store,
                                          struct weir_slice name)
{
    struct weir__feed_topic *topic = weir__mem_new(sizeof(*topic));

    if (topic == NULL)
        return NULL;
    topic->magic = TOPIC_MAGIC;
    topic->store = store;
    weir__feed_name(topic, name);
    topic->calls_end = &topic->calls;
    topic->adds_end = &topic->adds;
    topic->refused_ns = INT64_MIN;
    topic->next = store->topics;
    store->topics = topic;
    return topic;
}

/* Another key: what waits for the old one waits in vain. */
static void serve(struct weir__feed_topic *topic,
                  const struct weir__store_topic_options *options)
{
    char before[WEIR__SOURCE_MAX + 1];

    WEIR_ASSERT(options->on_dead.len <= WEIR_MAX_TOPIC);
    memcpy(before, weir__feed_key(topic), strlen(weir__feed_key(topic)) + 1);
    topic->options = options->feed;
    topic->is_served = true;
    topic->max_dead = options->max_dead;
    memset(topic->on_dead, 0, sizeof(topic->on_dead));
    if (options->on_dead.len > 0)
        memcpy(topic->on_dead, options->on_dead.ptr, options->on_dead.len);
    if (strcmp(before, weir__feed_key(topic)) != 0) {
        topic->found_ns = 0;
        weir__feed_stop_waiting(topic);
    }
}

static int topic_open(struct weir__store *base,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__feed *store = weir__feed_of(base);
    struct weir__feed_topic *topic = find(store, options->name);

    WEIR_ASSERT(options->name.len > 0 && options->name.len <= WEIR_MAX_TOPIC);
    if (topic == NULL)
        topic = topic_new(store, options->name);
    if (topic == NULL)
        return WEIR_ENOMEM;
    if (options->max_dead > 0) /* requests name none */
        serve(topic, options);
    *ret_topic = (void *)topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *base, void *user)
{
    struct weir__feed_topic *topic = weir__feed_topic_of(base);

    topic->user = user;
    if (user == NULL)
        weir__feed_stop_waiting(topic);
}

void weir__feed_mark(struct weir__feed_topic *topic)
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
    struct weir__feed_topic *topic = weir__feed_topic_of(base);

    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    topic->claim = *claim;
    topic->wants_claim = true;
    weir__feed_mark(topic);
    return WEIR_OK;
}

static size_t topic_unsettled(const struct weir__store_topic *base)
{
    const struct weir__feed_topic *topic = (const void *)base;

    WEIR_ASSERT(topic->magic == TOPIC_MAGIC);
    return topic->unsettled;
}

/* --- connection --------------------------------------------------------- */

void weir__feed_announce(struct weir__feed_topic *topic)
{
    struct weir__feed *store = topic->store;
    struct weir__buf bytes = {0};

    if (topic->announced == store->connections)
        return;
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_str(&bytes, topic->name);
    weir__feed_send(store, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
    topic->announced = store->connections;
}

static void on_commands(int code, const char *text, void *arg)
{
    struct weir__feed *store = arg;

    store->has_number = false;
    if (code == WEIR_OK)
        store->connections++;
    for (struct weir__feed_topic *topic = store->topics;
         topic != NULL && code == WEIR_OK; topic = topic->next)
        if (topic->calls != NULL)
            weir__feed_mark(topic); /* they wait for a number */
    store->events.connection(code, text, store->options.arg);
}

static int connect(struct weir__feed *store)
{
    const struct weir__redis_options *options = &store->options;
    struct weir__conn_options conn = {
        .loop = options->loop,
        .url = &store->url,
        .name = store->worker,
        .scripts = weir__scripts,
        .seed = options->seed,
        .wait_ms = options->wait_ms,
        .log = options->log,
        .on_state = on_commands,
        .arg = store,
        .depth = options->depth,
    };

    return weir__conn_open(&conn, &store->commands);
}

/* --- flush and close ---------------------------------------------------- */

/* Settle before claim: what was settled makes room on the server first. */
static void flush_topic(struct weir__feed_topic *topic)
{
    if (topic->adds != NULL || topic->wants_claim)
        weir__feed_announce(topic);
    weir__feed_flush_adds(topic);
    if (!weir__feed_lacks_number(topic)) /* its answer flushes them */
        weir__feed_flush_settles(topic);
    weir__feed_flush_claim(topic);
}

static void flush(struct weir__store *base)
{
    struct weir__feed *store = weir__feed_of(base);
    struct weir__feed_topic *topic = store->dirty;

    store->dirty = NULL;
    while (topic != NULL) {
        struct weir__feed_topic *next = topic->next_dirty;

        topic->is_dirty = false;
        flush_topic(topic);
        topic = next;
    }
    weir__conn_flush(store->commands);
}

static void destroy(struct weir__feed *store)
{
    WEIR_ASSERT(store->failed == NULL);
    while (store->topics != NULL) {
        struct weir__feed_topic *topic = store->topics;

        store->topics = topic->next;
        topic_free(topic);
    }
    for (size_t i = 0; i < 2; i++)
        weir__buf_fini(&store->scratch[i]);
    store->magic = 0;
    weir__mem_free(store);
}

static void close_store(struct weir__store *base)
{
    struct weir__feed *store = weir__feed_of(base);

    WEIR_ASSERT(!store->is_closed);
    WEIR_ASSERT(store->options.depth == NULL || *store->options.depth == 0);
    store->is_closed = true;
    for (struct weir__feed_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        weir__feed_stop_waiting(topic);
    weir__conn_close(store->commands);
    for (struct weir__feed_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        weir__feed_fail_adds(topic, WEIR_ECANCELED);
    ev_timer_stop(store->options.loop, &store->failing);
    fail_all(store);
    destroy(store);
}

/* --- opening ------------------------------------------------------------ */

static const struct weir__store_ops feed_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .settle = weir__feed_settle,
    .start = weir__feed_start,
    .renew = weir__feed_renew,
    .unsettled = topic_unsettled,
    .lateness = weir__feed_lateness,
    .add = weir__feed_add,
    .show = weir__refuse_show,
    .remove = weir__refuse_remove,
    .reschedule = weir__refuse_reschedule,
    .requeue = weir__feed_requeue,
    .purge = weir__feed_purge,
    .forget = weir__feed_forget,
    .dead = weir__feed_dead,
    .list = weir__feed_list,
    .pause = weir__refuse_pause,
    .set = weir__refuse_set,
    .settings = weir__refuse_settings,
    .kind = weir__refuse_kind,
    .stats = weir__feed_stats,
    .topics = weir__refuse_topics,
    .flush = flush,
    .close = close_store,
};

static int open_store(const struct weir__redis_options *options, bool is_stream,
                      struct weir__store **ret_store)
{
    struct weir__feed *store = weir__mem_new(sizeof(*store));
    int rc;

    if (store == NULL)
        return WEIR_ENOMEM;
    WEIR_ASSERT(strlen(options->worker) < sizeof(store->worker));
    store->base.ops = &feed_ops;
    store->magic = FEED_MAGIC;
    store->is_stream = is_stream;
    store->options = *options;
    store->url = *options->url;
    store->options.url = &store->url;
    store->events = *options->events;
    store->options.events = &store->events;
    memcpy(store->worker, options->worker, strlen(options->worker) + 1);
    store->options.worker = store->worker;
    store->connections = 1; /* so that 0 is none */
    store->failed_end = &store->failed;
    ev_timer_init(&store->failing, on_failing, 0., 0.);
    store->failing.data = store;
    rc = connect(store);
    if (rc != WEIR_OK) {
        destroy(store);
        return rc;
    }
    *ret_store = &store->base;
    return WEIR_OK;
}

int weir__list_open(const struct weir__redis_options *options,
                    struct weir__store **ret_store)
{
    return open_store(options, false, ret_store);
}

int weir__stream_open(const struct weir__redis_options *options,
                      struct weir__store **ret_store)
{
    return open_store(options, true, ret_store);
}

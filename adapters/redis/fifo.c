/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/fifo_private.h"
#include "adapters/redis/refuse.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"

enum { FIFO_MAGIC = 0x6669666f };

static struct weir__fifo *fifo_of(struct weir__store *store)
{
    /* The port is the first member. */
    struct weir__fifo *fifo = (struct weir__fifo *)store;

    WEIR_ASSERT(fifo != NULL && fifo->magic == FIFO_MAGIC);
    return fifo;
}

int64_t weir__fifo_now_ns(const struct weir__fifo *store)
{
    return store->options.clock(store->options.clock_arg);
}

void weir__fifo_depth(struct weir__fifo *store, int by)
{
    if (store->options.depth != NULL)
        *store->options.depth += by;
}

void weir__fifo_keys(struct weir__buf *buf,
                     const struct weir__store_topic *topic, const char *names)
{
    while (*names != '\0') {
        size_t len = strcspn(names, " ");

        weir__resp_begin(buf, strlen(topic->prefix) + len);
        weir__buf_append(buf, topic->prefix, strlen(topic->prefix));
        weir__buf_append(buf, names, len);
        weir__resp_end(buf);
        names += len + (names[len] == ' ');
    }
}

void weir__fifo_log(const struct weir__store_topic *topic, const char *what,
                    int code, const struct redisReply *reply)
{
    const char *text = code == WEIR_ESERVER && reply != NULL &&
                               reply->type == REDIS_REPLY_ERROR
                           ? reply->str
                           : weir_error_text(code);

    if (code != WEIR_OK && code != WEIR_ECANCELED)
        weir__log(topic->store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s %s: %s", topic->name, what, text);
}

/* --- claims --------------------------------------------------------------- */

/* The first `room` messages that are due, as a list of runs. */
static struct weir__run *hand_out(struct weir__store_topic *topic, size_t room,
                                  size_t *ret_count)
{
    struct weir__run *first = NULL, **end = &first;

    *ret_count = 0;
    while (*ret_count < room && topic->ready != NULL) {
        struct weir__message *message = topic->ready;

        topic->ready = message->next;
        topic->ready_count--;
        weir__consumer_state(message->consumer, WEIR__CONSUMER_OUT);
        message->run.next = NULL;
        *end = &message->run;
        end = &message->run.next;
        (*ret_count)++;
    }
    if (topic->ready == NULL)
        topic->ready_end = &topic->ready;
    return first;
}

/* A claim waits while a message may still come of what consumers do. */
static bool may_wait(const struct weir__store_topic *topic)
{
    if (topic->claim_code != WEIR_OK || topic->is_stopping)
        return false;
    if (!topic->is_serving)
        return true;
    return !topic->is_paused && topic->claim.room > 0 && topic->ready == NULL &&
           topic->busy > 0;
}

void weir__fifo_answer(struct weir__store_topic *topic)
{
    const struct weir__store_events *events = &topic->store->events;
    struct weir__claimed claimed = {
        .code = topic->claim_code,
        .next_due_us = -1,
        .is_paused = topic->is_paused,
    };
    struct weir__run *first = NULL;

    if (!topic->wants_claim || may_wait(topic) || topic->user == NULL)
        return;
    topic->wants_claim = false;
    topic->claim_code = topic->is_foreign ? WEIR_EKIND : WEIR_OK;
    if (claimed.code == WEIR_OK && !topic->is_paused && !topic->is_stopping)
        first = hand_out(topic, topic->claim.room, &claimed.count);
    events->claimed(topic->user, &claimed);
    if (claimed.count > 0)
        events->arrived(topic->user, first, claimed.count, 0);
}

static void on_answer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__store_topic *topic = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    weir__fifo_depth(topic->store, 1);
    weir__fifo_answer(topic);
    if (topic->user != NULL && topic->busy == 0)
        topic->store->events.settled(topic->user, 0, 0);
    weir__fifo_depth(topic->store, -1);
}

void weir__fifo_answer_soon(struct weir__store_topic *topic)
{
    if (!topic->store->is_closed && !ev_is_active(&topic->answer))
        ev_timer_start(topic->store->options.loop, &topic->answer);
}

static int topic_claim(struct weir__store_topic *topic,
                       const struct weir__claim *claim)
{
    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    topic->claim = *claim;
    topic->wants_claim = true;
    if (!may_wait(topic))
        weir__fifo_answer_soon(topic);
    return WEIR_OK;
}

/* Consumers keep what they hold alive by themselves. */
static void topic_renew(struct weir__store_topic *topic, int64_t lease_ms)
{
    (void)topic;
    (void)lease_ms;
}

static void topic_stop(struct weir__store_topic *topic)
{
    topic->is_stopping = true;
    weir__fifo_give_back(topic);
    weir__fifo_answer_soon(topic);
}

static size_t topic_unsettled(const struct weir__store_topic *topic)
{
    return topic->busy;
}

/* --- topics --------------------------------------------------------------- */

static struct weir__store_topic *find(const struct weir__fifo *store,
                                      struct weir_slice name)
{
    struct weir__store_topic *topic = store->topics;

    while (topic != NULL &&
           !weir__slice_equal(weir__slice_str(topic->name), name))
        topic = topic->next;
    return topic;
}

static struct weir__store_topic *topic_new(struct weir__fifo *store,
                                           struct weir_slice name)
{
    struct weir__store_topic *topic = weir__mem_new(sizeof(*topic));

    if (topic == NULL)
        return NULL;
    WEIR_ASSERT(name.len > 0 && name.len <= WEIR_MAX_TOPIC);
    topic->store = store;
    memcpy(topic->name, name.ptr, name.len);
    (void)snprintf(topic->prefix, sizeof(topic->prefix),
                   "weir:{%s}:", topic->name); /* fits */
    topic->own = (struct weir__fifo_options){
        .delay_ms = -1, .lease_ms = 5000, .consumers = 1, .is_locked = true};
    topic->ready_end = &topic->ready;
    ev_timer_init(&topic->look, weir__fifo_on_look, 0., 1.);
    topic->look.data = topic;
    ev_timer_init(&topic->answer, on_answer, 0., 0.);
    topic->answer.data = topic;
    topic->next = store->topics;
    store->topics = topic;
    return topic;
}

static int topic_open(struct weir__store *base,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__fifo *store = fifo_of(base);
    struct weir__store_topic *topic = find(store, options->name);

    if (topic == NULL)
        topic = topic_new(store, options->name);
    if (topic == NULL)
        return WEIR_ENOMEM;
    if (options->max_dead > 0) /* requests name none */
        topic->own = options->fifo;
    *ret_topic = topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    topic->user = user;
    if (user == NULL)
        return;
    weir__fifo_look(topic);
    if (!ev_is_active(&topic->look))
        ev_timer_again(topic->store->options.loop, &topic->look);
}

/* --- connections ---------------------------------------------------------- */

static void on_commands(int code, const char *text, void *arg)
{
    struct weir__fifo *store = arg;

    if (code == WEIR_OK) {
        store->connections++;
        for (struct weir__store_topic *topic = store->topics; topic != NULL;
             topic = topic->next)
            if (topic->user != NULL)
                weir__fifo_look(topic);
        weir__conn_flush(store->commands);
    }
    store->events.connection(code, text, store->options.arg);
}

static void on_message(struct weir_slice payload, void *arg)
{
    struct weir__fifo *store = arg;
    struct weir__store_topic *topic = find(store, payload);

    if (topic == NULL || topic->user == NULL)
        return; /* of another kind, or of an earlier life of this worker */
    if (topic->is_paused)
        weir__fifo_look(topic);
    else
        weir__fifo_wake(topic);
}

static const struct weir__script *const scripts[] = {
    &weir__script_fifo_push,   &weir__script_fifo_look,
    &weir__script_fifo_settle, &weir__script_fifo_stats,
    &weir__script_fifo_list,   &weir__script_fifo_purge,
    &weir__script_lateness,    NULL};

static int connect_store(struct weir__fifo *store)
{
    char channel[sizeof(store->worker) + 16];
    struct weir__conn_options conn = {
        .loop = store->options.loop,
        .url = &store->url,
        .name = store->worker,
        .scripts = scripts,
        .seed = store->options.seed,
        .wait_ms = store->options.wait_ms,
        .log = store->options.log,
        .on_state = on_commands,
        .arg = store,
        .depth = store->options.depth,
    };
    int rc = weir__conn_open(&conn, &store->commands);

    if (rc != WEIR_OK)
        return rc;
    (void)snprintf(channel, sizeof(channel), "weir:wake:%s",
                   store->worker); /* fits */
    conn.scripts = NULL;
    conn.channel = channel;
    conn.seed = store->options.seed + 1;
    conn.on_state = NULL; /* what was missed is seen at the next look */
    conn.on_message = on_message;
    return weir__conn_open(&conn, &store->wakes);
}

/* --- life ----------------------------------------------------------------- */

static void flush(struct weir__store *base)
{
    struct weir__fifo *store = fifo_of(base);

    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next) {
        weir__fifo_flush_backs(topic);
        weir__fifo_flush_adds(topic);
    }
    weir__conn_flush(store->commands);
    while (store->dirty != NULL) {
        struct weir__consumer *consumer = store->dirty;

        store->dirty = consumer->next_dirty;
        consumer->is_dirty = false;
        weir__conn_flush(consumer->conn);
    }
}

static void destroy(struct weir__fifo *store)
{
    while (store->topics != NULL) {
        struct weir__store_topic *topic = store->topics;

        store->topics = topic->next;
        weir__mem_free(topic);
    }
    store->magic = 0;
    weir__mem_free(store);
}

static void close_store(struct weir__store *base)
{
    struct weir__fifo *store = fifo_of(base);

    WEIR_ASSERT(!store->is_closed);
    WEIR_ASSERT(store->options.depth == NULL || *store->options.depth == 0);
    store->is_closed = true;
    weir__conn_close(store->wakes);
    weir__conn_close(store->commands);
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next) {
        ev_timer_stop(store->options.loop, &topic->look);
        ev_timer_stop(store->options.loop, &topic->answer);
        weir__fifo_dismiss(topic);
    }
    ev_timer_stop(store->options.loop, &store->failing);
    weir__fifo_fail_adds(store, WEIR_ECANCELED);
    destroy(store);
}

static const struct weir__store_ops fifo_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .settle = weir__fifo_settle,
    .renew = topic_renew,
    .stop = topic_stop,
    .unsettled = topic_unsettled,
    .lateness = weir__fifo_lateness,
    .add = weir__fifo_add,
    .show = weir__refuse_show,
    .remove = weir__refuse_remove,
    .reschedule = weir__refuse_reschedule,
    .requeue = weir__refuse_count,
    .purge = weir__fifo_purge,
    .forget = weir__refuse_count,
    .dead = weir__refuse_dead,
    .list = weir__fifo_list,
    .pause = weir__refuse_pause,
    .set = weir__refuse_set,
    .settings = weir__refuse_settings,
    .kind = weir__refuse_kind,
    .stats = weir__fifo_stats,
    .topics = weir__refuse_topics,
    .flush = flush,
    .close = close_store,
};

/* A worker's name may come back after a crash; what it holds is another's. */
static uint32_t make_start(struct weir__fifo *store)
{
    uint64_t state = store->options.seed ^ (uint64_t)weir__fifo_now_ns(store) ^
                     (uint64_t)(uintptr_t)store;

    return (uint32_t)weir__random_next(&state);
}

int weir__fifo_open(const struct weir__fifo_policy *policy,
                    const struct weir__redis_options *options,
                    struct weir__store **ret_store)
{
    struct weir__fifo *store = weir__mem_new(sizeof(*store));
    int rc;

    if (store == NULL)
        return WEIR_ENOMEM;
    WEIR_ASSERT(strlen(options->worker) < sizeof(store->worker));
    store->base.ops = &fifo_ops;
    store->magic = FIFO_MAGIC;
    store->policy = policy;
    store->options = *options;
    store->events = *options->events;
    store->url = *options->url;
    store->options.url = &store->url;
    store->options.events = &store->events;
    memcpy(store->worker, options->worker, strlen(options->worker) + 1);
    store->options.worker = store->worker;
    store->connections = 1; /* so that 0 is none */
    if (options->log != NULL)
        store->quiet = *options->log;
    store->quiet.level = WEIR_LEVEL_ERROR; /* the first one says it all */
    store->start = make_start(store);
    ev_timer_init(&store->failing, weir__fifo_on_failing, 0., 0.);
    store->failing.data = store;
    rc = connect_store(store);
    if (rc != WEIR_OK) {
        weir__conn_close(store->commands);
        destroy(store);
        return rc;
    }
    *ret_store = &store->base;
    return WEIR_OK;
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/classic/private.h"
#include "adapters/redis/refuse.h"
#include "core/random.h"

static const struct weir__base_kind fifo_kind;

static struct weir__fifo *fifo_of(struct weir__base *base)
{
    return (struct weir__fifo *)base; /* its first member */
}

static struct weir__store_topic *topic_of(struct weir__base_topic *base)
{
    return (struct weir__store_topic *)base; /* its first member */
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
    return !topic->is_paused && topic->base.claim.room > 0 &&
           topic->ready == NULL && topic->busy > 0;
}

void weir__fifo_answer(struct weir__store_topic *topic)
{
    const struct weir__store_events *events = &topic->store->base.events;
    struct weir__claimed claimed = {
        .code = topic->claim_code,
        .next_due_us = -1,
        .is_paused = topic->is_paused,
    };
    struct weir__run *first = NULL;

    if (!topic->base.wants_claim || may_wait(topic) || topic->base.user == NULL)
        return;
    topic->base.wants_claim = false;
    topic->claim_code = topic->is_foreign ? WEIR_EKIND : WEIR_OK;
    if (claimed.code == WEIR_OK && !topic->is_paused && !topic->is_stopping)
        first = hand_out(topic, topic->base.claim.room, &claimed.count);
    events->claimed(topic->base.user, &claimed);
    if (claimed.count > 0)
        events->arrived(topic->base.user, first, claimed.count, 0);
}

static void on_answer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__store_topic *topic = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    weir__base_enter(&topic->store->base);
    weir__fifo_answer(topic);
    if (topic->base.user != NULL && topic->busy == 0)
        topic->store->base.events.settled(topic->base.user, 0, 0);
    weir__base_leave(&topic->store->base);
}

void weir__fifo_answer_soon(struct weir__store_topic *topic)
{
    if (!topic->store->base.is_closed && !ev_is_active(&topic->answer))
        ev_timer_start(topic->store->base.options.loop, &topic->answer);
}

static int topic_claim(struct weir__store_topic *topic,
                       const struct weir__claim *claim)
{
    if (topic->store->base.is_closed)
        return WEIR_ECANCELED;
    topic->base.claim = *claim;
    topic->base.wants_claim = true;
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

static void topic_init(struct weir__base_topic *base)
{
    struct weir__store_topic *topic = topic_of(base);

    topic->store = fifo_of(base->base);
    topic->own = (struct weir__fifo_options){
        .delay_ms = -1, .lease_ms = 5000, .consumers = 1, .is_locked = true};
    topic->ready_end = &topic->ready;
    ev_timer_init(&topic->look, weir__fifo_on_look, 0., 1.);
    topic->look.data = topic;
    ev_timer_init(&topic->answer, on_answer, 0., 0.);
    topic->answer.data = topic;
}

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__base *base = weir__base_of(port, &fifo_kind);
    struct weir__store_topic *topic =
        topic_of(weir__base_topic_open(base, options->name));

    if (topic == NULL)
        return WEIR_ENOMEM;
    if (options->max_dead > 0) /* requests name none */
        topic->own = options->fifo;
    *ret_topic = topic;
    return WEIR_OK;
}

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    topic->base.user = user;
    if (user == NULL)
        return;
    weir__fifo_look(topic);
    if (!ev_is_active(&topic->look))
        ev_timer_again(topic->store->base.options.loop, &topic->look);
}

/* --- connections ---------------------------------------------------------- */

static void connected(struct weir__base *base)
{
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next)
        if (topic->user != NULL)
            weir__fifo_look(topic_of(topic));
}

static void woken(struct weir__base_topic *base)
{
    struct weir__store_topic *topic = topic_of(base);

    if (topic->is_paused)
        weir__fifo_look(topic);
    else
        weir__fifo_wake(topic);
}

static void followed(struct weir__base_topic *topic, int code)
{
    if (code == WEIR_OK) /* else the next look tells the revision again */
        weir__fifo_serve(topic_of(topic));
}

static const struct weir__script *const scripts[] = {
    &weir__script_classic_push,   &weir__script_classic_look,
    &weir__script_classic_settle, &weir__script_classic_stats,
    &weir__script_classic_list,   &weir__script_classic_purge,
    &weir__script_store_lateness, NULL};

/* --- life ----------------------------------------------------------------- */

static void flush(struct weir__store *port)
{
    struct weir__base *base = weir__base_of(port, &fifo_kind);
    struct weir__fifo *store = fifo_of(base);

    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next) {
        weir__fifo_flush_backs(topic_of(topic));
        weir__fifo_flush_adds(topic_of(topic));
    }
    weir__conn_flush(base->commands);
    while (store->dirty != NULL) {
        struct weir__consumer *consumer = store->dirty;

        store->dirty = consumer->next_dirty;
        consumer->is_dirty = false;
        weir__conn_flush(consumer->conn);
    }
}

static void fail_adds(struct weir__base_topic *topic, int code)
{
    weir__fifo_fail_adds(topic_of(topic), code);
}

/* Answers on the common connection, which is closed by now, name consumers. */
static void topic_fini(struct weir__base_topic *base)
{
    struct weir__store_topic *topic = topic_of(base);

    ev_timer_stop(base->base->options.loop, &topic->look);
    ev_timer_stop(base->base->options.loop, &topic->answer);
    weir__fifo_dismiss(topic);
}

static const struct weir__store_ops fifo_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .claim = topic_claim,
    .settle = weir__fifo_settle,
    .renew = topic_renew,
    .stop = topic_stop,
    .unsettled = topic_unsettled,
    .lateness = weir__base_lateness,
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
    .close = weir__base_close,
};

/* A worker's name may come back after a crash; what it holds is another's. */
static uint32_t make_start(struct weir__fifo *store)
{
    uint64_t state = store->base.options.seed ^
                     (uint64_t)weir__base_now_ns(&store->base) ^
                     (uint64_t)(uintptr_t)store;

    return (uint32_t)weir__random_next(&state);
}

static const struct weir__base_kind fifo_kind = {
    .size = sizeof(struct weir__fifo),
    .topic_size = sizeof(struct weir__store_topic),
    .ops = &fifo_ops,
    .scripts = scripts,
    .has_wakes = true,
    .connected = connected,
    .woken = woken,
    .followed = followed,
    .fail_adds = fail_adds,
    .topic_init = topic_init,
    .topic_fini = topic_fini,
};

int weir__fifo_open(const struct weir__fifo_policy *policy,
                    const struct weir__redis_options *options,
                    struct weir__store **ret_store)
{
    struct weir__base *base;
    struct weir__fifo *store;
    int rc = weir__base_open(&fifo_kind, options, &base);

    if (rc != WEIR_OK)
        return rc;
    store = fifo_of(base);
    store->policy = policy;
    if (options->log != NULL)
        store->quiet = *options->log;
    store->quiet.level = WEIR_LEVEL_ERROR; /* the first one says it all */
    store->start = make_start(store);
    *ret_store = &base->port;
    return WEIR_OK;
}

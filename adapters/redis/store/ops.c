/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/lease.h"
#include "adapters/redis/store/outbox.h"
#include "core/assert.h"

/* The port of core/store.h: what the rules of the topic's kind do, and what is
 * the same for all kinds. Here and nowhere else is said that a kind does not
 * have a request. */

static struct weir__redis *redis_of(struct weir__store *port)
{
    return (struct weir__redis *)port; /* its first member */
}

/* --- topics ------------------------------------------------------------- */

static const struct weir__kind *
kind_of(const struct weir__store_topic *topic,
        const struct weir__store_topic_options *options)
{
    if (options->kind != NULL)
        return weir__kind_find(options->kind);
    return topic == NULL ? weir__kinds[0] : topic->kind;
}

static int topic_open(struct weir__store *port,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic)
{
    struct weir__redis *store = redis_of(port);
    struct weir__store_topic *topic = weir__redis_find(store, options->name);
    const struct weir__kind *kind = kind_of(topic, options);

    if (kind == NULL)
        return WEIR_EINVAL;
    if (topic != NULL && topic->kind == kind && options->served == NULL) {
        *ret_topic = topic; /* the usual case: a request */
        return WEIR_OK;
    }
    weir__keeper_shut(store->keeper);
    topic = weir__topic_open(store, kind, options->name);
    if (topic != NULL)
        weir__topic_put_first(topic);
    if (topic != NULL && options->served != NULL) { /* not by a request */
        topic->options = options->served;
        topic->is_served = true;
        topic->limits.connection = 0; /* its durability may be another */
        if (kind->serve != NULL)
            kind->serve(topic);
    }
    weir__keeper_reopen(store->keeper);
    if (topic == NULL)
        return WEIR_ENOMEM;
    *ret_topic = topic;
    return WEIR_OK;
}

static const char *topic_kind_name(const struct weir__store_topic *topic)
{
    return topic->kind->name;
}

static bool topic_takes_follows(const struct weir__store_topic *topic)
{
    return topic->kind->takes_follows;
}

static void topic_listen(struct weir__store_topic *topic, void *user)
{
    if (user != NULL)
        weir__keeper_begin(topic);
    weir__keeper_shut(topic->store->keeper);
    topic->user = user;
    if (user != NULL) {
        weir__presence_begin(topic->store);
    } else {
        weir__topic_leave_idle(topic); /* it came behind the stop */
    }
    weir__link_listen(topic);
    if (topic->kind->listen != NULL)
        topic->kind->listen(topic);
    weir__keeper_reopen(topic->store->keeper);
}

/* --- work --------------------------------------------------------------- */

/* The worker comes again a second later. */
static void on_put_off(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__store_topic *topic =
        ((struct weir__put_off_request *)request)->topic;
    const struct weir__claimed claimed = {.code = code, .next_due_us = -1};

    (void)reply;
    if (topic->user != NULL)
        topic->store->events.claimed(topic->user, &claimed);
}

static int put_off(struct weir__store_topic *topic)
{
    topic->put_off.topic = topic;
    topic->put_off.request.store = topic->store;
    topic->put_off.request.done = on_put_off;
    weir__redis_fail(&topic->put_off.request, WEIR_ESERVER);
    return WEIR_OK;
}

static int topic_claim(struct weir__store_topic *topic,
                       const struct weir__claim *claim)
{
    if (topic->store->is_closed)
        return WEIR_ECANCELED;
    weir__keeper_note(topic->store->keeper, claim->lease_ms);
    weir__keeper_shut(topic->store->keeper);
    topic->claim = *claim;
    weir__keeper_reopen(topic->store->keeper);
    if (weir__redis_now_ns(topic->store) < topic->claims_from_ns)
        return put_off(topic);
    topic->may_sleep = true;
    topic->wants_claim = true;
    if (topic->kind->claim != NULL)
        return topic->kind->claim(topic, claim);
    weir__topic_mark(topic);
    return WEIR_OK;
}

static void topic_settle(struct weir__store_topic *topic, struct weir__run *run)
{
    struct weir__keeper *keeper = topic->store->keeper;
    bool is_inside = weir__keeper_has_call(keeper);

    if (is_inside) /* the keeper may be at a run of the same lease */
        weir__keeper_shut(keeper);
    /* The next suspect starts at once: this one is not to be under way then. */
    topic->is_urgent = topic->is_urgent || run->is_suspect;
    topic->kind->settle(topic, run);
    if (is_inside)
        weir__keeper_reopen(keeper);
}

static void topic_start(struct weir__store_topic *topic, struct weir__run *run)
{
    WEIR_ASSERT(topic->kind->start != NULL && run->is_suspect);
    topic->kind->start(topic, run);
}

static void store_enter(struct weir__store *port, struct weir__call *call)
{
    if (redis_of(port)->keeper != NULL)
        weir__keeper_enter(redis_of(port)->keeper, call);
}

static bool store_leave(struct weir__store *port, struct weir__call *call)
{
    return redis_of(port)->keeper != NULL &&
           weir__keeper_leave(redis_of(port)->keeper, call);
}

static void store_note_crash(const struct weir__store *port, const char *how)
{
    weir__keeper_note_crash(((const struct weir__redis *)port)->keeper, how);
}

static int64_t topic_kept_ns(const struct weir__store_topic *topic)
{
    if (topic->kind->is_unleased != NULL && topic->kind->is_unleased(topic))
        return weir__redis_now_ns(topic->store);
    return atomic_load_explicit(&topic->kept_ns, memory_order_relaxed);
}

static void topic_stop(struct weir__store_topic *topic)
{
    if (topic->kind->stop != NULL)
        topic->kind->stop(topic);
    weir__topic_leave_idle(topic);
}

static size_t topic_unsettled(const struct weir__store_topic *topic)
{
    size_t sending = topic->outbox == NULL ? 0 : topic->outbox->sending;

    return sending + (topic->kind->unsettled == NULL
                          ? topic->unsettled
                          : topic->kind->unsettled(topic));
}

static bool topic_holds_back(const struct weir__store_topic *topic)
{
    return topic->kind->holds_back != NULL && topic->kind->holds_back(topic);
}

static size_t topic_waiting(const struct weir__store_topic *topic)
{
    size_t collected =
        topic->kind->collected == NULL ? 0 : topic->kind->collected(topic);

    return collected + weir__place_queued(topic->place) +
           topic->store->unconfirmed;
}

/* --- requests ----------------------------------------------------------- */

/* Of a request that the kind does not have, or that nobody answers any more. */
#define REFUSE(topic, request)              \
    do {                                    \
        if ((topic)->kind->request == NULL) \
            return WEIR_EKIND;              \
        if ((topic)->store->is_closed)      \
            return WEIR_ECANCELED;          \
    } while (0)

static int topic_token(struct weir__store_topic *topic,
                       const struct weir__run *run,
                       char ret_token[WEIR__TOKEN_CAP])
{
    REFUSE(topic, token);
    topic->kind->token(run, ret_token);
    return WEIR_OK;
}

static int topic_adopt(struct weir__store_topic *topic, const char *token)
{
    REFUSE(topic, adopt);
    return topic->kind->adopt(topic, token);
}

static int topic_prolong(struct weir__store_topic *topic,
                         const struct weir__prolong *what, weir_count_fn fn,
                         void *arg)
{
    REFUSE(topic, prolong);
    return topic->kind->prolong(topic, what, fn, arg);
}

static int topic_add(struct weir__store_topic *topic,
                     const struct weir__new_job *job, weir_added_fn fn,
                     void *arg)
{
    REFUSE(topic, add);
    return topic->kind->add(topic, job, fn, arg);
}

static int topic_show(struct weir__store_topic *topic, struct weir_slice id,
                      weir_show_fn fn, void *arg)
{
    REFUSE(topic, show);
    return topic->kind->show(topic, id, fn, arg);
}

static int topic_remove(struct weir__store_topic *topic, struct weir_slice id,
                        weir_delete_fn fn, void *arg)
{
    REFUSE(topic, remove);
    return topic->kind->remove(topic, id, fn, arg);
}

static int topic_reschedule(struct weir__store_topic *topic,
                            const struct weir__reschedule *what,
                            weir_reschedule_fn fn, void *arg)
{
    REFUSE(topic, reschedule);
    return topic->kind->reschedule(topic, what, fn, arg);
}

static int topic_requeue(struct weir__store_topic *topic, struct weir_slice id,
                         weir_count_fn fn, void *arg)
{
    REFUSE(topic, requeue);
    return topic->kind->requeue(topic, id, fn, arg);
}

static int topic_purge(struct weir__store_topic *topic, enum weir__purge what,
                       weir_count_fn fn, void *arg)
{
    REFUSE(topic, purge);
    return topic->kind->purge(topic, what, fn, arg);
}

static int topic_forget(struct weir__store_topic *topic, struct weir_slice id,
                        weir_count_fn fn, void *arg)
{
    REFUSE(topic, forget);
    return topic->kind->forget(topic, id, fn, arg);
}

static int topic_list(struct weir__store_topic *topic,
                      const struct weir__list *what, weir_show_fn fn, void *arg)
{
    REFUSE(topic, list);
    if (what->state == WEIR_JOB_DEAD)
        REFUSE(topic, forget); /* none are kept */
    return topic->kind->list(topic, what, fn, arg);
}

static int topic_cron(struct weir__store_topic *topic,
                      const struct weir__cron_change *what, weir_code_fn fn,
                      void *arg)
{
    REFUSE(topic, cron);
    return topic->kind->cron(topic, what, fn, arg);
}

static int topic_crons(struct weir__store_topic *topic, weir__cron_fn fn,
                       void *arg)
{
    REFUSE(topic, crons);
    return topic->kind->crons(topic, fn, arg);
}

static int topic_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                       void *arg)
{
    REFUSE(topic, stats);
    return topic->kind->stats(topic, fn, arg);
}

const struct weir__store_ops weir__redis_ops = {
    .topic_open = topic_open,
    .topic_listen = topic_listen,
    .kind_name = topic_kind_name,
    .takes_follows = topic_takes_follows,
    .claim = topic_claim,
    .settle = topic_settle,
    .start = topic_start,
    .token = topic_token,
    .adopt = topic_adopt,
    .prolong = topic_prolong,
    .enter = store_enter,
    .leave = store_leave,
    .note_crash = store_note_crash,
    .kept_ns = topic_kept_ns,
    .renew = weir__leases_renew,
    .stop = topic_stop,
    .unsettled = topic_unsettled,
    .holds_back = topic_holds_back,
    .waiting = topic_waiting,
    .lateness = weir__topic_lateness,
    .add = topic_add,
    .show = topic_show,
    .remove = topic_remove,
    .reschedule = topic_reschedule,
    .requeue = topic_requeue,
    .purge = topic_purge,
    .forget = topic_forget,
    .list = topic_list,
    .stats = topic_stats,
    .cron = topic_cron,
    .crons = topic_crons,
    .pause = weir__topic_pause,
    .set = weir__topic_set,
    .drop = weir__topic_drop,
    .settings = weir__topic_settings,
    .kind = weir__topic_kind,
    .topics = weir__redis_topics,
    .workers = weir__redis_workers,
    .flush = weir__redis_flush,
    .close = weir__redis_close,
};

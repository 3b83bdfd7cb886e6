/* SPDX-License-Identifier: MIT */
#include "adapters/redis/classic/private.h"
#include "core/assert.h"
#include "core/random.h"

/* The table of rules, and a topic while it is served: claims are answered out
 * of what consumers hold, and each second the server is asked whether the topic
 * is paused, whether its options changed, what came meanwhile. The same call
 * keeps parked messages alive and takes back what dead workers had parked. */

enum { LOOK_MS = 1000 };

struct weir__classic_topic *
weir__classic_topic_of(struct weir__store_topic *topic)
{
    WEIR_ASSERT(topic->kind == &weir__sync_kind ||
                topic->kind == &weir__concurrent_kind);
    return (struct weir__classic_topic *)topic; /* its first member */
}

/* --- claims --------------------------------------------------------------- */

/* The first `room` messages that are due, as a list of runs. */
static struct weir__run *hand_out(struct weir__classic_topic *topic,
                                  size_t room, size_t *ret_count)
{
    struct weir__run *first = topic->ready, **end = &first;

    *ret_count = 0;
    for (; *ret_count < room && *end != NULL; end = &(*end)->next) {
        const struct weir__message *message = (*end)->batch;

        weir__consumer_state(message->consumer, WEIR__CONSUMER_OUT);
        (*ret_count)++;
    }
    topic->ready = *end;
    *end = NULL;
    if (topic->ready == NULL)
        topic->ready_end = &topic->ready;
    return first;
}

/* A claim waits while a message may still come of what consumers do. */
static bool may_wait(const struct weir__classic_topic *topic)
{
    if (topic->claim_code != WEIR_OK || topic->is_stopping)
        return false;
    if (!topic->is_serving)
        return true;
    return !topic->is_paused && topic->base.claim.room > 0 &&
           topic->ready == NULL && topic->busy > 0;
}

void weir__classic_answer(struct weir__classic_topic *topic)
{
    const struct weir__store_events *events = &topic->base.store->events;
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
    struct weir__classic_topic *topic = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    weir__redis_enter(topic->base.store);
    weir__classic_answer(topic);
    if (topic->base.user != NULL && topic->busy == 0)
        topic->base.store->events.settled(topic->base.user, 0, 0);
    weir__redis_leave(topic->base.store);
}

void weir__classic_answer_soon(struct weir__classic_topic *topic)
{
    if (!topic->base.store->is_closed && !ev_is_active(&topic->answer))
        ev_timer_start(topic->base.store->options.loop, &topic->answer);
}

static int claim(struct weir__store_topic *base,
                 const struct weir__claim *wanted)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    (void)wanted; /* noted with the topic */
    if (!may_wait(topic))
        weir__classic_answer_soon(topic);
    return WEIR_OK;
}

static void stop(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    topic->is_stopping = true;
    weir__classic_give_back(topic);
    weir__classic_answer_soon(topic);
}

static size_t unsettled(const struct weir__store_topic *topic)
{
    return ((const struct weir__classic_topic *)topic)->busy;
}

/* Consumers keep their messages by polling. */
static bool is_unleased(const struct weir__store_topic *topic)
{
    (void)topic;
    return true;
}

/* --- polling -------------------------------------------------------------- */

/* The first time one consumer polls in any case: finding nothing is what has
 * the worker woken by the next push. */
static void serve(struct weir__classic_topic *topic)
{
    bool is_first = !topic->is_serving;

    topic->is_serving = true;
    weir__classic_fit(topic);
    weir__classic_kick(topic,
                       is_first && topic->length == 0 ? 1 : topic->length);
    weir__classic_answer(topic);
}

/* Parked under a lease, maybe held elsewhere by now? */
static bool is_parking(const struct weir__consumer *consumer)
{
    return consumer->message != NULL && consumer->message->is_parked &&
           consumer->state != WEIR__CONSUMER_SETTLING;
}

/* Their lease ended: others have what they held. What core has is refused when
 * it is settled. */
static void on_ended(struct weir__classic_topic *topic,
                     const struct redisReply *reply)
{
    int64_t at, index;
    size_t from = 3;

    for (size_t i = 0; i < topic->consumer_count; i++) {
        struct weir__consumer *consumer = topic->consumers[i];

        if (!weir__reply_int(reply, from, &at))
            return;
        index = (int64_t)consumer->index;
        if (index != at)
            continue;
        from++;
        if (consumer->state == WEIR__CONSUMER_OUT)
            topic->base.store->events.lost(topic->base.user,
                                           consumer->message->run.token);
        weir__consumer_drop(consumer);
    }
}

static void take_state(struct weir__classic_topic *topic, int64_t state)
{
    bool was_paused = topic->is_paused;

    topic->is_paused = state % 2 != 0;
    if (topic->is_paused && !was_paused) {
        weir__classic_give_back(topic);
        if (topic->base.wants_claim)
            weir__classic_answer(topic);
        else
            topic->base.store->events.wake(topic->base.user);
    }
    if (!topic->is_paused && was_paused)
        topic->base.store->events.wake(topic->base.user);
    if (topic->base.is_following)
        return;
    if (state / 2 != topic->base.revision)
        weir__topic_follow(&topic->base, state / 2);
    else
        serve(topic);
}

static void refuse(struct weir__classic_topic *topic, int code)
{
    topic->claim_code = code;
    weir__classic_answer(topic);
    if (!topic->is_foreign)
        topic->claim_code = WEIR_OK;
}

static void on_polled(int code, const struct redisReply *reply, void *arg)
{
    struct weir__classic_topic *topic = arg;
    int64_t rc, state, length;

    topic->is_polling = false;
    if (code == WEIR_ECANCELED || topic->base.user == NULL)
        return;
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &rc))
        code = WEIR_ESERVER;
    weir__topic_log_error(&topic->base, "look", code, reply);
    if (code == WEIR_OK && rc < 0) {
        topic->is_foreign = true;
        code = WEIR_EKIND;
    }
    if (code != WEIR_OK) {
        refuse(topic, code);
        return;
    }
    if (!weir__reply_int(reply, 1, &state) ||
        !weir__reply_int(reply, 2, &length))
        return;
    topic->length = (uint64_t)length;
    on_ended(topic, reply);
    take_state(topic, state);
}

static size_t parking_count(const struct weir__classic_topic *topic)
{
    size_t count = 0;

    for (size_t i = 0; i < topic->consumer_count; i++)
        count += is_parking(topic->consumers[i]);
    return count;
}

int64_t weir__classic_delay_ms(const struct weir__classic_topic *topic)
{
    const struct weir__options *options = topic->base.options;

    return weir__options_has(options, WEIR__TOPIC_delay) ? options->delay : -1;
}

static void poll_topic(struct weir__classic_topic *topic)
{
    struct weir__classic *shared = topic->shared;
    struct weir__buf bytes = {0};

    if (topic->is_polling || topic->is_foreign || shared->store->is_closed)
        return;
    (void)weir__topic_register(&topic->base);
    weir__resp_eval(&bytes, &weir__script_classic_poll, 7,
                    5 + 2 * parking_count(topic));
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "fifo parked alive meta ids idle absent");
    weir__resp_str(&bytes, topic->base.kind->name);
    weir__resp_str(&bytes, topic->base.place->server->worker);
    weir__resp_int(&bytes, weir__options_lease_ms(topic->base.options));
    weir__resp_int(&bytes, weir__classic_delay_ms(topic));
    weir__claim_write_server(&bytes, &topic->base);
    for (size_t i = 0; i < topic->consumer_count; i++) {
        if (!is_parking(topic->consumers[i]))
            continue;
        weir__resp_int(&bytes, topic->consumers[i]->index);
        weir__resp_str(&bytes, topic->consumers[i]->owner);
    }
    topic->is_polling =
        weir__place_command(topic->base.place, &bytes,
                            &weir__script_classic_poll, WEIR__SEND_HERE,
                            on_polled, topic) == WEIR_OK;
}

/* While a handler holds the loop, and no consumer polls. */
static void renew(struct weir__renewals *renewals,
                  const struct weir__store_topic *base, int64_t lease_ms)
{
    const struct weir__classic_topic *topic =
        (const struct weir__classic_topic *)base; /* its first member */
    struct weir__buf *buf = &renewals->bytes;
    size_t count = parking_count(topic);

    if (count == 0)
        return;
    (void)lease_ms; /* of runs; a topic has one of its own */
    weir__renewals_begin(renewals, &weir__script_classic_renew);
    weir__resp_eval(buf, &weir__script_classic_renew, 2, 1 + 2 * count);
    weir__prefix_keys(buf, &base->prefix, "alive meta");
    weir__resp_int(buf, weir__options_lease_ms(topic->base.options));
    for (size_t i = 0; i < topic->consumer_count; i++) {
        const struct weir__consumer *consumer = topic->consumers[i];

        if (!is_parking(consumer))
            continue;
        weir__resp_str(buf, consumer->owner);
        weir__resp_int(buf, (int64_t)consumer->message->run.token);
    }
    weir__renewals_end(renewals);
}

/* Three chances before what is parked comes back. */
static double gap_of(const struct weir__classic_topic *topic)
{
    int64_t ms = LOOK_MS;

    if (weir__options_lease_ms(topic->base.options) / 3 < ms &&
        parking_count(topic) > 0)
        ms = weir__options_lease_ms(topic->base.options) / 3;
    return (double)ms / 1000.;
}

void weir__classic_poll_soon(struct weir__classic_topic *topic)
{
    struct ev_loop *loop = topic->base.store->options.loop;
    double gap = gap_of(topic);

    if (topic->base.user == NULL ||
        ev_timer_remaining(loop, &topic->poll) <= gap)
        return;
    topic->poll.repeat = gap;
    ev_timer_again(loop, &topic->poll);
}

static void on_poll(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__classic_topic *topic = timer->data;

    (void)events;
    timer->repeat = gap_of(topic);
    ev_timer_again(loop, timer);
    poll_topic(topic);
    weir__place_flush(topic->base.place);
}

/* --- topics --------------------------------------------------------------- */

static void topic_init(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    topic->shared = (struct weir__classic *)weir__redis_shared(
        base->store, base->kind); /* its first member */
    topic->is_sync = base->kind == &weir__sync_kind;
    topic->ready_end = &topic->ready;
    ev_timer_init(&topic->poll, on_poll, 0., 1.);
    topic->poll.data = topic;
    ev_timer_init(&topic->answer, on_answer, 0., 0.);
    topic->answer.data = topic;
}

static void listen(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    if (base->user == NULL) {
        ev_timer_stop(base->store->options.loop, &topic->poll);
        return;
    }
    topic->is_stopping = false;
    poll_topic(topic);
    if (!ev_is_active(&topic->poll))
        ev_timer_again(base->store->options.loop, &topic->poll);
}

/* --- connections ---------------------------------------------------------- */

static void connected(struct weir__store_topic *topic)
{
    if (topic->user != NULL)
        poll_topic(weir__classic_topic_of(topic));
}

static void look(struct weir__store_topic *base)
{
    const struct weir__classic_topic *topic = weir__classic_topic_of(base);

    for (size_t i = 0; i < topic->consumer_count; i++)
        weir__place_look_beside(base->place, topic->consumers[i]->conn);
}

static void woken(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    if (topic->is_paused)
        poll_topic(topic);
    else
        weir__classic_wake(topic);
}

static void followed(struct weir__store_topic *topic, int code)
{
    if (code == WEIR_OK) /* else the next poll has the revision again */
        serve(weir__classic_topic_of(topic));
}

/* --- life ----------------------------------------------------------------- */

static void flush(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    weir__classic_flush_backs(topic);
    weir__classic_flush_adds(topic);
}

static void flush_shared(struct weir__shared *base)
{
    struct weir__classic *shared =
        (struct weir__classic *)base; /* its first member */

    while (shared->dirty != NULL) {
        struct weir__consumer *consumer = shared->dirty;

        shared->dirty = consumer->next_dirty;
        consumer->is_dirty = false;
        weir__conn_flush(consumer->conn);
    }
}

/* Answers on the common connection, which is closed by now, name consumers. */
static void topic_fini(struct weir__store_topic *base)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);

    ev_timer_stop(base->store->options.loop, &topic->poll);
    ev_timer_stop(base->store->options.loop, &topic->answer);
    weir__classic_dismiss(topic);
}

/* A worker's name may come back after a crash; what it holds is another's. */
static uint32_t make_start(const struct weir__classic *shared)
{
    const struct weir__redis *store = shared->store;
    uint64_t state = store->options.seed ^ (uint64_t)weir__redis_now_ns(store);

    return (uint32_t)weir__random_next(&state);
}

static void shared_init(struct weir__shared *base)
{
    struct weir__classic *shared =
        (struct weir__classic *)base; /* its first member */

    if (base->store->options.log != NULL)
        shared->quiet = *base->store->options.log;
    shared->quiet.level = WEIR_LEVEL_ERROR; /* the first one says it all */
    shared->start = make_start(shared);
}

#define CLASSIC_KIND(kind_name)                                                \
    {                                                                          \
        .name = (kind_name), .topic_size = sizeof(struct weir__classic_topic), \
        .shared_size = sizeof(struct weir__classic),                           \
        .shared_init = shared_init, .topic_init = topic_init,                  \
        .topic_fini = topic_fini, .listen = listen, .connected = connected,    \
        .look = look, .woken = woken, .flush = flush,                          \
        .flush_shared = flush_shared, .followed = followed,                    \
        .fail_adds = weir__classic_fail_adds, .claim = claim,                  \
        .settle = weir__classic_settle, .stop = stop, .unsettled = unsettled,  \
        .renew = renew, .is_unleased = is_unleased, .add = weir__classic_add,  \
        .purge = weir__classic_purge, .list = weir__classic_list,              \
        .stats = weir__topic_stats,                                            \
        .stats_script = &weir__script_classic_stats,                           \
        .stats_keys = "fifo parked meta alive", .stats_key_count = 4,          \
        .counted = weir__classic_counted,                                      \
    }

const struct weir__kind weir__sync_kind = CLASSIC_KIND("sync");
const struct weir__kind weir__concurrent_kind = CLASSIC_KIND("concurrent");

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/classic/private.h"

/* What a worker asks of a topic each second while it serves it: whether it is
 * paused, whether its options changed, what came meanwhile. The same call keeps
 * parked messages alive and takes back what dead workers had parked. */

enum { LOOK_MS = 1000 };

/* The first time one consumer polls in any case: finding nothing is what has
 * the worker woken by the next push. */
void weir__classic_serve(struct weir__classic_topic *topic)
{
    bool is_first = !topic->is_serving;

    topic->is_serving = true;
    weir__classic_fit(topic);
    weir__classic_kick(topic,
                       is_first && topic->length == 0 ? 1 : topic->length);
    weir__classic_answer(topic);
}

/* --- polling -------------------------------------------------------------- */

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
        if (consumer->state == WEIR__CONSUMER_OUT &&
            topic->base.store->events.lost != NULL)
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
        weir__classic_serve(topic);
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

void weir__classic_poll(struct weir__classic_topic *topic)
{
    struct weir__classic *shared = topic->shared;
    struct weir__buf bytes = {0};

    if (topic->is_polling || topic->is_foreign || shared->store->is_closed)
        return;
    weir__topic_register(&topic->base);
    weir__resp_eval(&bytes, &weir__script_classic_poll, 6,
                    4 + 2 * parking_count(topic));
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "fifo parked alive meta ids idle");
    weir__resp_str(&bytes, topic->policy->kind);
    weir__resp_str(&bytes, shared->store->worker);
    weir__resp_int(&bytes, weir__options_lease_ms(topic->base.options));
    weir__resp_int(&bytes, weir__classic_delay_ms(topic));
    for (size_t i = 0; i < topic->consumer_count; i++) {
        if (!is_parking(topic->consumers[i]))
            continue;
        weir__resp_int(&bytes, topic->consumers[i]->index);
        weir__resp_str(&bytes, topic->consumers[i]->owner);
    }
    topic->is_polling =
        weir__conn_send(shared->store->commands, &bytes,
                        &weir__script_classic_poll, WEIR__SEND_AGAIN, on_polled,
                        topic) == WEIR_OK;
}

/* While a handler holds the loop, and no consumer polls. */
void weir__classic_renew(struct weir__renewals *renewals,
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
    weir__resp_eval(buf, &weir__script_classic_renew, 1, 1 + 2 * count);
    weir__prefix_key(buf, &base->prefix, "alive");
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

    if (ev_timer_remaining(loop, &topic->poll) <= gap)
        return;
    topic->poll.repeat = gap;
    ev_timer_again(loop, &topic->poll);
}

void weir__classic_on_poll(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__classic_topic *topic = timer->data;

    (void)events;
    timer->repeat = gap_of(topic);
    ev_timer_again(loop, timer);
    weir__classic_poll(topic);
    weir__conn_flush(topic->base.store->commands);
}

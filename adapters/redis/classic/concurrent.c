/* SPDX-License-Identifier: MIT */
#include "adapters/redis/classic/private.h"

/* Concurrent: a consumer takes the head at once, without a lock, and waits
 * until it is due. Unless it counts as done then, it is parked until it is
 * settled: in the same step, or in one of its own. */

static void on_parked(int code, const struct redisReply *reply, void *arg)
{
    struct weir__consumer *consumer = arg;

    if (code != WEIR_OK) {
        weir__consumer_lost(consumer, "park", code, reply);
        return;
    }
    weir__consumer_parked(consumer);
    weir__consumer_took(consumer);
}

static void park(struct weir__consumer *consumer)
{
    const struct weir__classic_topic *topic = consumer->topic;
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_classic_park, 3, 3);
    weir__prefix_keys(&bytes, &topic->base.prefix, "parked alive meta");
    weir__resp_str(&bytes, consumer->owner);
    weir__resp_int(&bytes, weir__options_lease_ms(topic->base.options));
    weir__resp_bytes(&bytes, (struct weir_slice){consumer->message->bytes,
                                                 consumer->message->len});
    weir__consumer_send(consumer, &bytes, &weir__script_classic_park,
                        WEIR__SEND_AGAIN, on_parked);
}

/* The worker is registered as idle. As one that has nothing in hand, though
 * another consumer found a message meanwhile: then it registers anew. */
static void find_nothing(struct weir__consumer *consumer)
{
    if (consumer->topic->in_hand > 0 && !consumer->has_told_busy)
        weir__consumer_next(consumer);
    else
        weir__consumer_rest(consumer);
}

static void on_popped(int code, const struct redisReply *reply, void *arg)
{
    struct weir__consumer *consumer = arg;
    int64_t token;

    if (code == WEIR_OK && !weir__reply_int(reply, 1, &token))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && token == 0) {
        find_nothing(consumer);
        return;
    }
    if (code == WEIR_OK && !weir__consumer_keep(consumer, reply, 2))
        code = WEIR_ENOMEM;
    if (code != WEIR_OK) {
        weir__consumer_lost(consumer, "pop", code, reply);
        return;
    }
    if (!consumer->is_auto && consumer->is_two_step) {
        park(consumer);
        return;
    }
    if (!consumer->is_auto)
        weir__consumer_parked(consumer);
    weir__consumer_took(consumer);
}

void weir__concurrent_begin(struct weir__consumer *consumer)
{
    const struct weir__options *options = consumer->topic->base.options;

    consumer->is_auto = options->auto_ack;
    consumer->is_two_step = options->parking != 0;
    weir__consumer_pop(consumer,
                       consumer->is_auto       ? "done"
                       : consumer->is_two_step ? "none"
                                               : "park",
                       on_popped);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/classic/private.h"

/* Sync: a consumer takes the lock, looks at the head, and where that is due
 * takes the head and releases the lock; each is a command of its own. Without
 * the lock a consumer handles the message that it looked at, whichever it took:
 * right with one consumer, while several lose messages and repeat others. */

/* --- releasing ------------------------------------------------------------ */

static void conclude(struct weir__consumer *consumer)
{
    if (consumer->message != NULL)
        weir__consumer_took(consumer);
    else if (consumer->again_ns >= 0)
        weir__consumer_wait(consumer, consumer->again_ns);
    else
        weir__consumer_rest(consumer);
}

/* Where releasing fails the lock is free by itself when its time is over. */
static void on_unlocked(int code, const struct redisReply *reply, void *arg)
{
    struct weir__consumer *consumer = arg;

    if (code == WEIR_ECANCELED)
        return;
    weir__topic_log_error(&consumer->topic->base, "unlock", code, reply);
    conclude(consumer);
}

/* Release the lock if it is held; then the message, or a pause of `again_ns`,
 * or rest. */
static void leave(struct weir__consumer *consumer, int64_t again_ns)
{
    struct weir__buf bytes = {0};

    consumer->again_ns = again_ns;
    if (!consumer->has_lock) {
        conclude(consumer);
        return;
    }
    consumer->has_lock = false;
    weir__resp_eval(&bytes, &weir__script_classic_unlock, 3, 2);
    weir__prefix_keys(&bytes, &consumer->topic->base.prefix,
                      "lock lockers absent");
    weir__resp_str(&bytes, consumer->owner);
    weir__resp_str(&bytes, consumer->topic->base.name);
    weir__consumer_send(consumer, &bytes, &weir__script_classic_unlock,
                        WEIR__SEND_AGAIN, on_unlocked);
}

/* --- taking --------------------------------------------------------------- */

static void on_popped(int code, const struct redisReply *reply, void *arg)
{
    struct weir__consumer *consumer = arg;
    bool has_lock = consumer->has_lock;
    int64_t token;

    if (code == WEIR_OK && !weir__reply_int(reply, 1, &token))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && token > 0 && has_lock &&
        !weir__consumer_keep(consumer, reply, 2))
        code = WEIR_ENOMEM;
    if (code != WEIR_OK) {
        weir__consumer_lost(consumer, "pop", code, reply);
        return;
    }
    if (token < 0) { /* the lock ran out meanwhile */
        consumer->has_lock = false;
        weir__consumer_next(consumer);
        return;
    }
    if (token > 0) {
        consumer->message->run.token = (uint64_t)token; /* it is not parked */
        weir__claim_note_token(&consumer->topic->base, (uint64_t)token);
    }
    leave(consumer, -1);
}

/* How long until the message that was looked at is due. */
static int64_t wait_of(const struct redisReply *reply)
{
    struct weir_slice bytes, id;
    struct weir__record record;
    int64_t time_us = 0, due_ms = 0, wait_us;

    if (!weir__reply_time(reply, 0, &time_us) ||
        !weir__reply_str(reply, 1, &bytes) ||
        weir__message_read(bytes, &id, &due_ms, &record) == WEIR_EMALFORMED)
        return 0;
    wait_us = due_ms * 1000 - time_us;
    if (wait_us > WEIR__FIFO_WAIT_US)
        wait_us = WEIR__FIFO_WAIT_US; /* then the server is polled again */
    return wait_us <= 0 ? 0 : wait_us * 1000;
}

static void on_peeked(int code, const struct redisReply *reply, void *arg)
{
    struct weir__consumer *consumer = arg;
    struct weir_slice bytes;
    int64_t wait_ns;

    if (code != WEIR_OK) {
        weir__consumer_lost(consumer, "peek", code, reply);
        return;
    }
    if (!weir__reply_str(reply, 1, &bytes)) {
        leave(consumer, -1);
        return;
    }
    wait_ns = wait_of(reply);
    if (wait_ns > 0) {
        leave(consumer, wait_ns);
        return;
    }
    if (!consumer->has_lock && !weir__consumer_keep(consumer, reply, 1)) {
        weir__consumer_lost(consumer, "peek", WEIR_ENOMEM, NULL);
        return;
    }
    weir__consumer_pop(consumer, "done", on_popped);
}

static void peek(struct weir__consumer *consumer)
{
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_classic_peek, 2, 2);
    weir__prefix_keys(&bytes, &consumer->topic->base.prefix, "fifo idle");
    weir__resp_str(&bytes, consumer->topic->base.place->server->worker);
    weir__resp_int(&bytes, consumer->topic->in_hand > 0);
    weir__consumer_send(consumer, &bytes, &weir__script_classic_peek,
                        WEIR__SEND_AGAIN, on_peeked);
}

/* --- locking -------------------------------------------------------------- */

static void on_locked(int code, const struct redisReply *reply, void *arg)
{
    struct weir__consumer *consumer = arg;
    int64_t is_mine, free_ms = 0;

    if (code == WEIR_OK && !weir__reply_int(reply, 0, &is_mine))
        code = WEIR_ESERVER;
    if (code != WEIR_OK) {
        weir__consumer_lost(consumer, "lock", code, reply);
        return;
    }
    if (is_mine == 0) {
        (void)weir__reply_int(reply, 1, &free_ms); /* else: at once */
        if (free_ms > WEIR__FIFO_WAIT_US / 1000)
            free_ms = WEIR__FIFO_WAIT_US / 1000;
        weir__consumer_wait(consumer,
                            (free_ms < 0 ? 1 : free_ms + 1) * INT64_C(1000000));
        return;
    }
    consumer->has_lock = true;
    peek(consumer);
}

void weir__sync_begin(struct weir__consumer *consumer)
{
    struct weir__classic_topic *topic = consumer->topic;
    struct weir__buf bytes = {0};

    consumer->is_auto = true;
    if (!topic->base.options->lock) {
        peek(consumer);
        return;
    }
    weir__resp_eval(&bytes, &weir__script_classic_lock, 3, 3);
    weir__prefix_keys(&bytes, &topic->base.prefix, "lock lockers meta");
    weir__resp_str(&bytes, consumer->owner);
    weir__resp_str(&bytes, topic->base.place->server->worker);
    weir__resp_int(&bytes, weir__options_lease_ms(topic->base.options));
    weir__consumer_send(consumer, &bytes, &weir__script_classic_lock,
                        WEIR__SEND_ONCE, on_locked);
}

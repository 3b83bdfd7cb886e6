/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay_private.h"
#include "adapters/redis/delay_wire.h"
#include "core/random.h"

/* The store's two connections, and what has to be asked on each new one. */

/* --- the producer number ------------------------------------------------ */

void weir__delay_fail_collected(struct weir__delay *store, int code)
{
    for (size_t i = 0; i < WEIR__TOPIC_BUCKETS; i++)
        for (struct weir__store_topic *topic = store->buckets[i]; topic != NULL;
             topic = topic->next_in_bucket)
            weir__topic_fail_adds(topic, code);
}

/* TIME answers with seconds and microseconds. */
static void on_time(int code, const struct redisReply *reply, void *arg)
{
    struct weir__delay *store = arg;
    struct weir_slice seconds, us;

    if (code != WEIR_OK || !weir__reply_str(reply, 0, &seconds) ||
        !weir__reply_str(reply, 1, &us))
        return;
    store->ahead_ms = weir__digits_read(seconds) * 1000 +
                      weir__digits_read(us) / 1000 -
                      weir__delay_now_ns(store) / 1000000;
}

/* A server that is full counts nobody, but lets verdicts through: they must not
 * wait for it. Numbers above those that are counted, by chance. */
static uint32_t number_by_chance(const struct weir__delay *store)
{
    uint64_t state = store->options.seed ^ store->connections ^
                     (uint64_t)weir__delay_now_ns(store);

    return (uint32_t)(weir__random_next(&state) & 0x7fffff) | 0x800000;
}

static void on_number(int code, const struct redisReply *reply, void *arg)
{
    struct weir__delay *store = arg;

    store->asks_number = false;
    if (code == WEIR_ESERVER)
        weir__log(store->options.log, WEIR_LEVEL_WARN,
                  "redis: no producer number: %s", reply->str);
    if (code == WEIR_OK || code == WEIR_ESERVER) {
        store->seqs.producer =
            code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER
                ? (uint32_t)reply->integer
                : number_by_chance(store);
        store->has_number = true;
        for (size_t i = 0; i < WEIR__TOPIC_BUCKETS; i++)
            for (struct weir__store_topic *topic = store->buckets[i];
                 topic != NULL; topic = topic->next_in_bucket) {
                weir__topic_flush_adds(topic);
                weir__topic_flush_settles(topic);
            }
        weir__conn_flush(store->commands);
    } else {
        weir__delay_fail_collected(store, code);
    }
}

void weir__delay_ask_number(struct weir__delay *store)
{
    struct weir__buf time = {0}, number = {0};

    if (store->asks_number || store->is_closed)
        return;
    weir__resp_command(&time, 1);
    weir__resp_str(&time, "TIME");
    (void)weir__conn_send(store->commands, &time, NULL, WEIR__SEND_AGAIN,
                          on_time, store); /* then names do not tell the time */
    weir__resp_command(&number, 2);
    weir__resp_str(&number, "INCR");
    weir__resp_str(&number, "weir:producers");
    if (weir__conn_send(store->commands, &number, NULL, WEIR__SEND_AGAIN,
                        on_number, store) == WEIR_OK)
        store->asks_number = true; /* else the next flush asks again */
}

/* --- connections -------------------------------------------------------- */

static void on_commands(int code, const char *text, void *arg)
{
    struct weir__delay *store = arg;

    store->has_number = false;
    if (code == WEIR_OK) {
        store->connections++;
        weir__delay_ask_number(store);
        weir__conn_flush(store->commands);
    }
    store->events.connection(code, text, store->options.arg);
}

/* What was published while nobody listened is lost: look once. */
static void wake_everybody(struct weir__delay *store)
{
    for (size_t i = 0; i < WEIR__TOPIC_BUCKETS; i++)
        for (struct weir__store_topic *topic = store->buckets[i]; topic != NULL;
             topic = topic->next_in_bucket)
            if (topic->user != NULL)
                store->events.wake(topic->user);
}

static void on_wakes(int code, const char *text, void *arg)
{
    struct weir__delay *store = arg;

    if (code == WEIR_OK)
        wake_everybody(store);
    else
        weir__log(store->options.log, WEIR_LEVEL_DEBUG,
                  "redis: no wake-ups: %s; connecting again", text);
}

static void on_message(struct weir_slice payload, void *arg)
{
    struct weir__delay *store = arg;
    struct weir__store_topic *topic = weir__topic_find(store, payload);

    if (topic == NULL || topic->user == NULL)
        return; /* of an earlier life of this worker's name */
    store->events.wake(topic->user);
}

int weir__delay_connect(struct weir__delay *store)
{
    const struct weir__redis_options *options = &store->options;
    char channel[sizeof(store->worker) + 16];
    struct weir__conn_options conn = {
        .loop = options->loop,
        .url = options->url,
        .name = store->worker,
        .scripts = weir__scripts,
        .seed = options->seed,
        .wait_ms = options->wait_ms,
        .log = options->log,
        .on_state = on_commands,
        .arg = store,
        .depth = options->depth,
    };
    int rc = weir__conn_open(&conn, &store->commands);

    if (rc != WEIR_OK)
        return rc;
    weir__wake_channel(channel, sizeof(channel), store->worker);
    conn.scripts = NULL;
    conn.channel = channel;
    conn.seed = options->seed + 1;
    conn.on_state = on_wakes;
    conn.on_message = on_message;
    return weir__conn_open(&conn, &store->wakes);
}

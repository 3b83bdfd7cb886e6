/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/store/kind.h"
#include "core/random.h"
#include "core/text.h"

/* The store's connections, and what has to be asked on each new one. */

/* --- the producer number ------------------------------------------------ */

/* TIME answers with seconds and microseconds. */
static void on_time(int code, const struct redisReply *reply, void *arg)
{
    struct weir__redis *store = arg;
    int64_t ms;

    if (code == WEIR_OK && weir__reply_clock(reply, &ms))
        store->ahead_ms = ms - weir__redis_now_ns(store) / 1000000;
}

/* A server that is full counts nobody, but lets verdicts through: they must not
 * wait for it. Numbers above those that are counted, by chance. */
static uint32_t number_by_chance(const struct weir__redis *store)
{
    uint64_t state = store->options.seed ^ store->connections ^
                     (uint64_t)weir__redis_now_ns(store);

    return (uint32_t)(weir__random_next(&state) & 0x7fffff) | 0x800000;
}

static void on_number(int code, const struct redisReply *reply, void *arg)
{
    struct weir__redis *store = arg;

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
        code = WEIR_OK;
    }
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        if (topic->kind->numbered != NULL)
            topic->kind->numbered(topic, code);
    weir__conn_flush(store->commands);
}

void weir__redis_request_number(struct weir__redis *store)
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

/* --- the list of topics ------------------------------------------------- */

void weir__redis_register_for(struct weir__redis *store, const char *name,
                              struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_str(&bytes, name);
    weir__redis_send(store, &bytes, NULL, WEIR__SEND_AGAIN, request);
}

void weir__topic_register(struct weir__store_topic *topic)
{
    if (topic->registered == topic->store->connections)
        return;
    weir__redis_register_for(topic->store, topic->name, NULL);
    topic->registered = topic->store->connections;
}

/* --- connections -------------------------------------------------------- */

/* What was not sent yet waits for a new number, from now on: not only when what
 * was sent is given up. */
static void mark_all(struct weir__redis *store)
{
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        weir__topic_mark(topic);
}

static void on_commands(int code, const char *text, void *arg)
{
    struct weir__redis *store = arg;
    bool had_number = store->has_number;

    store->has_number = false;
    if (code != WEIR_OK && had_number)
        mark_all(store);
    if (code == WEIR_OK) {
        store->connections++;
        weir__redis_request_number(store);
        for (struct weir__store_topic *topic = store->topics; topic != NULL;
             topic = topic->next)
            if (topic->kind->connected != NULL)
                topic->kind->connected(topic);
        weir__conn_flush(store->commands);
    }
    store->events.connection(code, text, store->options.arg);
}

static void wake(struct weir__store_topic *topic)
{
    if (topic->user == NULL)
        return;
    if (topic->kind->woken != NULL)
        topic->kind->woken(topic);
    else
        topic->store->events.wake(topic->user);
}

static void on_wakes(int code, const char *text, void *arg)
{
    struct weir__redis *store = arg;

    if (code != WEIR_OK) {
        weir__log(store->options.log, WEIR_LEVEL_DEBUG,
                  "redis: no wake-ups: %s; connecting again", text);
        return;
    }
    /* What was published while nobody listened is lost: look once. */
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        wake(topic);
}

/* A topic, and behind a blank the name of its new pack where there is one. */
static void on_message(struct weir_slice payload, void *arg)
{
    const uint8_t *blank =
        payload.len == 0 ? NULL : memchr(payload.ptr, ' ', payload.len);
    size_t len = blank == NULL ? payload.len : (size_t)(blank - payload.ptr);
    struct weir_slice name = {payload.ptr, len};
    bool has_pack = payload.len == len + 1 + WEIR__SEQ_LEN;
    struct weir__store_topic *topic = weir__redis_find(arg, name);

    for (; topic != NULL; topic = topic->next_in_bucket) {
        if (topic->user == NULL ||
            !weir__slice_equal(weir__slice_str(topic->name), name))
            continue;
        if (has_pack && topic->kind->hinted != NULL)
            topic->kind->hinted(topic, (const char *)blank + 1);
        wake(topic);
    }
}

int weir__redis_connect(struct weir__redis *store)
{
    const struct weir__redis_options *options = &store->options;
    char channel[sizeof(store->worker) + 16];
    struct weir__conn_options conn = {
        .loop = options->loop,
        .url = &store->url,
        .name = store->worker,
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
    conn.channel = channel;
    conn.seed = options->seed + 1;
    conn.on_state = on_wakes;
    conn.on_message = on_message;
    conn.is_beside = true;
    return weir__conn_open(&conn, &store->wakes);
}

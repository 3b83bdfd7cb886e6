/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/bounded_private.h"
#include "adapters/redis/delay_wire.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/random.h"
#include "core/text.h"

/* Connections, what is sent on them, and names on the server. */

#define ERROR_NS INT64_C(5000000000) /* between two such lines */

/* --- sending ------------------------------------------------------------ */

static void answered(int code, const struct redisReply *reply, void *arg)
{
    struct weir__bound_ask *ask = arg;

    ask->done(ask, code, reply);
}

void weir__bounded_fail_all(struct weir__bounded *store)
{
    while (store->failed != NULL) {
        struct weir__bound_ask *ask = store->failed;

        store->failed = ask->next;
        if (store->failed == NULL)
            store->failed_end = &store->failed;
        ask->done(ask, ask->code, NULL);
    }
}

static void on_failing(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__bounded *store = timer->data;
    int none = 0, *depth = store->options.depth;

    (void)loop; /* the store's own */
    (void)events;
    if (depth == NULL)
        depth = &none;
    (*depth)++; /* the owner does not close us from in here */
    weir__bounded_fail_all(store);
    (*depth)--;
}

void weir__bounded_failing_init(struct weir__bounded *store)
{
    store->failed_end = &store->failed;
    ev_timer_init(&store->failing, on_failing, 0., 0.);
    store->failing.data = store;
}

void weir__bounded_fail(struct weir__bound_ask *ask, int code)
{
    struct weir__bounded *store = ask->store;

    ask->code = code;
    ask->next = NULL;
    *store->failed_end = ask;
    store->failed_end = &ask->next;
    if (!store->is_closed && !ev_is_active(&store->failing))
        ev_timer_start(store->options.loop, &store->failing);
}

void weir__bounded_send(struct weir__bounded *store, struct weir__buf *bytes,
                        const struct weir__script *script, unsigned flags,
                        struct weir__bound_ask *ask)
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
        weir__bounded_fail(ask, rc);
}

void weir__bound_announce(struct weir__bound_topic *topic)
{
    struct weir__bounded *store = topic->store;
    struct weir__buf bytes = {0};

    if (topic->announced == store->connections)
        return;
    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_str(&bytes, topic->name);
    weir__bounded_send(store, &bytes, NULL, WEIR__SEND_AGAIN, NULL);
    topic->announced = store->connections;
}

/* --- the producer's number ---------------------------------------------- */

static void on_time(int code, const struct redisReply *reply, void *arg)
{
    struct weir__bounded *store = arg;
    struct weir_slice seconds, micros;

    if (code != WEIR_OK || !weir__reply_str(reply, 0, &seconds) ||
        !weir__reply_str(reply, 1, &micros))
        return;
    store->ahead_ms = weir__digits_read(seconds) * 1000 +
                      weir__digits_read(micros) / 1000 -
                      weir__bounded_now_ns(store) / 1000000;
}

static void on_number(int code, const struct redisReply *reply, void *arg)
{
    struct weir__bounded *store = arg;
    uint64_t chance = store->options.seed ^ store->connections ^
                      (uint64_t)weir__bounded_now_ns(store);

    store->asks_number = false;
    store->has_number = code == WEIR_OK || code == WEIR_ESERVER;
    store->seqs.producer =
        code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER
            ? (uint32_t)reply->integer
            : (uint32_t)(weir__random_next(&chance) & 0x7fffff) | 0x800000;
    for (struct weir__bound_topic *topic = store->topics; topic != NULL;
         topic = topic->next) {
        if (store->has_number)
            weir__bound_flush_adds(topic);
        else
            weir__bound_fail_adds(topic, code);
    }
    weir__conn_flush(store->commands);
}

void weir__bounded_ask_number(struct weir__bounded *store)
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
    struct weir__bounded *store = arg;

    store->has_number = false;
    if (code == WEIR_OK) {
        store->connections++;
        weir__bounded_ask_number(store);
        weir__conn_flush(store->commands);
    }
    store->events.connection(code, text, store->options.arg);
}

static void on_wakes(int code, const char *text, void *arg)
{
    struct weir__bounded *store = arg;

    if (code != WEIR_OK) {
        weir__log(store->options.log, WEIR_LEVEL_DEBUG,
                  "redis: no wake-ups: %s; connecting again", text);
        return;
    }
    /* What was published while nobody listened is lost: look once. */
    for (struct weir__bound_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        if (topic->user != NULL)
            store->events.wake(topic->user);
}

static void on_message(struct weir_slice payload, void *arg)
{
    struct weir__bounded *store = arg;
    struct weir__bound_topic *topic = weir__bound_find(store, payload);

    if (topic != NULL && topic->user != NULL)
        store->events.wake(topic->user);
}

int weir__bounded_connect(struct weir__bounded *store)
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

/* --- names -------------------------------------------------------------- */

void weir__bound_keys(struct weir__buf *buf, const char *topic,
                      const char *names)
{
    while (*names != '\0') {
        char key[WEIR__BOUND_KEY_MAX];
        size_t len = strcspn(names, " ");

        (void)snprintf(key, sizeof(key), "weir:{%s}:%.*s", topic, (int)len,
                       names); /* it fits */
        weir__resp_str(buf, key);
        names += len + (names[len] == ' ');
    }
}

void weir__bound_group_key(struct weir__buf *buf, const char *topic, char list,
                           struct weir_slice group)
{
    size_t topic_len = strlen(topic);

    weir__resp_begin(buf, topic_len + group.len + 10);
    weir__buf_append(buf, "weir:{", 6);
    weir__buf_append(buf, topic, topic_len);
    weir__buf_append(buf, "}:", 2);
    weir__buf_append(buf, &list, 1);
    weir__buf_append(buf, ":", 1);
    weir__buf_append(buf, group.ptr, group.len);
    weir__resp_end(buf);
}

/* --- what is told ------------------------------------------------------- */

void weir__bound_log_error(struct weir__bound_topic *topic, const char *what,
                           int code, const struct redisReply *reply)
{
    int64_t now_ns = weir__bounded_now_ns(topic->store);
    const char *text = code == WEIR_ESERVER && reply != NULL &&
                               reply->type == REDIS_REPLY_ERROR
                           ? reply->str
                           : weir_error_text(code);

    if (code == WEIR_OK || code == WEIR_ECANCELED ||
        (topic->error_ns != INT64_MIN && now_ns - topic->error_ns < ERROR_NS))
        return;
    topic->error_ns = now_ns;
    weir__log(topic->store->options.log, WEIR_LEVEL_WARN, "redis: %s %s: %s",
              topic->name, what, text);
}

void weir__bound_tell_drop(const struct weir__bound_topic *topic,
                           struct weir_slice group, enum weir_drop reason,
                           uint64_t count)
{
    const struct weir__bounded *store = topic->store;
    struct weir__dropped dropped = {
        .topic = weir__slice_str(topic->name),
        .group = group,
        .reason = reason,
        .count = count,
    };

    if (store->events.dropped != NULL && count > 0 && !store->is_closed)
        store->events.dropped(&dropped, store->options.arg);
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/store/base.h"
#include "core/random.h"

/* The store's connections, and what has to be asked on each new one. */

/* --- the producer number ------------------------------------------------ */

/* TIME answers with seconds and microseconds. */
static void on_time(int code, const struct redisReply *reply, void *arg)
{
    struct weir__base *base = arg;
    int64_t ms;

    if (code == WEIR_OK && weir__reply_clock(reply, &ms))
        base->ahead_ms = ms - weir__base_now_ns(base) / 1000000;
}

/* A server that is full counts nobody, but lets verdicts through: they must not
 * wait for it. Numbers above those that are counted, by chance. */
static uint32_t number_by_chance(const struct weir__base *base)
{
    uint64_t state = base->options.seed ^ base->connections ^
                     (uint64_t)weir__base_now_ns(base);

    return (uint32_t)(weir__random_next(&state) & 0x7fffff) | 0x800000;
}

static void on_number(int code, const struct redisReply *reply, void *arg)
{
    struct weir__base *base = arg;

    base->asks_number = false;
    if (code == WEIR_ESERVER)
        weir__log(base->options.log, WEIR_LEVEL_WARN,
                  "redis: no producer number: %s", reply->str);
    if (code == WEIR_OK || code == WEIR_ESERVER) {
        base->seqs.producer =
            code == WEIR_OK && reply->type == REDIS_REPLY_INTEGER
                ? (uint32_t)reply->integer
                : number_by_chance(base);
        base->has_number = true;
        code = WEIR_OK;
    }
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next)
        base->kind->numbered(topic, code);
    weir__conn_flush(base->commands);
}

void weir__base_ask_number(struct weir__base *base)
{
    struct weir__buf time = {0}, number = {0};

    if (base->asks_number || base->is_closed)
        return;
    weir__resp_command(&time, 1);
    weir__resp_str(&time, "TIME");
    (void)weir__conn_send(base->commands, &time, NULL, WEIR__SEND_AGAIN,
                          on_time, base); /* then names do not tell the time */
    weir__resp_command(&number, 2);
    weir__resp_str(&number, "INCR");
    weir__resp_str(&number, "weir:producers");
    if (weir__conn_send(base->commands, &number, NULL, WEIR__SEND_AGAIN,
                        on_number, base) == WEIR_OK)
        base->asks_number = true; /* else the next flush asks again */
}

/* --- the list of topics ------------------------------------------------- */

void weir__base_announce_to(struct weir__base *base, const char *name,
                            struct weir__ask *ask)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__resp_str(&bytes, "weir:topics");
    weir__resp_str(&bytes, name);
    weir__base_send(base, &bytes, NULL, WEIR__SEND_AGAIN, ask);
}

void weir__base_announce_name(struct weir__base *base, const char *name)
{
    weir__base_announce_to(base, name, NULL);
}

void weir__base_announce(struct weir__base_topic *topic)
{
    if (topic->announced == topic->base->connections)
        return;
    weir__base_announce_name(topic->base, topic->name);
    topic->announced = topic->base->connections;
}

/* --- connections -------------------------------------------------------- */

/* What was not sent yet waits for a new number, from now on: not only when what
 * was sent is given up. */
static void mark_all(struct weir__base *base)
{
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
         topic = topic->next)
        weir__base_mark(topic);
}

static void on_commands(int code, const char *text, void *arg)
{
    struct weir__base *base = arg;
    bool had_number = base->has_number;

    base->has_number = false;
    if (code != WEIR_OK && had_number)
        mark_all(base);
    if (code == WEIR_OK) {
        base->connections++;
        base->kind->connected(base);
        weir__conn_flush(base->commands);
    }
    base->events.connection(code, text, base->options.arg);
}

static void wake(struct weir__base_topic *topic)
{
    if (topic->user == NULL)
        return;
    if (topic->base->kind->woken != NULL)
        topic->base->kind->woken(topic);
    else
        topic->base->events.wake(topic->user);
}

static void on_wakes(int code, const char *text, void *arg)
{
    struct weir__base *base = arg;

    if (code != WEIR_OK) {
        weir__log(base->options.log, WEIR_LEVEL_DEBUG,
                  "redis: no wake-ups: %s; connecting again", text);
        return;
    }
    /* What was published while nobody listened is lost: look once. */
    for (struct weir__base_topic *topic = base->topics; topic != NULL;
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
    struct weir__base_topic *topic = weir__base_find(arg, name);

    if (topic == NULL)
        return; /* of another kind, or an earlier life */
    if (payload.len == len + 1 + WEIR__SEQ_LEN && topic->user != NULL &&
        topic->base->kind->hinted != NULL)
        topic->base->kind->hinted(topic, (const char *)blank + 1);
    wake(topic);
}

int weir__base_connect(struct weir__base *base)
{
    const struct weir__redis_options *options = &base->options;
    char channel[sizeof(base->worker) + 16];
    struct weir__conn_options conn = {
        .loop = options->loop,
        .url = &base->url,
        .name = base->worker,
        .scripts = base->kind->scripts,
        .seed = options->seed,
        .wait_ms = options->wait_ms,
        .log = options->log,
        .on_state = on_commands,
        .arg = base,
        .depth = options->depth,
    };
    int rc = weir__conn_open(&conn, &base->commands);

    if (rc != WEIR_OK || !base->kind->has_wakes)
        return rc;
    weir__wake_channel(channel, sizeof(channel), base->worker);
    conn.scripts = NULL;
    conn.channel = channel;
    conn.seed = options->seed + 1;
    conn.on_state = on_wakes;
    conn.on_message = on_message;
    conn.is_beside = true;
    return weir__conn_open(&conn, &base->wakes);
}

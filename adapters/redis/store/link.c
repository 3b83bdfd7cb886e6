/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/store/confirm.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/sentinel.h"
#include "core/random.h"
#include "core/text.h"

/* The store's connections, and what becomes different with each new one. */

#define REGISTER_NS INT64_C(600000000000) /* somebody may have removed it */

/* --- names of packs ----------------------------------------------------- */

enum { PRODUCER_BITS = 23, COUNTED = 1 << PRODUCER_BITS };

static void use_number(struct weir__redis *store, uint64_t number)
{
    store->seqs.producer = (uint32_t)(number & (COUNTED - 1)) | COUNTED;
}

void weir__redis_number_by_chance(struct weir__redis *store)
{
    uint64_t state = store->options.seed ^ store->connections ^
                     store->seqs.last ^ (uint64_t)weir__redis_now_ns(store);

    use_number(store, weir__random_next(&state));
}

/* The server gives the number of a connection once, each server from 1 on: so
 * those of the server before this one are moved somewhere else. */
static void take_number(const struct weir__server *server)
{
    struct weir__redis *store = server->store;
    int64_t client = weir__conn_client_id(server->commands);
    const char *identity = weir__conn_identity(server->commands);

    if (client == 0 || identity[0] == '\0')
        weir__redis_number_by_chance(store);
    else
        use_number(store, (uint64_t)client ^ strtoull(identity, NULL, 16));
}

/* Where it may not be asked names do not tell the time. */
static void take_clock(const struct weir__server *server)
{
    struct weir__redis *store = server->store;
    int64_t ms = weir__conn_server_ms(server->commands);

    if (ms != 0)
        store->ahead_ms = ms - weir__redis_now_ns(store) / 1000000;
}

/* --- the list of topics ------------------------------------------------- */

void weir__redis_register_for(struct weir__redis *store, const char *name,
                              struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SADD");
    weir__topics_key(&bytes, store);
    weir__resp_str(&bytes, name);
    weir__place_send(&store->place, &bytes, NULL,
                     WEIR__SEND_AGAIN | WEIR__SEND_REPLAY, request);
}

void weir__topic_register(struct weir__store_topic *topic)
{
    struct weir__redis *store = topic->store;
    uint64_t connection = topic->place->server->connection;
    int64_t now_ns = weir__redis_now_ns(store);

    if (topic->registered == connection &&
        now_ns - topic->registered_ns < REGISTER_NS)
        return;
    weir__redis_register_for(store, topic->name, NULL);
    topic->registered = connection;
    topic->registered_ns = now_ns;
}

/* --- connections -------------------------------------------------------- */

/* What was not sent yet waits for the next one, from now on: not only when what
 * was sent is given up. */
static void on_lost(struct weir__server *server)
{
    server->down_ns = weir__redis_now_ns(server->store);
    for (struct weir__store_topic *topic = server->store->topics; topic != NULL;
         topic = topic->next)
        if (topic->place->server == server)
            weir__topic_mark(topic);
}

/* Leases of other workers may have run out meanwhile, as ours did. */
static void calm_down(const struct weir__server *server,
                      struct weir__store_topic *topic)
{
    int64_t ns = weir__redis_now_ns(server->store) - server->down_ns;

    if (server->down_ns != 0 && topic->user != NULL &&
        topic->claim.lease_ms > 0 && ns / 500000 > topic->claim.lease_ms)
        weir__topic_calm(topic);
}

static void on_connected(struct weir__server *server)
{
    struct weir__redis *store = server->store;

    store->connections++;
    server->connection = store->connections;
    weir__sentinels_confirm(store->sentinels);
    take_number(server);
    take_clock(server);
    weir__confirms_connected(server);
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next) {
        if (topic->place->server != server)
            continue;
        calm_down(server, topic);
        if (topic->kind->connected != NULL)
            topic->kind->connected(topic);
    }
    weir__conn_flush(server->commands);
}

static void on_commands(int code, const char *text, void *arg)
{
    struct weir__server *server = arg;
    struct weir__redis *store = server->store;
    bool was_up = server->is_up;

    server->is_up = code == WEIR_OK;
    if (server->is_up)
        on_connected(server);
    else if (was_up)
        on_lost(server);
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
    const struct weir__server *server = arg;
    const struct weir__redis *store = server->store;

    if (code != WEIR_OK) {
        weir__log(store->options.log, WEIR_LEVEL_DEBUG,
                  "redis: no wake-ups: %s; connecting again", text);
        return;
    }
    /* What was published while nobody listened is lost: look once. */
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        if (topic->place->server == server)
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
    const struct weir__server *server = arg;
    struct weir__store_topic *topic = weir__redis_find(server->store, name);

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
    struct weir__server *server = &store->server;
    char channel[sizeof(store->worker) + WEIR__REDIS_PREFIX_CAP + 8];
    struct weir__conn_options conn = {
        .loop = options->loop,
        .url = &store->url,
        .name = store->worker,
        .seed = options->seed,
        .wait_ms = options->wait_ms,
        .log = options->log,
        .wants_identity = true,
        .judge = weir__redis_judge,
        .on_state = on_commands,
        .arg = server,
        .depth = options->depth,
    };
    int rc = WEIR_OK;

    if (store->url.is_sentinel)
        rc = weir__sentinels_open(&conn, &store->sentinels);
    store->locator = weir__sentinels_locator(store->sentinels);
    conn.locator = store->locator;
    if (rc == WEIR_OK)
        rc = weir__conn_open(&conn, &server->commands);
    if (rc != WEIR_OK)
        return rc;
    weir__wake_channel(channel, sizeof(channel), store);
    conn.channel = channel;
    conn.seed = options->seed + 1;
    conn.on_state = on_wakes;
    conn.on_message = on_message;
    conn.is_beside = true;
    conn.lead = server->commands;
    conn.wants_identity = false;
    return weir__conn_open(&conn, &server->wakes);
}

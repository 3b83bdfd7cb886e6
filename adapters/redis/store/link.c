/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/confirm.h"
#include "adapters/redis/store/kind.h"
#include "adapters/redis/store/sentinel.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"

/* The store's connections, and what becomes different with each new one. */

enum { SEED_MS = 1000 }; /* for one of several hosts */

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
static void take_clock(struct weir__server *server)
{
    int64_t ms = weir__conn_server_ms(server->commands);

    if (ms != 0)
        server->ahead_ms = ms - weir__redis_now_ns(server->store) / 1000000;
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

static void listen(struct weir__server *server);

static void connected(const struct weir__server *server,
                      struct weir__store_topic *topic)
{
    calm_down(server, topic);
    if (topic->kind->connected != NULL)
        topic->kind->connected(topic);
}

static void on_connected(struct weir__server *server)
{
    struct weir__redis *store = server->store;

    store->connections++;
    server->connection = store->connections;
    weir__sentinels_confirm(store->sentinels);
    take_number(server);
    take_clock(server);
    weir__confirms_moved(store);
    weir__server_close_fetchers(server); /* it may be another server */
    listen(server);
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        if (topic->place->server == server)
            connected(server, topic);
    weir__conn_flush(server->commands);
}

/* Where there are several, a topic whose server is away waits for it alone. */
static bool has_any(const struct weir__redis *store)
{
    const struct weir__server *server = store->servers;

    while (server != NULL && !server->is_up)
        server = server->next;
    return server != NULL;
}

/* Others are up. */
static void tell_away(const struct weir__server *server, const char *why)
{
    const struct weir__redis *store = server->store;
    const struct weir__store_topic *topic = store->topics;
    char text[WEIR_MAX_TOPIC + 640];

    while (topic != NULL && topic->place->server != server)
        topic = topic->next;
    if (store->events.held == NULL ||
        (topic == NULL && (store->topics_place->server != server ||
                           !weir__place_is_asked(store->topics_place))))
        return;
    (void)snprintf(text, sizeof(text),
                   "%s port %u, which has %s%s, is away (%s)",
                   server->host.name, (unsigned)server->host.port,
                   topic != NULL ? "topic " : "the list of topics",
                   topic != NULL ? topic->name : "", why); /* fits */
    store->events.held(text, store->options.arg);
}

static void on_commands(int code, const char *text, void *arg)
{
    struct weir__server *server = arg;
    struct weir__redis *store = server->store;
    bool was_up = server->is_up;

    weir__keeper_shut(store->keeper);
    server->is_up = code == WEIR_OK;
    weir__keeper_reopen(store->keeper);
    server->is_away = !server->is_up;
    if (server->is_up)
        on_connected(server);
    else if (was_up)
        on_lost(server);
    if (!server->is_up)
        weir__cluster_lost(server);
    if (!server->is_up && has_any(store))
        tell_away(server, text);
    else if (store->events.connection != NULL)
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
        if (topic->place->server == server) {
            if (topic->kind->told != NULL)
                topic->kind->told(topic, weir__slice_str(""));
            wake(topic);
        }
}

/* A topic, and behind a blank the name of its new pack where there is one, or
 * what only its kind can read. */
static void on_message(struct weir_slice payload, void *arg)
{
    const uint8_t *blank =
        payload.len == 0 ? NULL : memchr(payload.ptr, ' ', payload.len);
    size_t len = blank == NULL ? payload.len : (size_t)(blank - payload.ptr);
    struct weir_slice name = {payload.ptr, len};
    bool has_pack = payload.len == len + 1 + WEIR__SEQ_LEN;
    bool has_more = blank != NULL && !has_pack;
    const struct weir__server *server = arg;
    struct weir__store_topic *topic = weir__redis_find(server->store, name);

    for (; topic != NULL; topic = topic->next_in_bucket) {
        if (!weir__slice_equal(weir__slice_str(topic->name), name))
            continue;
        if (has_more && topic->kind->told != NULL)
            topic->kind->told(topic,
                              weir__slice_of(blank + 1, payload.len - len - 1));
        if (has_more || topic->user == NULL)
            continue;
        if (has_pack && topic->kind->hinted != NULL)
            topic->kind->hinted(topic, (const char *)blank + 1);
        wake(topic);
    }
}

/* --- servers ------------------------------------------------------------ */

/* In a cluster each wake-up comes to all servers: each has a channel of its
 * own, or it would come once by each. */
static void name_worker(struct weir__server *server)
{
    const struct weir__redis *store = server->store;
    const char *identity =
        server->commands == NULL ? "" : weir__conn_identity(server->commands);

    if (weir__cluster_is_one(store) && identity[0] != '\0')
        (void)snprintf(server->worker, sizeof(server->worker), "%s@%.8s",
                       store->worker, identity); /* fits */
    else
        (void)snprintf(server->worker, sizeof(server->worker), "%s",
                       store->worker); /* likewise */
}

/* Sentinels name one primary, and a socket's other nodes are elsewhere. */
static bool may_be_cluster(const struct weir__redis *store)
{
    return !store->url.is_sentinel && !store->url.is_unix;
}

/* Several nodes of a cluster were named, each of which may be away. */
static bool has_seeds(const struct weir__redis *store)
{
    return !store->url.is_sentinel && store->url.host_count > 1;
}

static void find(void *arg, struct weir__conn *conn)
{
    const struct weir__redis_host *host = weir__cluster_host_of(arg);

    weir__conn_located(conn, host->name, host->port);
}

static void forget(void *arg, struct weir__conn *conn)
{
    (void)arg; /* nothing is under way */
    (void)conn;
}

/* Sentinels name one primary, and of other addresses the first server is at
 * their only host, but for a cluster's. */
static const struct weir__locator *locator_of(const struct weir__server *server)
{
    const struct weir__redis *store = server->store;

    if (store->sentinels != NULL)
        return store->locator;
    return server == store->servers && !has_seeds(store) ? NULL
                                                         : &server->locator;
}

/* Of any connection. */
static void fill_in(struct weir__server *server,
                    struct weir__conn_options *conn)
{
    const struct weir__redis *store = server->store;
    const struct weir__redis_options *options = &store->options;

    conn->loop = options->loop;
    conn->url = &store->url;
    if (conn->locator == NULL)
        conn->locator = locator_of(server);
    if (conn->name == NULL)
        conn->name = store->worker;
    if (conn->wait_ms == 0)
        conn->wait_ms = options->wait_ms;
    if (conn->wait_ms == 0 && weir__cluster_is_one(store))
        conn->wait_ms = WEIR__CLUSTER_WAIT_MS;
    if (conn->log == NULL)
        conn->log = options->log;
    conn->seed += options->seed;
    conn->depth = options->depth;
}

static int open_commands(struct weir__server *server)
{
    struct weir__redis *store = server->store;
    struct weir__conn_options conn = {
        .wants_identity = true,
        .judge = weir__redis_judge,
        .on_state = on_commands,
        .arg = server,
    };

    if (may_be_cluster(store))
        conn.on_slots = weir__cluster_slots;
    if (has_seeds(store))
        conn.connect_ms = conn.handshake_ms = SEED_MS;
    if (!store->url.is_sentinel) {
        conn.on_redirect = weir__place_redirected;
        conn.on_drained = weir__place_drained;
    }
    fill_in(server, &conn);
    return weir__conn_open(&conn, &server->commands);
}

int weir__link_beside(struct weir__server *server,
                      struct weir__conn_options *conn,
                      struct weir__conn **ret_conn)
{
    conn->lead = server->commands;
    conn->is_beside = true;
    if (!server->store->url.is_sentinel)
        conn->on_redirect = weir__place_redirected;
    fill_in(server, conn);
    return weir__conn_open(conn, ret_conn);
}

int weir__link_beside_place(struct weir__place *place,
                            struct weir__conn_options *conn,
                            struct weir__conn **ret_conn)
{
    if (may_be_cluster(place->store))
        conn->locator = &place->locator;
    if (!weir__cluster_is_one(place->store)) /* else it goes elsewhere */
        conn->lead = place->server->commands;
    fill_in(place->server, conn);
    return weir__conn_open(conn, ret_conn);
}

static int open_wakes(struct weir__server *server)
{
    char channel[sizeof(server->worker) + WEIR__REDIS_PREFIX_CAP + 8];
    struct weir__conn_options conn = {
        .channel = channel,
        .seed = 1,
        .on_state = on_wakes,
        .on_message = on_message,
        .arg = server,
    };

    if (server->store->events.wake == NULL)
        return WEIR_OK;
    weir__wake_channel(channel, sizeof(channel), server);
    return weir__link_beside(server, &conn, &server->wakes);
}

static bool is_listened_to(const struct weir__server *server)
{
    const struct weir__store_topic *topic = server->store->topics;

    while (topic != NULL &&
           (topic->user == NULL || topic->place->server != server))
        topic = topic->next;
    return topic != NULL;
}

/* See to it that wake-ups come, under the name that the server knows. */
static void listen(struct weir__server *server)
{
    char before[sizeof(server->worker)];
    struct weir__conn *wakes = server->wakes;

    memcpy(before, server->worker, sizeof(before));
    name_worker(server);
    if (wakes != NULL && strcmp(before, server->worker) == 0)
        return;
    server->wakes = NULL;
    weir__conn_close(wakes);
    if (!weir__cluster_is_one(server->store) || is_listened_to(server))
        (void)open_wakes(server); /* else with the next connection */
}

void weir__link_listen(struct weir__store_topic *topic)
{
    if (topic->user != NULL && topic->place->server->is_up)
        listen(topic->place->server);
}

void weir__link_wake(const struct weir__place *place)
{
    for (struct weir__store_topic *topic = place->store->topics; topic != NULL;
         topic = topic->next)
        if (topic->place == place)
            wake(topic);
}

void weir__link_arrived(struct weir__place *place, bool is_other)
{
    struct weir__redis *store = place->store;
    int64_t ns = weir__redis_now_ns(store) - place->since_ns;

    if (is_other && place->server->is_up)
        listen(place->server);
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next) {
        if (topic->place != place)
            continue;
        if (topic->user != NULL && topic->claim.lease_ms > 0 &&
            ns / 500000 > topic->claim.lease_ms)
            weir__topic_calm(topic);
        if (is_other && place->server->is_up && topic->kind->connected != NULL)
            topic->kind->connected(topic);
        weir__topic_mark(topic);
        wake(topic);
    }
}

static struct weir__server *server_new(struct weir__redis *store,
                                       const struct weir__redis_host *host)
{
    struct weir__server **end = &store->servers;
    struct weir__server *server = weir__mem_new(sizeof(*server));

    if (server == NULL)
        return NULL;
    server->store = store;
    server->host = *host;
    while (*end != NULL)
        end = &(*end)->next;
    weir__keeper_shut(store->keeper);
    *end = server;
    weir__keeper_reopen(store->keeper);
    server->locator = (struct weir__locator){find, forget, server, true};
    name_worker(server);
    return server;
}

static void unlink_server(struct weir__server *server)
{
    struct weir__server **at = &server->store->servers;

    while (*at != server)
        at = &(*at)->next;
    weir__keeper_shut(server->store->keeper);
    *at = server->next;
    weir__keeper_reopen(server->store->keeper);
}

int weir__link_open(struct weir__redis *store,
                    const struct weir__redis_host *host)
{
    struct weir__server *server = server_new(store, host);
    int rc;

    if (server == NULL)
        return WEIR_ENOMEM;
    rc = open_commands(server);
    if (rc != WEIR_OK) {
        unlink_server(server);
        weir__mem_free(server);
    }
    return rc;
}

void weir__link_end(struct weir__server *server)
{
    unlink_server(server);
    weir__confirms_close(server);
    weir__server_close_fetchers(server);
    weir__conn_close(server->wakes);
    weir__conn_close(server->commands);
    weir__mem_free(server);
}

void weir__server_close_fetchers(struct weir__server *server)
{
    for (size_t i = 0; i < WEIR__FETCHERS; i++) {
        struct weir__conn *conn = server->fetchers[i];

        server->fetchers[i] = NULL;
        weir__conn_close(conn);
    }
}

void weir__link_flush(struct weir__redis *store)
{
    for (struct weir__server *server = store->servers; server != NULL;
         server = server->next) {
        weir__confirms_flush(server);
        if (!server->is_dirty)
            continue;
        server->is_dirty = false;
        weir__conn_flush(server->commands);
    }
}

void weir__link_close(struct weir__redis *store)
{
    struct weir__server *server;

    for (server = store->servers; server != NULL; server = server->next) {
        weir__server_close_fetchers(server);
        weir__conn_close(server->wakes);
    }
    for (server = store->servers; server != NULL; server = server->next)
        weir__conn_close(server->commands);
}

void weir__link_fini(struct weir__redis *store)
{
    while (store->servers != NULL) {
        struct weir__server *server = store->servers;

        store->servers = server->next;
        weir__mem_free(server);
    }
}

int weir__redis_connect(struct weir__redis *store)
{
    char key[WEIR__KEY_MAX];
    int rc = weir__cluster_init(store);

    if (rc == WEIR_OK && server_new(store, &store->url.hosts[0]) == NULL)
        rc = WEIR_ENOMEM;
    if (rc != WEIR_OK)
        return rc;
    store->servers->connection = 1;
    (void)snprintf(key, sizeof(key), "%s:topics", store->url.prefix); /* fits */
    store->topics_place =
        weir__place_of_slot(store, weir__cluster_slot(weir__slice_str(key)));
    if (store->topics_place == NULL)
        return WEIR_ENOMEM;
    if (store->url.is_sentinel) {
        struct weir__conn_options conn = {0};

        fill_in(store->servers, &conn);
        rc = weir__sentinels_open(&conn, &store->sentinels);
    }
    store->locator = weir__sentinels_locator(store->sentinels);
    if (rc == WEIR_OK)
        rc = open_commands(store->servers);
    if (rc != WEIR_OK || has_seeds(store))
        return rc; /* which of them it is is not known yet */
    return open_wakes(store->servers);
}

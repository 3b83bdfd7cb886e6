/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/cluster.h"

#include <ev.h>
#include <string.h>

#include "adapters/redis/cluster/endpoint.h"
#include "adapters/redis/cluster/map.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/store/confirm.h"
#include "adapters/redis/store/kind.h"
#include "core/assert.h"
#include "core/mem.h"

enum {
    TICK_MS = 20,
    ASK_GAP_MS = 100,     /* between two questions for the map */
    SAME_GAP_MS = 400,    /* behind one that brought nothing new */
    FAILED_GAP_MS = 1000, /* behind one without an answer */
    SILENT_MS = 1000,     /* who owes an answer may have been replaced */
    LOOK_MS = 60000       /* the map changed, and nobody said so */
};

#define MS_NS INT64_C(1000000)

struct weir__cluster {
    struct weir__redis *store;
    struct weir__cluster_map *map; /* NULL: it is no cluster */
    size_t seed;  /* host of the url where the first server is */
    size_t tried; /* candidates so far, while no server answers */
    bool wants_map;
    bool is_asking;                 /* the one asked last has not answered */
    bool is_told;                   /* that answers are wrong */
    bool is_denied;                 /* the last answer: we may not ask */
    struct weir__server *named;     /* this one first, if there is */
    struct weir__server *not_asked; /* not this one, if there is another */
    struct weir__server *asked;     /* last */
    int64_t asked_ns;
    int64_t gap_ms; /* since then, before the next question */
    ev_timer timer; /* places that are not settled, and a question */
    ev_timer look;  /* each SILENT_MS */
};

bool weir__cluster_is_one(const struct weir__redis *store)
{
    return store->cluster != NULL && store->cluster->map != NULL;
}

struct weir__cluster_map *weir__cluster_map_of(const struct weir__redis *store)
{
    return store->cluster == NULL ? NULL : store->cluster->map;
}

/* --- servers -------------------------------------------------------------- */

/* NULL: there is no connection to it. */
static struct weir__server *find_server(const struct weir__redis *store,
                                        const struct weir__redis_host *host)
{
    struct weir__server *server = store->servers;

    while (server != NULL && !weir__endpoint_equal(&server->host, host))
        server = server->next;
    return server;
}

/* Connected to now if it was not; NULL: out of memory. */
static struct weir__server *server_at(struct weir__redis *store,
                                      const struct weir__redis_host *host)
{
    struct weir__server *server = find_server(store, host);

    if (server == NULL && weir__link_open(store, host) == WEIR_OK)
        server = find_server(store, host);
    return server;
}

static void name_server(struct weir__server *server,
                        const struct weir__redis_host *host)
{
    weir__keeper_shut(server->store->keeper);
    server->host = *host;
    weir__keeper_reopen(server->store->keeper);
}

static const struct weir__redis_host *
seed_of(const struct weir__cluster *cluster)
{
    return &cluster->store->url.hosts[cluster->seed];
}

/* The first one's own name for itself may be of no use. */
const struct weir__redis_host *
weir__cluster_host_of(const struct weir__server *server)
{
    const struct weir__redis *store = server->store;

    return server == store->servers ? seed_of(store->cluster) : &server->host;
}

struct weir__server *weir__cluster_server(struct weir__redis *store,
                                          uint16_t slot)
{
    const struct weir__cluster_node *node;

    if (store->cluster == NULL || store->cluster->map == NULL)
        return store->servers;
    node = weir__cluster_map_find(store->cluster->map, slot);
    return node == NULL ? NULL : server_at(store, &node->host);
}

/* --- the map -------------------------------------------------------------- */

static void arm(ev_timer *timer, struct ev_loop *loop, int64_t ms)
{
    if (ev_is_active(timer))
        return;
    ev_timer_set(timer, (double)ms / 1000., 0.);
    ev_timer_start(loop, timer);
}

bool weir__cluster_is_denied(const struct weir__redis *store)
{
    return store->cluster->is_denied;
}

void weir__cluster_tick_soon(struct weir__redis *store)
{
    arm(&store->cluster->timer, store->options.loop, TICK_MS);
}

void weir__cluster_abandon(struct weir__server *server)
{
    const struct weir__cluster_map *map = server->store->cluster->map;

    if (map != NULL && !weir__cluster_map_names(map, &server->host))
        weir__conn_abandon(server->commands,
                           "the cluster names another server");
}

/* What `by` told may be old. A place that is served leaves for a server that
 * says itself that it has the slot; that one is asked. */
static void look_at(struct weir__cluster *cluster, struct weir__place *place,
                    const struct weir__server *by)
{
    struct weir__server *server =
        weir__cluster_server(cluster->store, place->slot);

    if (server == NULL || server == place->server)
        return;
    if (server == by || place->server->is_away)
        weir__place_leave(place);
    else
        cluster->named = server;
}

/* Returns the map before. */
static struct weir__cluster_map *set_map(struct weir__cluster *cluster,
                                         struct weir__cluster_map *map)
{
    struct weir__cluster_map *before = cluster->map;

    weir__keeper_shut(cluster->store->keeper);
    cluster->map = map;
    weir__keeper_reopen(cluster->store->keeper);
    return before;
}

static void apply(struct weir__cluster *cluster, struct weir__cluster_map *map,
                  const struct weir__server *by)
{
    struct weir__redis *store = cluster->store;
    struct weir__cluster_map *before = set_map(cluster, map);

    for (size_t i = 0; i < WEIR__PLACE_BUCKETS; i++)
        for (struct weir__place *place = store->places[i]; place != NULL;
             place = place->next)
            look_at(cluster, place, by);
    weir__cluster_map_unref(before);
}

/* A lone node may call itself as nobody else can. */
static void name_lone(struct weir__cluster *cluster,
                      struct weir__cluster_map *map)
{
    if (cluster->map == NULL && weir__cluster_map_count(map) == 1)
        name_server(cluster->store->servers,
                    &weir__cluster_map_node(map, 0)->host);
}

/* It is a cluster. */
static void begin(struct weir__cluster *cluster)
{
    const struct weir__redis *store = cluster->store;

    cluster->asked_ns = weir__redis_now_ns(store);
    arm(&cluster->look, store->options.loop, SILENT_MS);
    if (store->options.wait_ms == 0)
        weir__conn_set_wait(store->servers->commands, WEIR__CLUSTER_WAIT_MS);
}

/* False: it was none, which is said once. */
static bool take_map(struct weir__server *server,
                     const struct redisReply *reply)
{
    struct weir__cluster *cluster = server->store->cluster;
    struct weir__cluster_map *map;
    struct weir_error err = {0};

    cluster->is_denied = reply->type == REDIS_REPLY_ERROR &&
                         weir__error_classify(reply->str) == WEIR__ERROR_DENIED;
    if (weir__cluster_map_read(reply, &server->host, cluster->map, &map,
                               &err) != WEIR_OK) {
        if (!cluster->is_told)
            weir__log(server->store->options.log, WEIR_LEVEL_WARN,
                      "redis: no map of the cluster of %s port %u: %s",
                      server->host.name, server->host.port, err.text);
        cluster->is_told = true;
        return false;
    }
    cluster->is_told = false;
    name_lone(cluster, map);
    if (cluster->map == NULL)
        begin(cluster);
    apply(cluster, map, server);
    return true;
}

/* --- asking --------------------------------------------------------------- */

static bool is_silent(const struct weir__server *server)
{
    return weir__conn_owed_ms(server->commands) >= SILENT_MS;
}

static bool may_answer(const struct weir__server *server)
{
    return weir__conn_is_ready(server->commands) && !is_silent(server);
}

/* In turn, beginning behind the one that was asked last. */
static struct weir__server *next_to_ask(const struct weir__cluster *cluster)
{
    struct weir__server *first = cluster->store->servers;
    struct weir__server *server = cluster->asked, *second_choice = NULL;

    if (cluster->named != NULL && may_answer(cluster->named))
        return cluster->named;
    for (size_t turns = 0; turns < 2;) {
        server = server == NULL ? first : server->next;
        if (server == NULL) {
            turns++;
            continue;
        }
        if (!may_answer(server))
            continue;
        if (server != cluster->not_asked)
            return server;
        second_choice = server;
    }
    return second_choice;
}

/* Something waits for news. */
static bool is_waiting(const struct weir__cluster *cluster)
{
    const struct weir__redis *store = cluster->store;

    if (cluster->named != NULL && may_answer(cluster->named))
        return true;
    for (const struct weir__place *place = store->moving; place != NULL;
         place = place->next_moving)
        if (place->state != WEIR__PLACE_SETTLED)
            return true;
    for (size_t i = 0; i < WEIR__PLACE_BUCKETS; i++)
        for (const struct weir__place *place = store->places[i]; place != NULL;
             place = place->next)
            if (!place->server->is_up)
                return true;
    return false;
}

static void on_map(int code, const struct redisReply *reply, void *arg)
{
    struct weir__server *server = arg;
    struct weir__cluster *cluster = server->store->cluster;
    const struct weir__cluster_map *before = cluster->map;

    (void)code; /* the reply says enough */
    if (cluster->store->is_closed)
        return;
    if (server == cluster->asked)
        cluster->is_asking = false;
    if (reply != NULL && take_map(server, reply)) {
        cluster->gap_ms = cluster->map == before ? SAME_GAP_MS : ASK_GAP_MS;
        cluster->not_asked = NULL;
    } else {
        cluster->gap_ms = FAILED_GAP_MS;
        cluster->wants_map = cluster->wants_map || cluster->map != NULL;
    }
    if (!cluster->wants_map && !is_waiting(cluster))
        return;
    cluster->wants_map = true;
    weir__cluster_tick_soon(cluster->store);
}

/* Nodes of the map, and behind them the hosts that were given, but for the one
 * where the first server is. NULL: there is no `nth`. */
static const struct weir__redis_host *
candidate(const struct weir__cluster *cluster, size_t nth)
{
    const struct weir__redis_url *url = &cluster->store->url;
    size_t nodes =
        cluster->map == NULL ? 0 : weir__cluster_map_count(cluster->map);

    if (nth < nodes)
        return &weir__cluster_map_node(cluster->map, nth)->host;
    nth -= nodes;
    nth += nth >= cluster->seed;
    return nth < url->host_count ? &url->hosts[nth] : NULL;
}

/* No server that there is a connection to answers: another one may. */
static void try_another(struct weir__cluster *cluster)
{
    const struct weir__redis_host *host;

    cluster->asked_ns = weir__redis_now_ns(cluster->store);
    cluster->gap_ms = FAILED_GAP_MS;
    while ((host = candidate(cluster, cluster->tried++)) != NULL)
        if (find_server(cluster->store, host) == NULL) {
            (void)server_at(cluster->store, host);
            return;
        }
    cluster->tried = 0;
}

static void ask(struct weir__cluster *cluster)
{
    struct weir__redis *store = cluster->store;
    int64_t now_ns = weir__redis_now_ns(store);
    struct weir__server *server;
    struct weir__buf bytes = {0};

    if ((!cluster->wants_map && !cluster->is_asking) ||
        now_ns - cluster->asked_ns < cluster->gap_ms * MS_NS)
        return;
    if (cluster->is_asking)
        cluster->not_asked = cluster->asked;
    server = next_to_ask(cluster);
    if (server == NULL) {
        try_another(cluster);
        return;
    }
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "CLUSTER");
    weir__resp_str(&bytes, "SLOTS");
    cluster->asked = server;
    cluster->named = NULL;
    cluster->asked_ns = now_ns;
    cluster->gap_ms = FAILED_GAP_MS;
    cluster->wants_map = true;
    if (weir__conn_send(server->commands, &bytes, NULL, WEIR__SEND_HERE, on_map,
                        server) != WEIR_OK)
        return;
    cluster->wants_map = false;
    cluster->is_asking = true;
    weir__conn_flush(server->commands);
}

static void want_map(struct weir__cluster *cluster)
{
    cluster->wants_map = true;
    ask(cluster);
    weir__cluster_tick_soon(cluster->store);
}

/* --- what happens --------------------------------------------------------- */

void weir__cluster_redirected(struct weir__server *server,
                              const struct weir__redirect *redirect)
{
    struct weir__cluster *cluster = server->store->cluster;
    struct weir__cluster_map *map;

    if (server->store->url.is_unix) /* the other nodes are elsewhere */
        return;
    cluster->not_asked = redirect->kind == WEIR__REDIRECT_MOVED ? NULL : server;
    if (redirect->has_target && server == server->store->servers &&
        weir__endpoint_equal(&redirect->host, &server->host))
        name_server(server, seed_of(cluster)); /* it is another one */
    if (cluster->map != NULL && redirect->kind == WEIR__REDIRECT_MOVED &&
        redirect->has_target &&
        weir__cluster_map_with(cluster->map, redirect->slot, &redirect->host,
                               &map) == WEIR_OK)
        weir__cluster_map_unref(set_map(cluster, map));
    want_map(cluster);
}

/* Before there is a map the first server is whichever of them answers. */
static void try_next_seed(struct weir__cluster *cluster)
{
    const struct weir__redis *store = cluster->store;

    weir__keeper_shut(store->keeper);
    cluster->seed = (cluster->seed + 1) % store->url.host_count;
    store->servers->host = *seed_of(cluster);
    weir__keeper_reopen(store->keeper);
}

void weir__cluster_ask(struct weir__redis *store)
{
    if (store->cluster->map != NULL && !store->is_closed)
        want_map(store->cluster);
}

void weir__cluster_lost(struct weir__server *server)
{
    struct weir__redis *store = server->store;

    if (store->cluster->map == NULL && !store->url.is_sentinel)
        try_next_seed(store->cluster);
    for (size_t i = 0; i < WEIR__PLACE_BUCKETS; i++)
        for (struct weir__place *place = store->places[i]; place != NULL;
             place = place->next)
            if (place->server == server)
                weir__place_lost(place);
    store->cluster->not_asked = server;
    weir__cluster_ask(store);
}

/* The only server that is known was a node, and is none any more. */
static bool is_alone_outside(const struct weir__server *server,
                             const struct redisReply *reply)
{
    return server->store->servers->next == NULL &&
           reply->type == REDIS_REPLY_ERROR &&
           weir__error_is_no_cluster(reply->str);
}

static void drop_map(struct weir__cluster *cluster)
{
    weir__cluster_map_unref(set_map(cluster, NULL));
    cluster->wants_map = false;
    ev_timer_stop(cluster->store->options.loop, &cluster->look);
}

/* A node that was away may know less than the others. */
const char *weir__cluster_slots(const struct redisReply *reply, void *arg)
{
    struct weir__server *server = arg;
    struct weir__cluster *cluster = server->store->cluster;

    if (cluster->map != NULL && is_alone_outside(server, reply))
        drop_map(cluster);
    if (cluster->map != NULL)
        want_map(cluster);
    else if (reply->type != REDIS_REPLY_ERROR ||
             !weir__error_hides_cluster(reply->str))
        (void)take_map(server, reply);
    else if (server->store->url.host_count > 1 &&
             weir__error_is_no_cluster(reply->str))
        return "no node of a cluster, and several hosts have to be: give one";
    return NULL;
}

/* --- life ----------------------------------------------------------------- */

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__cluster *cluster = timer->data;
    bool goes_on;

    (void)loop; /* the store's own */
    (void)events;
    weir__redis_enter(cluster->store);
    goes_on = weir__places_tick(cluster->store);
    ask(cluster);
    if (goes_on || cluster->wants_map || cluster->is_asking)
        weir__cluster_tick_soon(cluster->store);
    weir__redis_leave(cluster->store);
}

static bool is_needed(const struct weir__cluster *cluster,
                      const struct weir__server *server)
{
    const struct weir__redis *store = cluster->store;

    if (server == store->servers || weir__confirms_wait(server) ||
        (cluster->is_asking && cluster->asked == server))
        return true;
    for (size_t i = 0; i < WEIR__PLACE_BUCKETS; i++)
        for (const struct weir__place *place = store->places[i]; place != NULL;
             place = place->next)
            if (place->server == server)
                return true;
    return false;
}

static void end_server(struct weir__cluster *cluster,
                       struct weir__server *server)
{
    if (cluster->named == server)
        cluster->named = NULL;
    if (cluster->not_asked == server)
        cluster->not_asked = NULL;
    if (cluster->asked == server)
        cluster->asked = NULL;
    weir__link_end(server);
}

void weir__cluster_end_spare(struct weir__redis *store)
{
    struct weir__server *server = store->servers, *next;

    for (; server != NULL; server = next) {
        bool was_spare = server->is_spare;

        next = server->next;
        server->is_spare = !is_needed(store->cluster, server);
        if (was_spare && server->is_spare)
            end_server(store->cluster, server);
    }
}

/* The one that has owed an answer for longest; NULL: none for SILENT_MS. */
static struct weir__server *silent_server(const struct weir__redis *store)
{
    struct weir__server *server = store->servers, *silent = NULL;
    int64_t most_ms = SILENT_MS;

    for (; server != NULL; server = server->next) {
        int64_t ms = weir__conn_owed_ms(server->commands);

        if (ms < most_ms)
            continue;
        most_ms = ms;
        silent = server;
    }
    return silent;
}

static void look_at_topics(struct weir__redis *store)
{
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        if (topic->kind->look != NULL)
            topic->kind->look(topic);
}

/* One that is cut off, or stands still, says nothing of who replaced it. */
static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__cluster *cluster = timer->data;
    int64_t ns = weir__redis_now_ns(cluster->store) - cluster->asked_ns;
    bool is_time = ns >= LOOK_MS * MS_NS;
    struct weir__server *silent;

    (void)events;
    if (is_time) {
        weir__redis_enter(cluster->store);
        weir__cluster_end_spare(cluster->store);
        weir__redis_leave(cluster->store);
    }
    silent = silent_server(cluster->store);
    if (silent != NULL)
        cluster->not_asked = silent;
    if (silent != NULL || is_time)
        want_map(cluster);
    look_at_topics(cluster->store);
    arm(timer, loop, SILENT_MS);
}

int weir__cluster_init(struct weir__redis *store)
{
    struct weir__cluster *cluster = weir__mem_new(sizeof(*cluster));

    if (cluster == NULL)
        return WEIR_ENOMEM;
    cluster->store = store;
    ev_timer_init(&cluster->timer, on_timer, 0., 0.);
    ev_timer_init(&cluster->look, on_look, 0., 0.);
    cluster->timer.data = cluster;
    cluster->look.data = cluster;
    store->cluster = cluster;
    return WEIR_OK;
}

void weir__cluster_fini(struct weir__redis *store)
{
    struct weir__cluster *cluster = store->cluster;

    if (cluster == NULL)
        return;
    ev_timer_stop(store->options.loop, &cluster->timer);
    ev_timer_stop(store->options.loop, &cluster->look);
    weir__cluster_map_unref(cluster->map);
    weir__mem_free(cluster);
    store->cluster = NULL;
}

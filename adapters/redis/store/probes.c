/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/probes.h"

#include <string.h>
#include <sys/socket.h>

#include "adapters/redis/cluster/endpoint.h"
#include "adapters/redis/cluster/map.h"
#include "adapters/redis/conn/compat.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/conn/resolve.h"
#include "adapters/redis/monotonic.h"
#include "adapters/redis/probe.h"
#include "adapters/redis/store/cluster.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    LIMIT_MS = 1000,     /* for the only server */
    LIMIT_MIN_MS = 100,  /* for one of several */
    LIMIT_MOST_MS = 300, /* likewise */
    LOCATE_MS = 5000,    /* between questions for the primary */
    LOOK_MS = 1000       /* between questions for the map */
};

#define MS_NS INT64_C(1000000)

struct weir__probed {
    struct weir__probed *next;
    struct weir__redis_host host; /* as the map calls it */
    struct weir__probe *probe;    /* NULL: not connected */
    int64_t opened_ns;
    int64_t asked_ns; /* while it is away; 0: never */
    bool is_away;
};

struct weir__probes {
    const struct weir__redis *store;
    bool may_move;                 /* what the address means */
    struct weir__redis_host first; /* the store's, as the map calls it, */
    struct weir__redis_host seed;  /* and where it is */
    struct weir__probed *servers;
    struct weir__cluster_map *told; /* by the store; NULL: no cluster */
    struct weir__cluster_map *map;  /* and since then by servers */
    int64_t looked_ns;
    int limit_ms;

    pthread_mutex_t *lock;
    bool is_cut; /* under the lock */
    int fd;      /* of the question that is waited for; likewise; -1: none */
};

/* --- waiting -------------------------------------------------------------- */

/* False: the wait was cut. */
static bool begin_wait(struct weir__probes *probes, int fd)
{
    bool is_cut;

    (void)pthread_mutex_lock(probes->lock);
    is_cut = probes->is_cut;
    probes->fd = is_cut ? -1 : fd;
    (void)pthread_mutex_unlock(probes->lock);
    return !is_cut;
}

static void end_wait(struct weir__probes *probes)
{
    (void)begin_wait(probes, -1);
}

void weir__probes_cut(struct weir__probes *probes)
{
    probes->is_cut = true;
    if (probes->fd >= 0)
        (void)shutdown(probes->fd, SHUT_RDWR);
}

/* --- servers -------------------------------------------------------------- */

static void hang_up(struct weir__probed *server)
{
    weir__probe_close(server->probe);
    server->probe = NULL;
}

static void note_away(struct weir__probed *server)
{
    hang_up(server);
    server->is_away = true;
    server->asked_ns = weir__monotonic_ns();
}

/* NULL: out of memory. */
static struct weir__probed *server_at(struct weir__probes *probes,
                                      const struct weir__redis_host *host)
{
    struct weir__probed **at = &probes->servers;

    while (*at != NULL && !weir__endpoint_equal(&(*at)->host, host))
        at = &(*at)->next;
    if (*at == NULL) {
        *at = weir__mem_new(sizeof(**at));
        if (*at != NULL)
            (*at)->host = *host;
    }
    return *at;
}

struct weir__probed *weir__probes_server(struct weir__probes *probes,
                                         uint16_t slot)
{
    const struct weir__cluster_node *node;

    if (probes->map == NULL)
        return server_at(probes, &probes->first);
    node = weir__cluster_map_find(probes->map, slot);
    return node == NULL ? NULL : server_at(probes, &node->host);
}

static bool is_first(const struct weir__probes *probes,
                     const struct weir__redis_host *host)
{
    return weir__endpoint_equal(&probes->first, host);
}

/* Those that the cluster has no longer. */
static void forget(struct weir__probes *probes)
{
    struct weir__probed **at = &probes->servers;

    while (*at != NULL) {
        struct weir__probed *server = *at;

        if (is_first(probes, &server->host) ||
            weir__cluster_map_names(probes->map, &server->host)) {
            at = &server->next;
            continue;
        }
        *at = server->next;
        hang_up(server);
        weir__mem_free(server);
    }
}

/* What the store is connected to comes first. */
static void take_servers(struct weir__probes *probes)
{
    for (const struct weir__server *known = probes->store->servers;
         known != NULL; known = known->next) {
        struct weir__probed *server = server_at(probes, &known->host);

        if (server != NULL && !known->is_up)
            server->is_away = true;
    }
}

void weir__probes_follow(struct weir__probes *probes)
{
    struct weir__cluster_map *map = weir__cluster_map_of(probes->store);

    if (map == probes->told && probes->servers != NULL)
        return;
    weir__cluster_map_unref(probes->told);
    weir__cluster_map_unref(probes->map);
    probes->told = map == NULL ? NULL : weir__cluster_map_ref(map);
    probes->map = map == NULL ? NULL : weir__cluster_map_ref(map);
    probes->first = probes->store->servers->host;
    probes->seed = *weir__cluster_host_of(probes->store->servers);
    take_servers(probes);
    if (map != NULL)
        forget(probes);
}

void weir__probes_limit(struct weir__probes *probes, int64_t limit_ms)
{
    if (probes->map == NULL)
        limit_ms = LIMIT_MS;
    else if (limit_ms > LIMIT_MOST_MS)
        limit_ms = LIMIT_MOST_MS;
    else if (limit_ms < LIMIT_MIN_MS)
        limit_ms = LIMIT_MIN_MS;
    probes->limit_ms = (int)limit_ms;
}

struct weir__probed *weir__probes_next_away(struct weir__probes *probes,
                                            int64_t before_ns)
{
    struct weir__probed *oldest = NULL;

    for (struct weir__probed *server = probes->servers; server != NULL;
         server = server->next)
        if (server->is_away && server->asked_ns < before_ns &&
            (oldest == NULL || server->asked_ns < oldest->asked_ns))
            oldest = server;
    if (oldest != NULL)
        oldest->asked_ns = weir__monotonic_ns();
    return oldest;
}

bool weir__probes_has_away(const struct weir__probes *probes)
{
    const struct weir__probed *server = probes->servers;

    while (server != NULL && !server->is_away)
        server = server->next;
    return server != NULL;
}

/* --- asking --------------------------------------------------------------- */

/* The loop, which would hear of a new primary or see that the name moved, is
 * held: ask now and then. An old one that lives on would go on renewing. */
static bool is_outdated(const struct weir__probes *probes,
                        const struct weir__probed *server)
{
    return probes->map == NULL && probes->may_move &&
           weir__monotonic_ns() - server->opened_ns >= LOCATE_MS * MS_NS;
}

static bool open_probe(const struct weir__probes *probes,
                       struct weir__probed *server)
{
    const struct weir__redis_url *url = &probes->store->url;
    struct weir__redis_url own;

    if (!url->is_sentinel) { /* else they are asked */
        weir__redis_url_of_server(
            url,
            is_first(probes, &server->host) ? &probes->seed : &server->host,
            &own);
        url = &own;
    }
    return weir__probe_open(url, probes->limit_ms, &server->probe, NULL) ==
           WEIR_OK;
}

static bool connect_probe(struct weir__probes *probes,
                          struct weir__probed *server)
{
    if (server->probe != NULL && is_outdated(probes, server))
        hang_up(server);
    if (server->probe == NULL) {
        if (!begin_wait(probes, -1) || !open_probe(probes, server))
            return false;
        server->opened_ns = weir__monotonic_ns();
    }
    return begin_wait(probes, weir__probe_fd(server->probe));
}

/* Who is no primary any more answers nothing of use. */
static bool is_of_replica(const struct weir__probes *probes,
                          const redisReply *reply)
{
    return probes->map == NULL && probes->may_move &&
           reply->type == REDIS_REPLY_ERROR &&
           weir__error_classify(reply->str) == WEIR__ERROR_TURNED_AWAY;
}

/* NULL: no answer, and the server is away. */
static redisReply *send_command(struct weir__probes *probes,
                                struct weir__probed *server,
                                struct weir_slice command)
{
    redisReply *reply = connect_probe(probes, server)
                            ? weir__probe_command(server->probe, command)
                            : NULL;

    end_wait(probes);
    if (reply != NULL && !is_of_replica(probes, reply)) {
        server->is_away = false;
        return reply;
    }
    freeReplyObject(reply);
    note_away(server);
    return NULL;
}

static bool is_no_script(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ERROR &&
           weir__error_classify(reply->str) == WEIR__ERROR_NOSCRIPT;
}

/* What is answered; the script is loaded when the server does not know it. */
static redisReply *run_call(struct weir__probes *probes,
                            struct weir__probed *server,
                            const struct weir__script *script,
                            struct weir_slice command)
{
    redisReply *reply = send_command(probes, server, command);

    if (script == NULL || !is_no_script(reply))
        return reply;
    freeReplyObject(reply);
    reply = send_command(probes, server,
                         weir__slice_of(script->load, script->load_len));
    if (reply == NULL)
        return NULL;
    freeReplyObject(reply);
    return send_command(probes, server, command);
}

/* NULL: it is none, or does not say who has the slot. */
static struct weir__probed *follow_moved(struct weir__probes *probes,
                                         const struct weir__probed *server,
                                         const redisReply *reply)
{
    struct weir__cluster_map *map;
    struct weir__redirect redirect;

    if (probes->map == NULL || reply == NULL ||
        reply->type != REDIS_REPLY_ERROR)
        return NULL;
    redirect = weir__redirect_read(reply->str, &server->host);
    if (redirect.kind != WEIR__REDIRECT_MOVED || !redirect.has_target ||
        weir__cluster_map_with(probes->map, redirect.slot, &redirect.host,
                               &map) != WEIR_OK)
        return NULL;
    weir__cluster_map_unref(probes->map);
    probes->map = map;
    return weir__probes_server(probes, redirect.slot);
}

/* It did not run: its slot moves, or nobody has it. */
static bool is_put_off(const struct weir__probed *server,
                       const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ERROR &&
           weir__redirect_read(reply->str, &server->host).kind !=
               WEIR__REDIRECT_NONE;
}

struct redisReply *weir__probes_ask(struct weir__probes *probes, uint16_t slot,
                                    const struct weir__probed *only,
                                    const struct weir__script *script,
                                    struct weir_slice command)
{
    struct weir__probed *server = weir__probes_server(probes, slot), *other;
    redisReply *reply;

    if (server == NULL || (only == NULL ? server->is_away : server != only))
        return NULL;
    reply = run_call(probes, server, script, command);
    other = follow_moved(probes, server, reply);
    if (other != NULL && other != server && !other->is_away) {
        freeReplyObject(reply);
        reply = run_call(probes, other, script, command);
    }
    if (!is_put_off(server, reply))
        return reply;
    freeReplyObject(reply);
    return NULL;
}

/* --- the map -------------------------------------------------------------- */

static bool take_map(struct weir__probes *probes,
                     const struct weir__probed *server, const redisReply *reply)
{
    struct weir__cluster_map *before = probes->map;

    if (weir__cluster_map_read(reply, &server->host, before, &probes->map,
                               NULL) != WEIR_OK)
        return false;
    weir__cluster_map_unref(before);
    return probes->map != before;
}

/* One that there is a connection to, else any node. NULL: all are away. */
static struct weir__probed *next_to_ask(struct weir__probes *probes)
{
    struct weir__probed *server = probes->servers;

    while (server != NULL && (server->is_away || server->probe == NULL))
        server = server->next;
    for (size_t i = 0;
         server == NULL && i < weir__cluster_map_count(probes->map); i++) {
        server =
            server_at(probes, &weir__cluster_map_node(probes->map, i)->host);
        if (server != NULL && server->is_away)
            server = NULL;
    }
    return server;
}

bool weir__probes_look(struct weir__probes *probes)
{
    static const char text[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
    int64_t now_ns = weir__monotonic_ns();
    struct weir__probed *server;
    redisReply *reply;
    bool is_news;

    if (probes->map == NULL || now_ns - probes->looked_ns < LOOK_MS * MS_NS)
        return false;
    probes->looked_ns = now_ns;
    server = next_to_ask(probes);
    if (server == NULL)
        return false;
    reply = send_command(probes, server, weir__slice_str(text));
    if (reply == NULL)
        return false;
    is_news = take_map(probes, server, reply);
    freeReplyObject(reply);
    if (is_news)
        forget(probes);
    return is_news;
}

/* --- life ----------------------------------------------------------------- */

static bool may_move(const struct weir__redis_url *url)
{
    return url->is_sentinel ||
           (!url->is_unix && weir__host_is_name(url->hosts[0].name));
}

struct weir__probes *weir__probes_new(const struct weir__redis *store,
                                      pthread_mutex_t *lock)
{
    struct weir__probes *probes = weir__mem_new(sizeof(*probes));

    if (probes == NULL)
        return NULL;
    probes->store = store;
    probes->may_move = may_move(&store->url);
    probes->lock = lock;
    probes->limit_ms = LIMIT_MS;
    probes->fd = -1;
    return probes;
}

void weir__probes_free(struct weir__probes *probes)
{
    if (probes == NULL)
        return;
    while (probes->servers != NULL) {
        struct weir__probed *server = probes->servers;

        probes->servers = server->next;
        hang_up(server);
        weir__mem_free(server);
    }
    weir__cluster_map_unref(probes->told);
    weir__cluster_map_unref(probes->map);
    weir__mem_free(probes);
}

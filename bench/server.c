/* SPDX-License-Identifier: MIT */
#include "bench/server.h"

#include "adapters/redis/conn/tls.h"
#include "adapters/redis/probe.h"
#include "bench/cluster.h"
#include "bench/own.h"
#include "core/error.h"

#include <fcntl.h>
#include <hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { CONNECT_S = 3 };

/* --- connections ------------------------------------------------------ */

static int introduce(redisContext *context, const struct weir__redis_url *url)
{
    char password[WEIR__REDIS_PASSWORD_CAP];
    redisReply *reply = NULL;
    bool ok = weir__redis_url_password(url, password, NULL) == WEIR_OK;

    if (ok && password[0] != '\0') {
        reply = url->user[0] != '\0'
                    ? redisCommand(context, "AUTH %s %s", url->user, password)
                    : redisCommand(context, "AUTH %s", password);
        ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    if (ok && url->db != 0) {
        reply = redisCommand(context, "SELECT %u", url->db);
        ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    return ok ? WEIR_OK : WEIR_ECONN;
}

/* Begun without blocking, then as any connection of hiredis that blocks. */
static bool secure(const struct bench_server *server, redisContext *context,
                   const char *host)
{
    char *why = context->errstr;
    struct ssl_st *ssl;

    if (server->tls == NULL)
        return true;
    ssl = weir__tls_begin(server->tls, context, host, why,
                          sizeof(context->errstr));
    if (ssl == NULL || !weir__tls_finish(ssl, CONNECT_S * 1000, why,
                                         sizeof(context->errstr))) {
        context->err = REDIS_ERR_OTHER;
        return false;
    }
    context->flags |= REDIS_BLOCK;
    return fcntl(context->fd, F_SETFL,
                 fcntl(context->fd, F_GETFL) & ~O_NONBLOCK) == 0;
}

/* A name that sentinels do not know is a mistake in the address. */
static int locate(const struct bench_server *server,
                  struct weir__redis_url *ret_url, struct weir_error *err)
{
    struct weir__redis_url given;
    struct weir_error why;
    int rc = weir__redis_url_parse(server->url, &given, &why);

    if (rc == WEIR_OK)
        rc = weir__probe_locate(&given, ret_url, &why);
    if (rc == WEIR_ENOTFOUND)
        rc = WEIR_EINVAL;
    return rc == WEIR_OK ? rc : weir__error_set(err, rc, "%s", why.text);
}

/* NULL with `err`. */
static redisContext *connect_to(const struct bench_server *server,
                                const struct weir__redis_url *url,
                                const struct weir__redis_host *host,
                                struct weir_error *err)
{
    struct timeval limit = {.tv_sec = CONNECT_S};
    struct weir__redis_url shown = *url;
    redisContext *context =
        url->is_unix ? redisConnectUnixWithTimeout(host->name, limit)
                     : redisConnectWithTimeout(host->name, host->port, limit);
    char text[300];

    if (context != NULL && context->err == 0 &&
        secure(server, context, host->name) &&
        introduce(context, url) == WEIR_OK)
        return context;
    shown.hosts[0] = *host;
    shown.host_count = 1;
    weir__redis_url_print(&shown, text, sizeof(text));
    (void)weir__error_set(err, WEIR_ECONN, "cannot reach redis at %s: %s", text,
                          context != NULL && context->err != 0
                              ? context->errstr
                              : "it turned us away");
    redisFree(context);
    return NULL;
}

/* The first of the address that answers; `*ret_host` is which. */
static redisContext *connect_any(const struct bench_server *server,
                                 const struct weir__redis_url *url,
                                 const struct weir__redis_host **ret_host,
                                 struct weir_error *err)
{
    redisContext *context = NULL;

    for (size_t i = 0; i < url->host_count && context == NULL; i++) {
        *ret_host = &url->hosts[i];
        context = connect_to(server, url, *ret_host, err);
    }
    return context;
}

struct redisContext *bench_server_connect(const struct bench_server *server,
                                          struct weir_error *err)
{
    const struct weir__redis_host *host;
    struct weir__redis_url url;

    if (locate(server, &url, err) < 0)
        return NULL;
    return connect_any(server, &url, &host, err);
}

/* --- the nodes -------------------------------------------------------- */

static int connect_nodes(struct bench_server *server,
                         const struct weir__redis_url *url,
                         struct weir_error *err)
{
    size_t count = weir__cluster_map_count(server->map);

    if (count > BENCH_NODES_MAX)
        return weir__error_set(err, WEIR_EINVAL,
                               "the cluster has more than %d primaries",
                               BENCH_NODES_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct weir__cluster_node *node =
            weir__cluster_map_node(server->map, i);

        server->control[i] = connect_to(server, url, &node->host, err);
        if (server->control[i] == NULL)
            return err->code;
        server->node_count++;
    }
    return WEIR_OK;
}

/* Whoever answers at the address: the server itself, or the nodes that it
 * names. */
static int find_nodes(struct bench_server *server, struct weir_error *err)
{
    const struct weir__redis_host *host;
    struct weir__redis_url url;
    redisContext *context;
    int rc = locate(server, &url, err);

    if (rc < 0)
        return rc;
    context = connect_any(server, &url, &host, err);
    if (context == NULL)
        return err->code;
    rc = bench_cluster_read(context, host, &server->map, err);
    if (rc < 0 || server->map != NULL) {
        redisFree(context);
        return rc < 0 ? rc : connect_nodes(server, &url, err);
    }
    server->control[0] = context;
    server->node_count = 1;
    return WEIR_OK;
}

int bench_server_node_of(const struct bench_server *server, const char *topic)
{
    struct weir_slice name = {(const uint8_t *)topic, strlen(topic)};
    const struct weir__cluster_node *node;

    if (server->map == NULL)
        return 0;
    node =
        weir__cluster_map_find(server->map, weir__cluster_slot_of_topic(name));
    for (int i = 0; i < server->node_count; i++)
        if (node == weir__cluster_map_node(server->map, (size_t)i))
            return i;
    return -1;
}

/* --- what is left ----------------------------------------------------- */

/* Topics of ours on somebody else's servers, joined by blanks; NULL: none that
 * can be told. Released by the caller. Of a cluster one node has the set. */
static redisReply *our_topics(struct bench_server *server, const char *prefix)
{
    static const char script[] =
        "local ours = {} "
        "for _, t in ipairs(redis.call('SMEMBERS', KEYS[1])) do "
        "if t:sub(1, 11) == 'weir-bench.' then ours[#ours + 1] = t end end "
        "if #ours > 0 then redis.call('SREM', KEYS[1], unpack(ours)) end "
        "return table.concat(ours, ' ')";
    redisReply *reply = NULL;

    for (int i = 0; i < server->node_count; i++) {
        reply = redisCommand(server->control[i], "EVAL %s 1 %s:topics", script,
                             prefix);
        if (reply != NULL && reply->type == REDIS_REPLY_STRING)
            return reply;
        freeReplyObject(reply);
    }
    return NULL;
}

/* Delete what our topics left at a node. Lists and streams have their names;
 * what the floors wrote has names in letters. Another node's topics are an
 * error here, which is theirs to care for. */
static bool clear_node(redisContext *control, const char *prefix,
                       const char *topics)
{
    static const char script[] =
        "for _, pattern in ipairs({ARGV[1] .. ':{weir-bench.*', "
        "'weir-bench.[a-z]*'}) do "
        "local c = '0' repeat local r = redis.call('SCAN', c, 'MATCH', "
        "pattern, 'COUNT', 1000) c = r[1] for _, k in ipairs(r[2]) do "
        "redis.call('UNLINK', k) end until c == '0' end "
        "for t in ARGV[2]:gmatch('[^ ]+') do redis.pcall('UNLINK', t) end "
        "return 1";
    redisReply *reply =
        redisCommand(control, "EVAL %s 0 %s %s", script, prefix, topics);
    bool ok = reply != NULL && reply->type == REDIS_REPLY_INTEGER;

    freeReplyObject(reply);
    return ok;
}

static int clear_ours(struct bench_server *server)
{
    struct weir__redis_url url;
    redisReply *topics;
    bool ok;

    if (weir__redis_url_parse(server->url, &url, NULL) < 0)
        return WEIR_ESERVER;
    topics = our_topics(server, url.prefix);
    ok = topics != NULL;
    for (int i = 0; i < server->node_count && ok; i++)
        ok = clear_node(server->control[i], url.prefix, topics->str);
    freeReplyObject(topics);
    return ok ? WEIR_OK : WEIR_ESERVER;
}

int bench_server_clear(struct bench_server *server, struct weir_error *err)
{
    int rc;

    if (server->is_own)
        rc = bench_server_ask(server, "FLUSHALL SYNC") >= 0 ? WEIR_OK
                                                            : WEIR_ESERVER;
    else
        rc = clear_ours(server);
    if (rc < 0)
        return weir__error_set(err, rc,
                               "the server did not delete what we left");
    return WEIR_OK;
}

/* --- beginning and ending --------------------------------------------- */

static int read_tls(struct bench_server *server, struct weir_error *err)
{
    struct weir__redis_url url;
    int rc = weir__redis_url_parse(server->url, &url, err);

    return rc == WEIR_OK ? weir__tls_new(&url, &server->tls, err) : rc;
}

static int start(struct bench_server *server,
                 const struct bench_server_options *options,
                 struct weir_error *err)
{
    int rc = WEIR_OK;

    if (options->redis != NULL)
        (void)snprintf(server->url, sizeof(server->url), "%s", options->redis);
    else
        rc = bench_own_start(server, options, err);
    if (rc == WEIR_OK)
        rc = read_tls(server, err);
    if (rc == WEIR_OK && server->is_own && options->nodes > 0)
        rc = bench_cluster_form(server, err);
    return rc == WEIR_OK ? find_nodes(server, err) : rc;
}

int bench_server_start(struct bench_server *server,
                       const struct bench_server_options *options,
                       struct weir_error *err)
{
    int rc;

    *server = (struct bench_server){.guard_fd = -1};
    rc = start(server, options, err);
    if (rc < 0)
        bench_server_stop(server);
    else
        bench_server_look(server);
    return rc;
}

void bench_server_stop(struct bench_server *server)
{
    if (server->node_count > 0 && !server->is_own)
        (void)clear_ours(server);
    for (int i = 0; i < server->node_count; i++)
        redisFree(server->control[i]);
    server->node_count = 0;
    weir__cluster_map_unref(server->map);
    server->map = NULL;
    weir__tls_free(server->tls);
    server->tls = NULL;
    if (server->is_own)
        bench_own_stop(server);
}

/* SPDX-License-Identifier: MIT */
#include "bench/cluster.h"

#include "bench/say.h"
#include "core/error.h"

#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGREE_LIMIT_S = 30, LOOK_AGAIN_NS = 20000000, SLOT_CAP = 12 };

int bench_cluster_read(struct redisContext *control,
                       const struct weir__redis_host *host,
                       struct weir__cluster_map **ret_map,
                       struct weir_error *err)
{
    redisReply *reply = redisCommand(control, "CLUSTER SLOTS");
    struct weir__cluster_map *map = NULL;
    int rc = WEIR_OK;

    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY)
        rc = weir__cluster_map_read(reply, host, NULL, &map, err);
    freeReplyObject(reply);
    if (rc < 0)
        return rc;
    if (map != NULL && weir__cluster_map_covered(map) < WEIR__CLUSTER_SLOTS) {
        weir__cluster_map_unref(map);
        return weir__error_set(err, WEIR_ESERVER,
                               "some slots of the cluster are with no node");
    }
    *ret_map = map;
    return WEIR_OK;
}

/* --- forming one ------------------------------------------------------ */

static redisContext *connect_to(const struct bench_server *server, int node,
                                struct weir_error *err)
{
    redisContext *context = redisConnect("127.0.0.1", server->own[node].port);

    if (context != NULL && context->err == 0)
        return context;
    (void)weir__error_set(err, WEIR_ECONN, "cannot reach a node: %s",
                          context != NULL ? context->errstr : "out of memory");
    redisFree(context);
    return NULL;
}

/* `reply` is released. */
static int is_ok(redisReply *reply, struct weir_error *err)
{
    int rc = WEIR_OK;

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        rc = weir__error_set(err, WEIR_ESERVER, "a node says: %s",
                             reply != NULL ? reply->str : "nothing");
    freeReplyObject(reply);
    return rc;
}

/* One by one: servers before 7.0 know no ranges. */
static int give_slots(redisContext *context, int node, int count,
                      struct weir_error *err)
{
    int first = WEIR__CLUSTER_SLOTS * node / count;
    int slots = WEIR__CLUSTER_SLOTS * (node + 1) / count - first;
    char(*texts)[SLOT_CAP] = calloc((size_t)slots, sizeof(texts[0]));
    const char **words = calloc((size_t)slots + 2, sizeof(words[0]));
    int rc;

    if (texts != NULL && words != NULL) {
        words[0] = "CLUSTER";
        words[1] = "ADDSLOTS";
        for (int i = 0; i < slots; i++) {
            (void)snprintf(texts[i], SLOT_CAP, "%d", first + i); /* fits */
            words[i + 2] = texts[i];
        }
        rc = is_ok(redisCommandArgv(context, slots + 2, words, NULL), err);
    } else {
        rc = weir__error_set(err, WEIR_ENOMEM, "out of memory");
    }
    free(words);
    free(texts);
    return rc;
}

static int introduce(const struct bench_server *server, int node,
                     redisContext *context, struct weir_error *err)
{
    int rc = is_ok(
        redisCommand(context, "CLUSTER SET-CONFIG-EPOCH %d", node + 1), err);

    if (rc == WEIR_OK)
        rc = give_slots(context, node, server->own_count, err);
    for (int i = 0; i < node && rc == WEIR_OK; i++)
        rc = is_ok(redisCommand(context, "CLUSTER MEET 127.0.0.1 %d",
                                (int)server->own[i].port),
                   err);
    return rc;
}

/* It knows all of them, and that all slots are served. */
static bool agrees(const struct bench_server *server, redisContext *context)
{
    redisReply *reply = redisCommand(context, "CLUSTER INFO");
    char all[40];
    bool ok = reply != NULL && reply->str != NULL;

    (void)snprintf(all, sizeof(all), "cluster_known_nodes:%d\r",
                   server->own_count);
    ok = ok && strstr(reply->str, "cluster_state:ok") != NULL &&
         strstr(reply->str, all) != NULL;
    freeReplyObject(reply);
    return ok;
}

static int await(const struct bench_server *server, redisContext *context,
                 struct weir_error *err)
{
    int64_t deadline = bench_now_ns() + AGREE_LIMIT_S * INT64_C(1000000000);

    while (!agrees(server, context)) {
        if (bench_now_ns() > deadline)
            return weir__error_set(err, WEIR_ETIMEDOUT,
                                   "the nodes did not become a cluster");
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    return WEIR_OK;
}

int bench_cluster_form(struct bench_server *server, struct weir_error *err)
{
    redisContext *contexts[BENCH_NODES_MAX] = {NULL};
    int rc = WEIR_OK;

    for (int i = 0; i < server->own_count && rc == WEIR_OK; i++) {
        contexts[i] = connect_to(server, i, err);
        rc = contexts[i] == NULL ? err->code
                                 : introduce(server, i, contexts[i], err);
    }
    for (int i = 0; i < server->own_count && rc == WEIR_OK; i++)
        rc = await(server, contexts[i], err);
    for (int i = 0; i < server->own_count; i++)
        redisFree(contexts[i]);
    return rc;
}

/* SPDX-License-Identifier: MIT */
#include "tests/harness/cluster_proc.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/cluster/map.h"
#include "core/text.h"
#include "tests/harness/test.h"

enum { NODES_MAX = 24, ARGS_MAX = 16, PATIENCE_S = 30, FAILOVER_LOOKS = 600 };

struct node {
    struct redis_proc *proc;
    char id[64];
    bool is_paused, is_gone;
};

struct cluster_proc {
    struct cluster_proc *next;
    struct redis_options options; /* of each node */
    const char *args[ARGS_MAX];
    struct node nodes[NODES_MAX];
    int count;
    char url[NODES_MAX * 24];
};

static struct cluster_proc *all;

static _Noreturn void give_up(const char *what, const char *why)
{
    printf("  cluster_proc: %s: %s\n", what, why);
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

static bool runs(const struct cluster_proc *cluster, int node)
{
    const struct node *one = &cluster->nodes[node];

    return !one->is_gone && !one->is_paused && redis_pid(one->proc) != 0;
}

/* Between two looks at what is awaited. */
static void look_again(const struct patience *patience, const char *what)
{
    if (patience_ended(patience))
        give_up("did not come true", what);
    (void)poll(NULL, 0, 5);
}

static void await(struct cluster_proc *cluster,
                  bool (*is_so)(struct cluster_proc *cluster), const char *what)
{
    struct patience patience = patience_start(PATIENCE_S);

    while (!is_so(cluster))
        look_again(&patience, what);
}

/* --- facts --------------------------------------------------------------- */

struct redis_proc *cluster_node(const struct cluster_proc *cluster, int node)
{
    if (node < 0 || node >= cluster->count)
        give_up("cluster_node", "there is none with this number");
    return cluster->nodes[node].proc;
}

int cluster_count(const struct cluster_proc *cluster)
{
    return cluster->count;
}

const char *cluster_id(const struct cluster_proc *cluster, int node)
{
    return cluster->nodes[node].id;
}

struct weir__redis_host cluster_host(const struct cluster_proc *cluster,
                                     int node)
{
    return (struct weir__redis_host){
        "127.0.0.1", (uint16_t)redis_port(cluster_node(cluster, node))};
}

const char *cluster_url(struct cluster_proc *cluster)
{
    size_t used = 0;

    for (int i = 0; i < cluster->count; i++)
        if (runs(cluster, i))
            used += (size_t)snprintf(
                cluster->url + used, sizeof(cluster->url) - used,
                "%s127.0.0.1:%d", used == 0 ? "redis://" : ",",
                redis_port(cluster->nodes[i].proc)); /* fits */
    return cluster->url;
}

struct redisReply *cluster_ask(struct cluster_proc *cluster, int node,
                               const char **words)
{
    redisContext *context =
        redisConnectUnix(redis_socket(cluster_node(cluster, node)));
    redisReply *reply = NULL;
    int count = 0;

    while (words[count] != NULL)
        count++;
    if (context != NULL && context->err == 0)
        reply = redisCommandArgv(context, count, words, NULL);
    if (reply == NULL)
        give_up(words[0], "no answer");
    redisFree(context);
    return reply;
}

/* --- what nodes say of slots --------------------------------------------- */

/* Number of the node at an address; -1. */
static int node_at(const struct cluster_proc *cluster,
                   const struct weir__cluster_node *node)
{
    for (int i = 0; node != NULL && i < cluster->count; i++)
        if (!cluster->nodes[i].is_gone &&
            redis_port(cluster->nodes[i].proc) == node->host.port)
            return i;
    return -1;
}

/* `known`, which may be NULL, where the node says the same. */
static struct weir__cluster_map *map_by(struct cluster_proc *cluster, int node,
                                        struct weir__cluster_map *known)
{
    const char *words[] = {"CLUSTER", "SLOTS", NULL};
    const struct weir__redis_host host = cluster_host(cluster, node);
    redisReply *reply = cluster_ask(cluster, node, words);
    struct weir__cluster_map *map;
    struct weir_error err = {0};

    if (weir__cluster_map_read(reply, &host, known, &map, &err) != WEIR_OK)
        give_up("CLUSTER SLOTS", err.text);
    freeReplyObject(reply);
    return map;
}

bool cluster_is_ok(struct cluster_proc *cluster, int node)
{
    const char *text = redis_text(cluster_node(cluster, node), "CLUSTER INFO");

    return strstr(text, "cluster_state:ok") != NULL;
}

/* By their ids, too. */
static bool knows_all(struct cluster_proc *cluster, int node)
{
    const char *text = redis_text(cluster->nodes[node].proc, "CLUSTER NODES");

    for (int i = 0; i < cluster->count; i++)
        if (!cluster->nodes[i].is_gone &&
            strstr(text, cluster->nodes[i].id) == NULL)
            return false;
    return true;
}

struct weir__cluster_map *cluster_map(struct cluster_proc *cluster)
{
    struct weir__cluster_map *map = NULL;
    bool do_agree = true;

    for (int i = 0; do_agree && i < cluster->count; i++) {
        struct weir__cluster_map *own;

        if (!runs(cluster, i))
            continue;
        own = map_by(cluster, i, map);
        do_agree = knows_all(cluster, i) && (map == NULL || own == map);
        weir__cluster_map_unref(map);
        map = own;
    }
    if (do_agree)
        return map;
    weir__cluster_map_unref(map);
    return NULL;
}

int cluster_owner(struct cluster_proc *cluster, uint16_t slot)
{
    struct weir__cluster_map *map = cluster_map(cluster);
    int owner = -1;

    if (map != NULL)
        owner = node_at(cluster, weir__cluster_map_find(map, slot));
    weir__cluster_map_unref(map);
    return owner;
}

static bool is_well(struct cluster_proc *cluster)
{
    struct weir__cluster_map *map = cluster_map(cluster);
    bool is_well =
        map != NULL && weir__cluster_map_covered(map) == WEIR__CLUSTER_SLOTS;

    for (size_t i = 0; is_well && i < weir__cluster_map_count(map); i++) {
        int node = node_at(cluster, weir__cluster_map_node(map, i));

        is_well = node >= 0 && runs(cluster, node);
    }
    for (int i = 0; is_well && i < cluster->count; i++)
        is_well = !runs(cluster, i) || cluster_is_ok(cluster, i);
    weir__cluster_map_unref(map);
    return is_well;
}

void cluster_await(struct cluster_proc *cluster)
{
    await(cluster, is_well, "all nodes agree and are well");
}

/* --- starting ------------------------------------------------------------ */

static void tell(const struct cluster_proc *cluster, int node,
                 const char *command)
{
    const char *answer = redis_text(cluster->nodes[node].proc, command);

    if (answer == NULL || strcmp(answer, "OK") != 0)
        give_up(command, answer == NULL ? "nil" : answer);
}

static void start_node(struct cluster_proc *cluster)
{
    struct node *node = &cluster->nodes[cluster->count];

    if (cluster->count == NODES_MAX)
        give_up("start_node", "too many nodes");
    node->proc = redis_start(&cluster->options);
    (void)snprintf(node->id, sizeof(node->id), "%s",
                   redis_text(node->proc, "CLUSTER MYID")); /* 40 bytes */
    cluster->count++;
}

/* Not by a range, which 6.2 does not know. */
static void give_slots(struct cluster_proc *cluster, int node, int primaries)
{
    int first = WEIR__CLUSTER_SLOTS * node / primaries;
    int end = WEIR__CLUSTER_SLOTS * (node + 1) / primaries;
    char *command = malloc((size_t)(end - first) * 6 + 32);
    char *at = command;

    if (command == NULL)
        give_up("give_slots", "out of memory");
    at += snprintf(at, 32, "CLUSTER ADDSLOTS");
    for (int slot = first; slot < end; slot++)
        at += snprintf(at, 7, " %d", slot);
    tell(cluster, node, command);
    free(command);
}

/* A node is told of those before it that it does not know. One forgets a node
 * that does not answer within the node timeout, so it is told again. */
static void introduce(struct cluster_proc *cluster, int node)
{
    const char *known =
        redis_text(cluster_node(cluster, node), "CLUSTER NODES");
    bool knows[NODES_MAX];
    char command[64];

    for (int i = 0; i < node; i++)
        knows[i] = strstr(known, cluster->nodes[i].id) != NULL;
    for (int i = 0; i < node; i++) {
        if (knows[i] || !runs(cluster, i))
            continue;
        (void)snprintf(command, sizeof(command), "CLUSTER MEET 127.0.0.1 %d",
                       redis_port(cluster->nodes[i].proc));
        tell(cluster, node, command);
    }
}

static bool have_met(struct cluster_proc *cluster)
{
    struct weir__cluster_map *map;

    for (int i = 1; i < cluster->count; i++)
        if (runs(cluster, i))
            introduce(cluster, i);
    map = cluster_map(cluster);
    weir__cluster_map_unref(map);
    return map != NULL;
}

/* The primary's number follows from its own. */
static void replicate(struct cluster_proc *cluster, int node, int primary)
{
    char command[96];

    (void)snprintf(command, sizeof(command), "CLUSTER REPLICATE %s",
                   cluster->nodes[primary].id);
    tell(cluster, node, command);
}

static bool is_connected(struct cluster_proc *cluster, int replica)
{
    return strstr(
               redis_text(cluster_node(cluster, replica), "INFO replication"),
               "master_link_status:up") != NULL;
}

/* Every node counts every replica, and these are connected. */
static bool are_replicas_known(struct cluster_proc *cluster, int primaries)
{
    for (int i = 0; i < cluster->count; i++) {
        struct redis_proc *proc = cluster->nodes[i].proc;
        const char *at = redis_text(proc, "CLUSTER NODES");
        int count = 0;

        for (at = strstr(at, "slave"); at != NULL; count++)
            at = strstr(at + 1, "slave");
        if (count != cluster->count - primaries ||
            (i >= primaries && !is_connected(cluster, i)))
            return false;
    }
    return true;
}

static void await_replicas(struct cluster_proc *cluster, int primaries)
{
    struct patience patience = patience_start(PATIENCE_S);

    while (!are_replicas_known(cluster, primaries))
        look_again(&patience, "replicas are connected");
}

static void free_all(void)
{
    while (all != NULL) {
        struct cluster_proc *cluster = all;

        all = cluster->next;
        free(cluster); /* nodes end as other servers do */
    }
}

/* A primary that gave its last slot away remains one. */
static struct cluster_proc *cluster_new(const struct cluster_options *options)
{
    static const char *const fixed[] = {"--cluster-enabled",
                                        "yes",
                                        "--cluster-node-timeout",
                                        "2000",
                                        "--cluster-allow-replica-migration",
                                        "no",
                                        "--cluster-replica-no-failover",
                                        "yes",
                                        "--repl-diskless-sync-delay",
                                        "0"};
    struct cluster_proc *cluster = calloc(1, sizeof(*cluster));
    size_t count = sizeof(fixed) / sizeof(fixed[0]);

    if (cluster == NULL)
        give_up("cluster_new", "out of memory");
    memcpy(cluster->args, fixed, sizeof(fixed));
    if (options->endpoint != NULL) {
        cluster->args[count++] = "--cluster-announce-hostname";
        cluster->args[count++] = "localhost";
        cluster->args[count++] = "--cluster-preferred-endpoint-type";
        cluster->args[count++] = options->endpoint;
    }
    cluster->options = (struct redis_options){
        .args = cluster->args, .tcp = true, .appendonly = options->appendonly};
    cluster->next = all;
    all = cluster;
    test_at_end(free_all);
    return cluster;
}

struct cluster_proc *cluster_start(const struct cluster_options *options)
{
    static const struct cluster_options none;
    struct cluster_proc *cluster;
    int primaries;
    char command[64];

    options = options == NULL ? &none : options;
    primaries = options->primaries == 0 ? 3 : options->primaries;
    cluster = cluster_new(options);
    for (int i = 0; i < primaries * (1 + options->replicas); i++) {
        start_node(cluster);
        (void)snprintf(command, sizeof(command), "CLUSTER SET-CONFIG-EPOCH %d",
                       i + 1);
        tell(cluster, i, command);
        if (i < primaries)
            give_slots(cluster, i, primaries);
    }
    await(cluster, have_met, "the nodes know each other");
    for (int i = primaries; i < cluster->count; i++)
        replicate(cluster, i, i % primaries);
    cluster_await(cluster);
    await_replicas(cluster, primaries);
    return cluster;
}

/* --- faults -------------------------------------------------------------- */

void cluster_kill(struct cluster_proc *cluster, int node)
{
    redis_kill(cluster_node(cluster, node), SIGKILL);
    cluster->nodes[node].is_paused = false;
}

void cluster_restart(struct cluster_proc *cluster, int node)
{
    redis_restart(cluster_node(cluster, node));
}

void cluster_pause(struct cluster_proc *cluster, int node)
{
    redis_kill(cluster_node(cluster, node), SIGSTOP);
    cluster->nodes[node].is_paused = true;
}

void cluster_resume(struct cluster_proc *cluster, int node)
{
    redis_kill(cluster_node(cluster, node), SIGCONT);
    cluster->nodes[node].is_paused = false;
}

int cluster_await_promoted(struct cluster_proc *cluster, int old, uint16_t slot)
{
    struct patience patience = patience_start(PATIENCE_S);
    int owner = cluster_owner(cluster, slot);

    for (int i = 0; i < cluster->count; i++)
        if (runs(cluster, i))
            tell(cluster, i, "CONFIG SET cluster-replica-no-failover no");
    while (owner < 0 || owner == old || !is_well(cluster)) {
        look_again(&patience, "another node has the slot");
        owner = cluster_owner(cluster, slot);
    }
    return owner;
}

/* Number of the primary that the replica itself names; -1. */
static int primary_of(struct cluster_proc *cluster, int replica)
{
    const char *at =
        strstr(redis_text(cluster_node(cluster, replica), "CLUSTER NODES"),
               "myself,slave");
    const char *id = at == NULL ? NULL : strchr(at, ' '); /* more flags first */

    for (int i = 0; id != NULL && i < cluster->count; i++)
        if (strncmp(id + 1, cluster->nodes[i].id,
                    strlen(cluster->nodes[i].id)) == 0)
            return i;
    return -1;
}

/* Its primary ignores a replica's wish to take over before that. */
static bool is_replica_known(struct cluster_proc *cluster, int replica)
{
    int primary = primary_of(cluster, replica);

    return primary >= 0 && is_connected(cluster, replica) &&
           strstr(redis_text(cluster_node(cluster, primary),
                             "CLUSTER REPLICAS %s", cluster->nodes[primary].id),
                  cluster->nodes[replica].id) != NULL;
}

static bool has_slots(struct cluster_proc *cluster, int node)
{
    struct weir__cluster_map *map = cluster_map(cluster);
    bool is_there = false;

    for (size_t i = 0; map != NULL && i < weir__cluster_map_count(map); i++)
        is_there = is_there ||
                   node_at(cluster, weir__cluster_map_node(map, i)) == node;
    weir__cluster_map_unref(map);
    return is_there;
}

/* What the servers give up after 5 s is begun again. */
void cluster_fail_over(struct cluster_proc *cluster, int replica)
{
    struct patience patience = patience_start(PATIENCE_S);
    int looks = 0;

    if (primary_of(cluster, replica) < 0)
        give_up("cluster_fail_over", "it is no replica");
    while (!has_slots(cluster, replica) || !is_well(cluster)) {
        look_again(&patience, "the replica takes over");
        if (is_replica_known(cluster, replica) && looks++ % FAILOVER_LOOKS == 0)
            tell(cluster, replica, "CLUSTER FAILOVER");
    }
}

void cluster_take_over(struct cluster_proc *cluster, int replica)
{
    struct patience patience = patience_start(PATIENCE_S);

    tell(cluster, replica, "CLUSTER FAILOVER TAKEOVER");
    while (!has_slots(cluster, replica) || !is_well(cluster))
        look_again(&patience, "the replica has taken over");
}

/* --- nodes --------------------------------------------------------------- */

int cluster_add(struct cluster_proc *cluster)
{
    start_node(cluster);
    await(cluster, have_met, "the nodes know the new one");
    cluster_await(cluster);
    return cluster->count - 1;
}

void cluster_forget(struct cluster_proc *cluster, int node)
{
    char command[96];

    if (has_slots(cluster, node))
        give_up("cluster_forget", "it has slots");
    redis_stop(cluster_node(cluster, node));
    cluster->nodes[node].is_gone = true;
    (void)snprintf(command, sizeof(command), "CLUSTER FORGET %s",
                   cluster->nodes[node].id);
    for (int i = 0; i < cluster->count; i++)
        if (runs(cluster, i))
            tell(cluster, i, command);
    cluster_await(cluster);
}

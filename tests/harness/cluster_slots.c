/* SPDX-License-Identifier: MIT */
#include "tests/harness/cluster_proc.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "core/text.h"
#include "tests/harness/patience.h"

/* Which slot a topic is in, and slots that move as redis-cli moves them. */

enum {
    MIGRATE_MS = 5000,
    MIGRATE_KEYS = 100,
    NAMES_MAX = 1000000,
    EPOCH_S = 30
};

static _Noreturn void give_up(const char *what, const char *why)
{
    printf("  cluster_slots: %s: %s\n", what, why);
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

void cluster_topic(struct cluster_proc *cluster, int node, int nth,
                   char name[WEIR_MAX_TOPIC + 1])
{
    struct weir__cluster_map *map = cluster_map(cluster);
    const uint16_t port = cluster_host(cluster, node).port;

    for (int suffix = 1; map != NULL && suffix < NAMES_MAX; suffix++) {
        const struct weir__cluster_node *found;

        (void)snprintf(name, WEIR_MAX_TOPIC + 1, "t%d", suffix); /* fits */
        found = weir__cluster_map_find(
            map, weir__cluster_slot_of_topic(weir__slice_str(name)));
        if (found != NULL && found->host.port == port && nth-- == 0) {
            weir__cluster_map_unref(map);
            return;
        }
    }
    give_up("cluster_topic", "the node has hardly a slot");
}

/* `fine`: an error that is as good as OK; NULL: none. */
static void set_slot_or(struct cluster_proc *cluster, int at, uint16_t slot,
                        const char *how, int node, const char *fine)
{
    char command[128];
    const char *answer;

    (void)snprintf(command, sizeof(command), "CLUSTER SETSLOT %u %s %s", slot,
                   how, cluster_id(cluster, node));
    answer = redis_text(cluster_node(cluster, at), command);
    if (answer == NULL)
        give_up(command, "nil");
    if (strcmp(answer, "OK") != 0 &&
        (fine == NULL || strstr(answer, fine) == NULL))
        give_up(command, answer);
}

static void set_slot(struct cluster_proc *cluster, int at, uint16_t slot,
                     const char *how, int node)
{
    set_slot_or(cluster, at, slot, how, node, NULL);
}

/* Who has it. */
static int source_of(struct cluster_proc *cluster, uint16_t slot, int to)
{
    int from = cluster_owner(cluster, slot);

    if (from < 0 || from == to)
        give_up("source_of", "no other node has the slot");
    return from;
}

void cluster_open_slot(struct cluster_proc *cluster, uint16_t slot, int to)
{
    int from = source_of(cluster, slot, to);

    set_slot(cluster, to, slot, "IMPORTING", from);
    set_slot(cluster, from, slot, "MIGRATING", to);
}

/* Up to so many keys; returns how many it were. */
static size_t migrate(struct cluster_proc *cluster, int from, int to,
                      const redisReply *keys)
{
    const char *words[MIGRATE_KEYS + 8] = {"MIGRATE", "127.0.0.1"};
    char port[8], limit[8];
    redisReply *reply;
    size_t count = 2;

    (void)snprintf(port, sizeof(port), "%d", cluster_host(cluster, to).port);
    (void)snprintf(limit, sizeof(limit), "%d", MIGRATE_MS);
    words[count++] = port;
    words[count++] = "";
    words[count++] = "0";
    words[count++] = limit;
    words[count++] = "KEYS";
    for (size_t i = 0; i < (size_t)keys->elements; i++)
        words[count++] = keys->element[i]->str;
    reply = cluster_ask(cluster, from, words);
    if (reply->type != REDIS_REPLY_STATUS)
        give_up("MIGRATE", reply->str);
    freeReplyObject(reply);
    return (size_t)keys->elements;
}

void cluster_move_keys(struct cluster_proc *cluster, uint16_t slot, int to)
{
    int from = source_of(cluster, slot, to);
    char slot_text[8], count_text[8];
    const char *words[] = {"CLUSTER", "GETKEYSINSLOT", slot_text, count_text,
                           NULL};
    size_t moved;

    (void)snprintf(slot_text, sizeof(slot_text), "%u", slot);
    (void)snprintf(count_text, sizeof(count_text), "%d", MIGRATE_KEYS);
    do {
        redisReply *keys = cluster_ask(cluster, from, words);

        if (keys->type != REDIS_REPLY_ARRAY)
            give_up("GETKEYSINSLOT", keys->str);
        moved = keys->elements == 0 ? 0 : migrate(cluster, from, to, keys);
        freeReplyObject(keys);
    } while (moved > 0);
}

void cluster_move_key(struct cluster_proc *cluster, const char *key, int to)
{
    uint16_t slot = weir__cluster_slot(
        (struct weir_slice){(const uint8_t *)key, strlen(key)});
    int from = source_of(cluster, slot, to);
    char port[8];
    const char *words[] = {"MIGRATE", "127.0.0.1", port, key,
                           "0",       "5000",      NULL};
    redisReply *reply;

    (void)snprintf(port, sizeof(port), "%d", cluster_host(cluster, to).port);
    reply = cluster_ask(cluster, from, words);
    if (reply->type != REDIS_REPLY_STATUS || strcmp(reply->str, "OK") != 0)
        give_up("MIGRATE", reply->str);
    freeReplyObject(reply);
}

/* That of a node as one knows it; -1: not at all. */
static long long epoch_of(struct cluster_proc *cluster, int at, int node)
{
    const char *id = cluster_id(cluster, node);
    const char *line = redis_text(cluster_node(cluster, at), "CLUSTER NODES");
    long long epoch;

    while (line != NULL && strncmp(line, id, strlen(id)) != 0) {
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    if (line == NULL ||
        sscanf(line, "%*s %*s %*s %*s %*s %*s %lld", &epoch) != 1)
        return -1;
    return epoch;
}

/* The claim of who gets a slot is to be newer than that of who had it. Where it
 * has not heard of that one's epoch yet it may be told off, and then each says
 * that the other has the slot, for ever. */
static void await_epoch(struct cluster_proc *cluster, int to, int from)
{
    struct patience patience = patience_start(EPOCH_S);

    while (epoch_of(cluster, to, from) != epoch_of(cluster, from, from)) {
        if (patience_ended(&patience))
            give_up("await_epoch", "it is not known");
        (void)poll(NULL, 0, 10); /* between two looks */
    }
}

/* Who gets it is told first, then who had it: in between nobody lacks it. Who
 * heard of that before and has no other slot became a replica. */
void cluster_close_slot(struct cluster_proc *cluster, uint16_t slot, int to)
{
    int from = source_of(cluster, slot, to);

    await_epoch(cluster, to, from);
    set_slot(cluster, to, slot, "NODE", to);
    set_slot_or(cluster, from, slot, "NODE", to, "SETSLOT only with masters");
    cluster_await(cluster);
}

void cluster_move_slot(struct cluster_proc *cluster, uint16_t slot, int to)
{
    cluster_open_slot(cluster, slot, to);
    cluster_move_keys(cluster, slot, to);
    cluster_close_slot(cluster, slot, to);
}

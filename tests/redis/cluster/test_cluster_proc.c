/* SPDX-License-Identifier: MIT */
#include "tests/harness/cluster_proc.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/cluster/map.h"
#include "adapters/redis/cluster/redirect.h"
#include "tests/harness/test.h"

/* What the harness says of its clusters, and that servers do what it needs
 * of them. */

static struct weir__cluster_map *map_by(struct cluster_proc *cluster, int node)
{
    const char *words[] = {"CLUSTER", "SLOTS", NULL};
    struct weir__redis_host host = cluster_host(cluster, node);
    redisReply *reply = cluster_ask(cluster, node, words);
    struct weir__cluster_map *map;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, weir__cluster_map_read(reply, &host, NULL, &map, &err));
    weir__cluster_map_check(map);
    freeReplyObject(reply);
    return map;
}

/* The node that the map has for the slot; -1. */
static int node_at(const struct cluster_proc *cluster,
                   const struct weir__cluster_map *map, uint16_t slot)
{
    const struct weir__cluster_node *node = weir__cluster_map_find(map, slot);

    for (int i = 0; node != NULL && i < cluster_count(cluster); i++)
        if (node->host.port == cluster_host(cluster, i).port)
            return i;
    return -1;
}

static const char *set(struct cluster_proc *cluster, int node, const char *key)
{
    return redis_text(cluster_node(cluster, node), "SET %s x", key);
}

static uint16_t slot_of(const char *key)
{
    return weir__cluster_slot(
        (struct weir_slice){(const uint8_t *)key, strlen(key)});
}

/* A key of the node's, of a topic whose name is not to be known. */
static void key_of(struct cluster_proc *cluster, int node, char key[64])
{
    char topic[WEIR_MAX_TOPIC + 1];

    cluster_topic(cluster, node, 0, topic);
    (void)snprintf(key, 64, "weir:{%s}:a", topic); /* fits */
}

TEST(three_primaries_share_the_slots)
{
    struct cluster_proc *cluster = cluster_start(NULL);

    EXPECT_INT(3, cluster_count(cluster));
    EXPECT_INT(0, cluster_owner(cluster, 0));
    EXPECT_INT(1, cluster_owner(cluster, 8192));
    EXPECT_INT(2, cluster_owner(cluster, 16383));
    for (int i = 0; i < 3; i++) {
        struct weir__cluster_map *map = map_by(cluster, i);

        EXPECT_INT(16384, weir__cluster_map_covered(map));
        EXPECT_INT(3, weir__cluster_map_count(map));
        for (uint16_t slot = 0; slot < WEIR__CLUSTER_SLOTS; slot += 1000)
            EXPECT_INT(cluster_owner(cluster, slot),
                       node_at(cluster, map, slot));
        EXPECT_STR(cluster_id(cluster, node_at(cluster, map, 0)),
                   weir__cluster_map_find(map, 0)->id);
        weir__cluster_map_unref(map);
    }
}

TEST(ports_are_below_those_of_connections)
{
    struct cluster_proc *cluster = cluster_start(NULL);
    const char *url = cluster_url(cluster);
    char wanted[80];

    for (int i = 0; i < 3; i++)
        EXPECT_TRUE(cluster_host(cluster, i).port + 10000 < 32768);
    (void)snprintf(wanted, sizeof(wanted),
                   "redis://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
                   cluster_host(cluster, 0).port, cluster_host(cluster, 1).port,
                   cluster_host(cluster, 2).port);
    EXPECT_STR(wanted, url);
}

TEST(nobody_is_given_the_port_of_a_server_that_is_down)
{
    const struct redis_options options = {.tcp = true};
    struct redis_proc *redis = redis_start(&options);
    struct redis_proc *other;

    redis_kill(redis, SIGKILL);
    other = redis_start(&options);
    EXPECT_TRUE(redis_port(other) != redis_port(redis));
    redis_restart(redis);
    EXPECT_STR("PONG", redis_text(redis, "PING"));
    redis_stop(other);
    redis_stop(redis);
}

TEST(a_topic_is_found_for_each_node)
{
    struct cluster_proc *cluster = cluster_start(NULL);
    char one[WEIR_MAX_TOPIC + 1], other[WEIR_MAX_TOPIC + 1], key[64];

    for (int i = 0; i < 3; i++) {
        key_of(cluster, i, key);
        EXPECT_STR("OK", set(cluster, i, key));
        EXPECT_CONTAINS("MOVED", set(cluster, (i + 1) % 3, key));
    }
    cluster_topic(cluster, 1, 0, one);
    cluster_topic(cluster, 1, 1, other);
    EXPECT_TRUE(strcmp(one, other) != 0);
}

TEST(moved_says_where_the_slot_is)
{
    struct cluster_proc *cluster = cluster_start(NULL);
    struct weir__redis_host host = cluster_host(cluster, 0);
    struct weir__redirect redirect;
    char key[64];

    key_of(cluster, 2, key);
    redirect = weir__redirect_read(set(cluster, 0, key), &host);
    EXPECT_INT(WEIR__REDIRECT_MOVED, redirect.kind);
    EXPECT_TRUE(redirect.has_target);
    EXPECT_INT(slot_of(key), redirect.slot);
    EXPECT_INT(cluster_host(cluster, 2).port, redirect.host.port);
    EXPECT_STR("127.0.0.1", redirect.host.name);
}

TEST(a_slot_moves_with_its_keys)
{
    struct cluster_proc *cluster = cluster_start(NULL);
    struct weir__cluster_map *before = map_by(cluster, 0), *after;
    char key[64], name[96];
    uint16_t slot;

    key_of(cluster, 0, key);
    slot = slot_of(key);
    for (int i = 0; i < 250; i++) {
        (void)snprintf(name, sizeof(name), "%s%d", key, i);
        EXPECT_STR("OK", set(cluster, 0, name));
    }
    cluster_move_slot(cluster, slot, 1);
    EXPECT_INT(1, cluster_owner(cluster, slot));
    for (int i = 0; i < 250; i++)
        EXPECT_INT(1,
                   redis_int(cluster_node(cluster, 1), "EXISTS %s%d", key, i));
    after = map_by(cluster, 2);
    for (uint16_t at = 0; at < WEIR__CLUSTER_SLOTS; at++)
        EXPECT_TRUE(weir__cluster_map_has_moved(before, after, at) ==
                    (at == slot));
    weir__cluster_map_unref(before);
    weir__cluster_map_unref(after);
}

/* Which knows nodes by their addresses only, and says ASK where any key of an
 * open slot is gone. */
static bool is_redis_6(void)
{
    struct redis_proc *proc = redis_start(NULL);
    const char *version =
        strstr(redis_text(proc, "INFO server"), "redis_version:");
    bool is_old = strncmp(version, "redis_version:6.", 16) == 0;

    redis_stop(proc);
    return is_old;
}

TEST(an_open_slot_asks_and_tells_to_try_again)
{
    struct cluster_proc *cluster = cluster_start(NULL);
    struct redis_proc *source = cluster_node(cluster, 0);
    char key[64], other[96];

    key_of(cluster, 0, key);
    (void)snprintf(other, sizeof(other), "%sb", key);
    EXPECT_STR("OK", set(cluster, 0, key));
    EXPECT_STR("OK", set(cluster, 0, other));
    cluster_open_slot(cluster, slot_of(key), 1);
    EXPECT_STR("x", redis_text(source, "GET %s", key)); /* it is still there */
    cluster_move_key(cluster, key, 1);
    EXPECT_CONTAINS("ASK ", redis_text(source, "GET %s", key));
    EXPECT_CONTAINS(is_redis_6() ? "ASK" : "TRYAGAIN",
                    redis_text(source, "MGET %s %s", key, other));
    EXPECT_INT(0, cluster_owner(cluster, slot_of(key)));
    cluster_move_keys(cluster, slot_of(key), 1);
    cluster_close_slot(cluster, slot_of(key), 1);
    EXPECT_CONTAINS("MOVED", redis_text(source, "GET %s", key));
    EXPECT_STR("x x",
               redis_text(cluster_node(cluster, 1), "MGET %s %s", key, other));
}

TEST(a_replica_takes_over_by_command_and_back)
{
    static const struct cluster_options options = {.replicas = 1};
    struct cluster_proc *cluster = cluster_start(&options);

    EXPECT_INT(6, cluster_count(cluster));
    cluster_fail_over(cluster, 4); /* of 1 */
    EXPECT_INT(4, cluster_owner(cluster, 8192));
    EXPECT_CONTAINS("role:slave",
                    redis_text(cluster_node(cluster, 1), "INFO replication"));
    cluster_fail_over(cluster, 1);
    EXPECT_INT(1, cluster_owner(cluster, 8192));
}

TEST(a_replica_takes_over_without_an_election)
{
    static const struct cluster_options options = {.replicas = 1};
    struct cluster_proc *cluster = cluster_start(&options);

    cluster_kill(cluster, 0);
    cluster_take_over(cluster, 3);
    EXPECT_INT(3, cluster_owner(cluster, 0));
    cluster_pause(cluster, 1);
    cluster_take_over(cluster, 4);
    EXPECT_INT(4, cluster_owner(cluster, 8192));
    cluster_restart(cluster, 0);
    cluster_resume(cluster, 1);
    cluster_await(cluster);
    EXPECT_INT(3, cluster_owner(cluster, 0));
    EXPECT_INT(4, cluster_owner(cluster, 8192));
}

TIME_TEST(a_primary_that_hangs_is_replaced_only_when_a_test_awaits_that)
{
    static const struct cluster_options options = {.replicas = 1};
    struct cluster_proc *cluster = cluster_start(&options);

    cluster_pause(cluster, 0);
    (void)poll(NULL, 0, 5000); /* more than twice the node timeout */
    cluster_resume(cluster, 0);
    cluster_await(cluster);
    EXPECT_INT(0, cluster_owner(cluster, 0));
}

TIME_TEST(a_replica_is_elected_when_its_primary_was_killed)
{
    static const struct cluster_options options = {.replicas = 1};
    struct cluster_proc *cluster = cluster_start(&options);

    cluster_kill(cluster, 0);
    EXPECT_INT(3, cluster_await_promoted(cluster, 0, 0));
    cluster_restart(cluster, 0);
    cluster_await(cluster);
    EXPECT_INT(3, cluster_owner(cluster, 0));
}

TIME_TEST(a_replica_is_elected_when_its_primary_hangs)
{
    static const struct cluster_options options = {.replicas = 1};
    struct cluster_proc *cluster = cluster_start(&options);

    cluster_pause(cluster, 2);
    EXPECT_INT(5, cluster_await_promoted(cluster, 2, 16383));
    cluster_resume(cluster, 2);
    cluster_await(cluster);
    EXPECT_INT(5, cluster_owner(cluster, 16383));
}

TEST(a_cluster_that_lacks_a_primary_is_down_until_that_is_back)
{
    static const struct cluster_options options = {.appendonly = true};
    struct cluster_proc *cluster = cluster_start(&options);
    char key[64];

    key_of(cluster, 0, key);
    EXPECT_STR("OK", set(cluster, 0, key));
    cluster_kill(cluster, 0);
    while (cluster_is_ok(cluster, 1))
        continue;
    EXPECT_CONTAINS("CLUSTERDOWN", set(cluster, 1, key));
    cluster_restart(cluster, 0);
    cluster_await(cluster);
    EXPECT_STR("x", redis_text(cluster_node(cluster, 0), "GET %s", key));
}

TEST(a_node_is_added_and_forgotten)
{
    struct cluster_proc *cluster = cluster_start(NULL);
    struct weir__cluster_map *map;
    int node = cluster_add(cluster);

    EXPECT_INT(3, node);
    cluster_move_slot(cluster, 77, node);
    map = map_by(cluster, 1);
    EXPECT_INT(4, weir__cluster_map_count(map));
    EXPECT_INT(node, node_at(cluster, map, 77));
    weir__cluster_map_unref(map);
    cluster_move_slot(cluster, 77, 0);
    cluster_forget(cluster, node);
    map = map_by(cluster, 1);
    EXPECT_INT(3, weir__cluster_map_count(map));
    weir__cluster_map_unref(map);
    EXPECT_CONTAINS("cluster_known_nodes:3",
                    redis_text(cluster_node(cluster, 0), "CLUSTER INFO"));
}

static void expect_endpoint(const char *type, const char *host, const char *ip)
{
    const struct cluster_options options = {.primaries = 2, .endpoint = type};
    struct cluster_proc *cluster = cluster_start(&options);
    struct weir__cluster_map *map = map_by(cluster, 0);
    struct weir__redis_host asked = cluster_host(cluster, 0);
    struct weir__redirect redirect;
    char key[64];

    for (uint16_t slot = 0; slot < WEIR__CLUSTER_SLOTS; slot += 16383) {
        const struct weir__cluster_node *node =
            weir__cluster_map_find(map, slot);

        EXPECT_TRUE(node != NULL);
        EXPECT_STR(host, node->host.name);
        EXPECT_STR(ip, node->ip);
    }
    weir__cluster_map_unref(map);
    key_of(cluster, 1, key);
    redirect = weir__redirect_read(set(cluster, 0, key), &asked);
    EXPECT_TRUE(redirect.has_target);
    EXPECT_STR(host, redirect.host.name);
    EXPECT_INT(cluster_host(cluster, 1).port, redirect.host.port);
}

TEST(nodes_that_announce_names_are_known_by_them)
{
    if (is_redis_6())
        expect_endpoint(NULL, "127.0.0.1", "");
    else
        expect_endpoint("hostname", "localhost", "127.0.0.1");
}

/* The host that was asked, at other ports. */
TEST(nodes_that_announce_no_host_are_where_they_were_asked)
{
    if (is_redis_6())
        expect_endpoint(NULL, "127.0.0.1", "");
    else
        expect_endpoint("unknown-endpoint", "127.0.0.1", "127.0.0.1");
}

/* SPDX-License-Identifier: MIT */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/cluster/map.h"
#include "adapters/redis/cluster/redirect.h"
#include "tests/harness/resp_peer.h"
#include "tests/harness/test.h"

/* Scripted peers that play nodes of a cluster. */

static redisContext *context_of(const struct resp_peer *peer)
{
    redisContext *context = redisConnect("127.0.0.1", resp_peer_port(peer));

    EXPECT_TRUE(context != NULL && context->err == 0);
    return context;
}

/* The text of an answer, valid until the next one. */
static const char *told(redisContext *context, const char *command)
{
    static char text[256];
    redisReply *reply = redisCommand(context, command);

    EXPECT_TRUE(reply != NULL && reply->str != NULL);
    (void)snprintf(text, sizeof(text), "%s", reply->str);
    freeReplyObject(reply);
    return text;
}

static struct weir__cluster_map *map_by(redisContext *context, int port)
{
    const struct weir__redis_host host = {"127.0.0.1", (uint16_t)port};
    redisReply *reply = redisCommand(context, "CLUSTER SLOTS");
    struct weir__cluster_map *map;

    EXPECT_INT(WEIR_OK, weir__cluster_map_read(reply, &host, NULL, &map, NULL));
    freeReplyObject(reply);
    return map;
}

TEST(a_peer_tells_the_slots_that_it_is_given)
{
    struct resp_peer *one = resp_peer_prepare(), *other = resp_peer_prepare();
    const struct resp_range ranges[] = {
        {0, 99, NULL, resp_peer_port(one)},
        {100, 16382, "localhost", resp_peer_port(other)}};
    char slots[256];
    const struct resp_rule rule = {.words = "CLUSTER SLOTS", .bytes = slots};
    struct weir__cluster_map *map;
    redisContext *context;

    resp_slots(ranges, 2, slots, sizeof(slots));
    resp_peer_run(one, &rule, 1);
    resp_peer_run(other, &rule, 1);
    context = context_of(other);
    map = map_by(context, resp_peer_port(one));
    EXPECT_STR("127.0.0.1", weir__cluster_map_find(map, 99)->host.name);
    EXPECT_INT(resp_peer_port(one), weir__cluster_map_find(map, 0)->host.port);
    EXPECT_STR("localhost", weir__cluster_map_find(map, 100)->host.name);
    EXPECT_INT(resp_peer_port(other),
               weir__cluster_map_find(map, 16382)->host.port);
    EXPECT_TRUE(weir__cluster_map_find(map, 16383) == NULL);
    weir__cluster_map_unref(map);
    redisFree(context);
}

TEST(a_peer_answers_chosen_commands_so_often)
{
    static const struct resp_rule rules[] = {
        {.words = "{t}", .times = 2, .bytes = "-TRYAGAIN later\r\n"},
        {.words = "SET weir:{t}", .times = 1, .bytes = "-MOVED 7 ::1:1\r\n"},
        {.words = "EVALSHA", .bytes = "-CLUSTERDOWN no\r\n"},
    };
    struct resp_peer *peer = resp_peer_prepare();
    redisContext *context, *other;

    resp_peer_run(peer, rules, 3);
    context = context_of(peer);
    other = context_of(peer);
    EXPECT_STR("OK", told(context, "SET weir:{u}:a x"));
    EXPECT_STR("TRYAGAIN later", told(context, "SET weir:{t}:a x"));
    EXPECT_STR("TRYAGAIN later", told(other, "GET weir:{t}:a"));
    EXPECT_STR("MOVED 7 ::1:1", told(context, "SET weir:{t}:a x"));
    EXPECT_STR("OK", told(context, "SET weir:{t}:a x"));
    EXPECT_STR("CLUSTERDOWN no", told(context, "EVALSHA x 1 weir:{t}:a"));
    EXPECT_STR("CLUSTERDOWN no", told(other, "EVALSHA x 1 weir:{u}:a"));
    redisFree(context);
    redisFree(other);
}

TEST(a_peer_tells_what_it_heard_in_order)
{
    struct resp_peer *peer = resp_peer_prepare();
    redisContext *context, *other;
    char body[300];

    resp_peer_run(peer, NULL, 0);
    EXPECT_STR("", resp_peer_heard(peer));
    context = context_of(peer);
    other = context_of(peer);
    EXPECT_STR("OK", told(context, "SET a x"));
    EXPECT_STR("OK", told(other, "PING"));
    freeReplyObject(redisCommand(context, "GET %b", "a\r\n\0\x7f", (size_t)5));
    EXPECT_STR("OK", told(other, "PING 2"));
    EXPECT_STR("1 SET a x\n2 PING\n1 GET a....\n2 PING 2\n",
               resp_peer_heard(peer));
    memset(body, 'x', sizeof(body));
    freeReplyObject(redisCommand(context, "SET %b", body, sizeof(body)));
    EXPECT_CONTAINS("1 SET xxx", resp_peer_heard(peer));
    EXPECT_INT(strlen("1 SET a x\n2 PING\n1 GET a....\n2 PING 2\n1 \n") + 200,
               strlen(resp_peer_heard(peer)));
    redisFree(context);
    redisFree(other);
}

TEST(who_comes_before_a_peer_runs_waits_for_it)
{
    static const struct resp_rule rule = {.bytes = "+HERE\r\n"};
    struct resp_peer *peer = resp_peer_prepare();
    redisContext *context = context_of(peer);

    EXPECT_INT(REDIS_OK, redisAppendCommand(context, "PING"));
    resp_peer_run(peer, &rule, 1);
    EXPECT_STR("HERE", told(context, "PING"));
    redisFree(context);
}

/* SPDX-License-Identifier: MIT */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/redis/cluster/map_fixture.h"

/* What is read of an answer to CLUSTER SLOTS. */

#define TOO_LONG "1234567890123456789012345678901234567890123456"
#define WRONG    "the answer to CLUSTER SLOTS is wrong: "

static void expect_refused(const char *sentence, const char *resp)
{
    struct weir__cluster_map *map = NULL;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_ESERVER, map_read(resp, NULL, &map, &err));
    EXPECT_STR(sentence, err.text);
    EXPECT_INT(WEIR_ESERVER, map_read(resp, NULL, &map, NULL));
    EXPECT_TRUE(map == NULL);
}

/* The lone node of all slots, as the answer tells its address and what is
 * behind it. */
static struct weir__cluster_map *lone(const char *node)
{
    char resp[1024];

    (void)snprintf(resp, sizeof(resp), "*1\r\n*3\r\n:0\r\n:16383\r\n%s", node);
    return map_of(resp);
}

/* --- what real servers tell ---------------------------------------------- */

TEST(each_slot_is_at_the_primary_of_its_range)
{
    struct weir__cluster_map *map = map_of("*2\r\n*3\r\n:0\r\n:8000\r\n" A_7000
                                           "*3\r\n:8001\r\n:16383\r\n" B_7001);

    map_expect_at(map, 0, "127.0.0.1", 7000);
    map_expect_at(map, 8000, "127.0.0.1", 7000);
    map_expect_at(map, 8001, "127.0.0.1", 7001);
    map_expect_at(map, 16383, "127.0.0.1", 7001);
    EXPECT_INT(16384, weir__cluster_map_covered(map));
    EXPECT_INT(2, weir__cluster_map_count(map));
    EXPECT_STR("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
               weir__cluster_map_node(map, 1)->id);
    weir__cluster_map_unref(map);
}

TEST(replicas_are_left_out)
{
    struct weir__cluster_map *map = map_of(
        "*1\r\n*5\r\n:0\r\n:16383\r\n" A_7000 B_7001 "*1\r\n$1\r\nx\r\n");

    EXPECT_INT(1, weir__cluster_map_count(map));
    map_expect_at(map, 9, "127.0.0.1", 7000);
    weir__cluster_map_unref(map);
}

TEST(slots_that_nobody_has_have_no_node)
{
    struct weir__cluster_map *map =
        map_of("*2\r\n*3\r\n:1\r\n:1\r\n" A_7000 "*3\r\n:3\r\n:3\r\n" A_7000);

    EXPECT_TRUE(weir__cluster_map_find(map, 0) == NULL);
    EXPECT_TRUE(weir__cluster_map_find(map, 2) == NULL);
    EXPECT_TRUE(weir__cluster_map_find(map, 16383) == NULL);
    EXPECT_INT(2, weir__cluster_map_covered(map));
    weir__cluster_map_unref(map);
}

TEST(a_cluster_without_slots_has_no_node)
{
    struct weir__cluster_map *map = map_of("*0\r\n");

    EXPECT_INT(0, weir__cluster_map_covered(map));
    EXPECT_INT(0, weir__cluster_map_count(map));
    weir__cluster_map_unref(map);
}

TEST(no_host_is_the_one_that_was_asked)
{
    static const char *const hosts[] = {"$-1\r\n", "$0\r\n\r\n"};

    for (size_t i = 0; i < 2; i++) {
        struct weir__cluster_map *map;
        char node[128];

        (void)snprintf(node, sizeof(node), "*3\r\n%s:7009\r\n" ID_A, hosts[i]);
        map = lone(node);
        map_expect_at(map, 5, "seed.example", 7009);
        weir__cluster_map_unref(map);
    }
}

TEST(no_host_is_the_socket_that_was_asked)
{
    static const struct weir__redis_host socket_host = {"/run/redis.sock", 0};
    struct weir__cluster_map *map;

    redisReply *reply = map_parse("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$0\r\n\r\n"
                                  ":7000\r\n" ID_A);

    EXPECT_INT(WEIR_OK,
               weir__cluster_map_read(reply, &socket_host, NULL, &map, NULL));
    freeReplyObject(reply);
    map_expect_at(map, 5, "/run/redis.sock", 0);
    weir__cluster_map_unref(map);
}

/* '?' before the name of a node has come around, port 0 where it takes no
 * connections of this kind. */
TEST(slots_of_a_node_whose_address_nobody_knows_have_no_node)
{
    static const char *const unknown[] = {"$1\r\n?\r\n:7001\r\n",
                                          "$9\r\n127.0.0.1\r\n:0\r\n"};

    for (size_t i = 0; i < 2; i++) {
        struct weir__cluster_map *map;
        char resp[512];

        (void)snprintf(resp, sizeof(resp),
                       "*2\r\n*3\r\n:0\r\n:99\r\n*3\r\n%s" ID_B
                       "*3\r\n:100\r\n:16383\r\n" A_7000,
                       unknown[i]);
        map = map_of(resp);
        EXPECT_TRUE(weir__cluster_map_find(map, 99) == NULL);
        map_expect_at(map, 100, "127.0.0.1", 7000);
        EXPECT_INT(1, weir__cluster_map_count(map));
        weir__cluster_map_unref(map);
    }
}

TEST(addresses_may_be_of_ip_v6_or_names)
{
    struct weir__cluster_map *map =
        lone("*3\r\n$11\r\nfe80::1:2:3\r\n:7000\r\n" ID_A);

    map_expect_at(map, 0, "fe80::1:2:3", 7000);
    weir__cluster_map_unref(map);
    map = lone("*3\r\n$13\r\nnode-1.a_b.de\r\n:7000\r\n" ID_A);
    map_expect_at(map, 0, "node-1.a_b.de", 7000);
    weir__cluster_map_unref(map);
}

TEST(a_node_with_a_name_may_tell_its_address_besides)
{
    struct weir__cluster_map *map =
        lone("*4\r\n$4\r\nnode\r\n:7000\r\n" ID_A "*4\r\n$1\r\nz\r\n$1\r\n1\r\n"
             "$2\r\nip\r\n$9\r\n127.0.0.1\r\n");

    map_expect_at(map, 0, "node", 7000);
    EXPECT_STR("127.0.0.1", weir__cluster_map_find(map, 0)->ip);
    weir__cluster_map_unref(map);
    map = lone(A_7000);
    EXPECT_STR("", weir__cluster_map_find(map, 0)->ip);
    weir__cluster_map_unref(map);
}

/* Later servers may tell more. */
TEST(what_is_told_of_a_node_besides_may_be_anything)
{
    static const char *const more[] = {
        "*0\r\n",
        "*1\r\n$2\r\nip\r\n",
        "*2\r\n$2\r\nip\r\n:7\r\n",
        "*2\r\n:1\r\n$2\r\nip\r\n",
        "*2\r\n$2\r\nip\r\n*1\r\n:1\r\n",
        "*2\r\n$2\r\nip\r\n$3\r\na b\r\n",
        "*2\r\n$2\r\nip\r\n$46\r\n" TOO_LONG "\r\n",
        "$2\r\nip\r\n",
        ":1\r\n",
        "$-1\r\n",
        "*-1\r\n",
    };

    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        struct weir__cluster_map *map;
        char node[256];

        (void)snprintf(node, sizeof(node),
                       "*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n" ID_A "%s", more[i]);
        map = lone(node);
        EXPECT_STR("", weir__cluster_map_find(map, 0)->ip);
        weir__cluster_map_unref(map);
    }
}

/* --- what is wrong ------------------------------------------------------- */

TEST(an_answer_that_is_no_list_is_refused)
{
    expect_refused("the answer to CLUSTER SLOTS is no list", ":1\r\n");
    expect_refused("the answer to CLUSTER SLOTS is no list", "$1\r\nx\r\n");
    expect_refused("the answer to CLUSTER SLOTS is no list", "$-1\r\n");
    expect_refused("the answer to CLUSTER SLOTS is no list", "+OK\r\n");
}

TEST(an_error_is_told_as_it_is)
{
    expect_refused("ERR This instance has cluster support disabled",
                   "-ERR This instance has cluster support disabled\r\n");
}

TEST(slots_that_cannot_be_are_refused)
{
    expect_refused(WRONG "range 1 ends before it begins",
                   "*1\r\n*3\r\n:2\r\n:1\r\n" A_7000);
    expect_refused(WRONG "range 1 has slots that no cluster has",
                   "*1\r\n*3\r\n:0\r\n:16384\r\n" A_7000);
    expect_refused(WRONG "range 1 has slots that no cluster has",
                   "*1\r\n*3\r\n:-1\r\n:5\r\n" A_7000);
    expect_refused(WRONG "range 1 has slots that no cluster has",
                   "*1\r\n*3\r\n:-9223372036854775807\r\n"
                   ":9223372036854775807\r\n" A_7000);
    expect_refused(WRONG "range 2 has slots of another one",
                   "*2\r\n*3\r\n:0\r\n:5\r\n" A_7000
                   "*3\r\n:5\r\n:6\r\n" B_7001);
}

TEST(slots_of_a_node_that_nobody_knows_are_not_another_ones)
{
    expect_refused(WRONG "range 2 has slots of another one",
                   "*2\r\n*3\r\n:0\r\n:5\r\n*3\r\n$1\r\n?\r\n:1\r\n" ID_A
                   "*3\r\n:5\r\n:6\r\n" B_7001);
}

TEST(nodes_that_cannot_be_are_refused)
{
    static const char *const none[] = {
        "*0\r\n",
        "*1\r\n$1\r\na\r\n",
        "*2\r\n$1\r\na\r\n$1\r\n1\r\n",
        "*2\r\n:1\r\n:1\r\n",
        "*2\r\n*0\r\n:1\r\n",
        "$1\r\na\r\n",
        ":1\r\n",
    };
    static const char *const wrong[] = {
        "*2\r\n$1\r\na\r\n:65536\r\n", "*2\r\n$1\r\na\r\n:-1\r\n",
        "*2\r\n$3\r\na b\r\n:1\r\n",   "*2\r\n$2\r\na\n\r\n:1\r\n",
        "*2\r\n$2\r\na\x80\r\n:1\r\n",
    };
    char resp[256];

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        (void)snprintf(resp, sizeof(resp), "*1\r\n*3\r\n:0\r\n:1\r\n%s",
                       none[i]);
        expect_refused(WRONG "range 1 has no node", resp);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        (void)snprintf(resp, sizeof(resp), "*1\r\n*3\r\n:0\r\n:1\r\n%s",
                       wrong[i]);
        expect_refused(WRONG "range 1 has a node with a wrong address", resp);
    }
    expect_refused(WRONG "range 1 has no node", "*1\r\n*2\r\n:0\r\n:1\r\n");
}

TEST(a_host_has_255_bytes_at_most)
{
    char host[257], resp[512];
    struct weir__cluster_map *map;

    memset(host, 'h', 256);
    host[256] = '\0';
    (void)snprintf(resp, sizeof(resp),
                   "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$256\r\n%s\r\n:1\r\n", host);
    expect_refused(WRONG "range 1 has a node with a wrong address", resp);
    host[255] = '\0';
    (void)snprintf(resp, sizeof(resp), "*2\r\n$255\r\n%s\r\n:1\r\n", host);
    map = lone(resp);
    map_expect_at(map, 0, host, 1);
    weir__cluster_map_unref(map);
}

TEST(an_id_is_a_word_of_40_bytes_at_most)
{
    static const char *const ids[] = {
        ":1\r\n", "$-1\r\n", "$3\r\na b\r\n",
        "$41\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"};
    struct weir__cluster_map *map;
    char resp[256];

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        (void)snprintf(resp, sizeof(resp),
                       "*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n$1\r\na\r\n:1\r\n%s",
                       ids[i]);
        expect_refused(WRONG "range 1 has a node with a wrong id", resp);
    }
    map = lone("*2\r\n$1\r\na\r\n:1\r\n"); /* of a server that has none */
    EXPECT_STR("", weir__cluster_map_find(map, 0)->id);
    weir__cluster_map_unref(map);
}

TEST(ranges_that_are_none_are_refused)
{
    expect_refused(WRONG "range 1 is none", "*1\r\n:1\r\n");
    expect_refused(WRONG "range 1 is none", "*1\r\n*0\r\n");
    expect_refused(WRONG "range 1 is none", "*1\r\n*1\r\n:0\r\n");
    expect_refused(WRONG "range 1 is none",
                   "*1\r\n*3\r\n$1\r\n0\r\n:1\r\n" A_7000);
    expect_refused(WRONG "range 1 is none", "*1\r\n*3\r\n:0\r\n*0\r\n" A_7000);
    expect_refused(WRONG "range 2 is none",
                   "*2\r\n*3\r\n:0\r\n:1\r\n" A_7000 "*-1\r\n");
}

TEST(every_slot_may_be_a_range_of_its_own)
{
    char *resp = map_many_ranges(16384, WEIR__CLUSTER_NODES_MAX);
    struct weir__cluster_map *map = map_of(resp);

    EXPECT_INT(WEIR__CLUSTER_NODES_MAX, weir__cluster_map_count(map));
    map_expect_at(map, 16383, "a", WEIR__CLUSTER_NODES_MAX);
    weir__cluster_map_unref(map);
    free(resp);
}

TEST(more_nodes_or_ranges_than_a_cluster_has_are_refused)
{
    char *resp = map_many_ranges(16385, 3);

    expect_refused(WRONG "it has 16385 ranges", resp);
    free(resp);
    resp = map_many_ranges(WEIR__CLUSTER_NODES_MAX + 1,
                           WEIR__CLUSTER_NODES_MAX + 1);
    expect_refused(WRONG "range 1025 is that of one node too many", resp);
    free(resp);
}

/* SPDX-License-Identifier: MIT */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/random.h"
#include "tests/harness/oom.h"
#include "tests/harness/test.h"
#include "tests/redis/cluster/map_fixture.h"

/* Maps against each other, and what memory does to them. */

/* --- comparing ----------------------------------------------------------- */

#define TWO_RANGES(one, other) \
    "*2\r\n*3\r\n:0\r\n:9\r\n" one "*3\r\n:10\r\n:19\r\n" other
#define TWO_RANGES_BACK(one, other) \
    "*2\r\n*3\r\n:10\r\n:19\r\n" other "*3\r\n:0\r\n:9\r\n" one

TEST(what_is_told_again_in_another_order_is_the_same_map)
{
    struct weir__cluster_map *first = map_of(TWO_RANGES(A_7000, B_7001));
    struct weir__cluster_map *again;

    EXPECT_INT(WEIR_OK,
               map_read(TWO_RANGES_BACK(A_7000, B_7001), first, &again, NULL));
    EXPECT_TRUE(again == first);
    weir__cluster_map_unref(again);
    map_expect_at(first, 10, "127.0.0.1", 7001); /* there is a reference left */
    weir__cluster_map_unref(first);
}

TEST(what_is_told_otherwise_is_another_map)
{
    static const char *const others[] = {
        TWO_RANGES(B_7001, A_7000),
        TWO_RANGES(A_7000, A_7000),
        "*1\r\n*3\r\n:0\r\n:9\r\n" A_7000,
        /* another node at an address, and another address of a node */
        TWO_RANGES(A_7000, "*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n" ID_A),
        TWO_RANGES(A_7000, "*3\r\n$9\r\n127.0.0.2\r\n:7001\r\n" ID_B),
        TWO_RANGES(A_7000, "*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n" ID_B
                           "*2\r\n$2\r\nip\r\n$1\r\n1\r\n"),
    };
    struct weir__cluster_map *first = map_of(TWO_RANGES(A_7000, B_7001));

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct weir__cluster_map *other;

        EXPECT_INT(WEIR_OK, map_read(others[i], first, &other, NULL));
        EXPECT_TRUE(other != first);
        weir__cluster_map_unref(other);
    }
    weir__cluster_map_unref(first);
}

/* How many slots have moved, and the first of them. */
static size_t moved(const struct weir__cluster_map *before, const char *resp,
                    int *ret_first)
{
    struct weir__cluster_map *now = map_of(resp);
    size_t count = 0;

    *ret_first = -1;
    for (uint16_t slot = WEIR__CLUSTER_SLOTS; slot > 0; slot--)
        if (weir__cluster_map_has_moved(before, now, (uint16_t)(slot - 1))) {
            *ret_first = slot - 1;
            count++;
        }
    weir__cluster_map_unref(now);
    return count;
}

TEST(slots_have_moved_where_their_address_is_another_one)
{
    struct weir__cluster_map *map = map_of(TWO_RANGES(A_7000, B_7001));
    int first;

    EXPECT_INT(0, moved(map, TWO_RANGES_BACK(A_7000, B_7001), &first));
    EXPECT_INT(20, moved(map, TWO_RANGES(B_7001, A_7000), &first));
    EXPECT_INT(10, moved(map, TWO_RANGES(A_7000, A_7000), &first));
    EXPECT_INT(10, first);
    /* Who is there does not count. */
    EXPECT_INT(
        0, moved(map, TWO_RANGES("*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n", B_7001),
                 &first));
    weir__cluster_map_unref(map);
}

TEST(slots_have_moved_where_they_lost_or_got_a_node)
{
    struct weir__cluster_map *map = map_of(TWO_RANGES(A_7000, B_7001));
    int first;

    EXPECT_INT(10, moved(map, "*1\r\n*3\r\n:0\r\n:9\r\n" A_7000, &first));
    EXPECT_INT(10, first);
    EXPECT_INT(1, moved(map,
                        "*2\r\n*3\r\n:0\r\n:9\r\n" A_7000
                        "*3\r\n:10\r\n:20\r\n" B_7001,
                        &first));
    EXPECT_INT(20, first);
    weir__cluster_map_unref(map);
}

/* --- one slot ------------------------------------------------------------ */

static struct weir__cluster_map *with(struct weir__cluster_map *map,
                                      uint16_t slot, const char *name,
                                      uint16_t port)
{
    struct weir__redis_host host = {.port = port};
    struct weir__cluster_map *other;

    (void)snprintf(host.name, sizeof(host.name), "%s", name);
    EXPECT_INT(WEIR_OK, weir__cluster_map_with(map, slot, &host, &other));
    weir__cluster_map_check(other);
    return other;
}

TEST(one_slot_moves_to_a_node_that_is_known)
{
    struct weir__cluster_map *map = map_of(TWO_RANGES(A_7000, B_7001));
    struct weir__cluster_map *other = with(map, 3, "127.0.0.1", 7001);

    map_expect_at(other, 3, "127.0.0.1", 7001);
    EXPECT_STR("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
               weir__cluster_map_find(other, 3)->id);
    map_expect_at(other, 4, "127.0.0.1", 7000);
    map_expect_at(map, 3, "127.0.0.1", 7000); /* as it was */
    EXPECT_INT(2, weir__cluster_map_count(other));
    weir__cluster_map_unref(other);
    weir__cluster_map_unref(map);
}

TEST(one_slot_moves_to_a_node_that_is_new)
{
    struct weir__cluster_map *map = map_of(TWO_RANGES(A_7000, B_7001));
    struct weir__cluster_map *other = with(map, 16383, "::1", 7002);

    map_expect_at(other, 16383, "::1", 7002);
    EXPECT_STR("", weir__cluster_map_find(other, 16383)->id);
    EXPECT_INT(3, weir__cluster_map_count(other));
    EXPECT_INT(21, weir__cluster_map_covered(other));
    weir__cluster_map_unref(other);
    weir__cluster_map_unref(map);
}

TEST(a_node_without_slots_is_left_out)
{
    struct weir__cluster_map *map =
        map_of("*2\r\n*3\r\n:0\r\n:0\r\n" A_7000 "*3\r\n:1\r\n:1\r\n" B_7001);
    struct weir__cluster_map *other = with(map, 0, "127.0.0.1", 7001);

    EXPECT_INT(1, weir__cluster_map_count(other));
    map_expect_at(other, 0, "127.0.0.1", 7001);
    map_expect_at(other, 1, "127.0.0.1", 7001);
    weir__cluster_map_unref(other);
    weir__cluster_map_unref(map);
}

TEST(a_slot_that_is_there_already_changes_nothing)
{
    struct weir__cluster_map *map = map_of(TWO_RANGES(A_7000, B_7001));
    struct weir__cluster_map *other = with(map, 0, "127.0.0.1", 7000);

    EXPECT_TRUE(other == map);
    weir__cluster_map_unref(other);
    weir__cluster_map_unref(map);
}

TEST(a_slot_of_one_node_too_many_is_refused)
{
    char *resp = map_many_ranges(16384, WEIR__CLUSTER_NODES_MAX);
    static const struct weir__redis_host host = {"b", 1};
    struct weir__cluster_map *map = map_of(resp), *other;

    EXPECT_INT(WEIR_EFULL, weir__cluster_map_with(map, 0, &host, &other));
    weir__cluster_map_unref(map);
    free(resp);
}

/* --- memory and chance --------------------------------------------------- */

TEST(reading_survives_any_allocation_failure)
{
    char *resp = map_many_ranges(40, 20);
    redisReply *reply = map_parse(resp);
    struct weir__cluster_map *map = NULL;
    int rc = WEIR_ENOMEM, n = 0;

    for (; rc == WEIR_ENOMEM; n++) {
        struct weir_error err = {0};

        oom_after(n);
        rc = weir__cluster_map_read(reply, &map_asked, NULL, &map, &err);
        EXPECT_STR(rc == WEIR_OK ? "" : "out of memory", err.text);
    }
    oom_off();
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(n > 5);
    EXPECT_INT(20, weir__cluster_map_count(map));
    weir__cluster_map_unref(map);
    freeReplyObject(reply);
    free(resp);
}

TEST(moving_a_slot_survives_any_allocation_failure)
{
    static const struct weir__redis_host host = {"b", 1};
    struct weir__cluster_map *map = map_of(TWO_RANGES(A_7000, B_7001)), *other;
    int rc = WEIR_ENOMEM;

    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir__cluster_map_with(map, 7, &host, &other);
    }
    oom_off();
    EXPECT_INT(WEIR_OK, rc);
    map_expect_at(other, 7, "b", 1);
    weir__cluster_map_unref(other);
    weir__cluster_map_unref(map);
}

/* Slots are moved at random; a plain table says where they must be. */
TEST(a_map_says_what_it_was_told_last)
{
    struct weir__cluster_map *map = map_of("*0\r\n");
    uint16_t port_of[64] = {0};
    uint64_t random = 7;

    for (int turn = 0; turn < 1000; turn++) {
        uint16_t slot = (uint16_t)(weir__random_next(&random) % 64);
        uint16_t port = (uint16_t)(1 + weir__random_next(&random) % 9);
        struct weir__cluster_map *next = with(map, slot, "n", port);

        EXPECT_TRUE((next == map) == (port_of[slot] == port));
        EXPECT_TRUE(weir__cluster_map_has_moved(map, next, slot) ==
                    (port_of[slot] != port));
        weir__cluster_map_unref(map);
        map = next;
        port_of[slot] = port;
        for (uint16_t at = 0; at < 64; at++)
            if (port_of[at] != 0)
                map_expect_at(map, at, "n", port_of[at]);
            else
                EXPECT_TRUE(weir__cluster_map_find(map, at) == NULL);
    }
    weir__cluster_map_unref(map);
}

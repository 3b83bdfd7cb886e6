/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/cluster/slot.h"
#include "core/text.h"
#include "tests/redis/store/place_fixture.h"

/* What nodes tell of their slots, and what a store makes of it; and stores that
 * are closed, or full, while a place waits. */

#define DISABLED "-ERR This instance has cluster support disabled\r\n"
#define NOPERM                                                         \
    "-NOPERM this user has no permissions to run the 'cluster|slots' " \
    "command\r\n"

/* Open at node 0, which answers so, and say "a" to it. */
static void say_to(const struct resp_rule *rules, size_t count)
{
    node_run_as(0, rules, count);
    store_open(0, 1500);
    say("a", WEIR__SEND_AGAIN);
}

/* --- no map --------------------------------------------------------------- */

TEST(a_server_that_tells_no_slots_serves_all)
{
    static const char *const told[] = {
        DISABLED,       NOPERM,
        "+OK\r\n",      ":1\r\n",
        "$-1\r\n",      "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*0\r\n", "-ERR unknown command 'CLUSTER'\r\n"};

    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        struct resp_rule rule = {.words = "CLUSTER SLOTS", .bytes = told[i]};

        nodes_prepare();
        answers[0] = '\0';
        say_to(&rule, 1);
        AWAIT(strlen(answers) == 1);
        EXPECT_TRUE(!weir__cluster_is_one(store));
        store_close();
    }
}

TEST(who_may_not_ask_is_told_so_when_a_slot_is_elsewhere)
{
    struct resp_rule rules[] = {{.words = "CLUSTER SLOTS", .bytes = NOPERM},
                                {.words = "SAY"}};

    nodes_prepare();
    rules[1].bytes = moved_to(1);
    say_to(rules, 2);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("a-", answers);
    EXPECT_CONTAINS("the user may not run CLUSTER SLOTS", place_held);
    EXPECT_CONTAINS("MOVED 7", place_held);
}

TEST(a_server_that_says_moved_is_a_node_whatever_it_said_before)
{
    struct resp_rule rules[] = {
        {.words = "CLUSTER SLOTS", .times = 1, .bytes = DISABLED},
        {.words = "SAY"}};

    nodes_prepare();
    rules[1].bytes = moved_to(1);
    node_run(0, 1, rules, 2);
    node_run(1, 1, NULL, 0);
    store_open(0, 0);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 1);
    EXPECT_STR("a", said(1));
    EXPECT_TRUE(weir__cluster_is_one(store));
}

TEST(a_server_that_was_a_node_and_is_none_serves_all)
{
    struct resp_rule rules[] = {
        {.words = "CLUSTER SLOTS", .times = 1},
        {.words = "CLUSTER SLOTS", .bytes = DISABLED},
        {.words = "SAY a", .times = 1, .hangs_up = true}};

    nodes_prepare();
    rules[0].bytes = slots_at(0);
    say_to(rules, 3);
    AWAIT(strlen(answers) == 1);
    EXPECT_STR("aa", said(0));
    AWAIT(!weir__cluster_is_one(store));
    place_pass(1200); /* time is the subject */
    EXPECT_INT(2, heard(0, "CLUSTER SLOTS"));
}

TEST(what_is_no_map_leaves_the_map_as_it_was_and_is_a_line_once)
{
    struct resp_rule rules[] = {
        {.words = "CLUSTER SLOTS", .times = 1},
        {.words = "CLUSTER SLOTS", .times = 3, .bytes = ":1\r\n"},
        {.words = "SAY", .times = 1, .bytes = TRYAGAIN}};
    const char *line;

    nodes_prepare();
    rules[0].bytes = slots_at(0);
    node_run(0, 0, rules, 3);
    store_open(0, 0);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(heard(0, "CLUSTER SLOTS") == 5); /* a second apart */
    EXPECT_STR("a", answers);
    EXPECT_TRUE(weir__cluster_is_one(store));
    line = strstr(place_log, "no map of the cluster");
    EXPECT_TRUE(line != NULL);
    EXPECT_TRUE(strstr(line + 1, "no map of the cluster") == NULL);
}

/* --- odd maps ------------------------------------------------------------- */

/* All nodes tell these two ranges, up to SLOT and behind it, which are at node
 * 1 and node 2. */
static void tell_names(const char *one, const char *other)
{
    static char slots[400];
    struct resp_range ranges[] = {{0, SLOT, one, 0},
                                  {SLOT + 1, 16383, other, 0}};
    static const struct resp_rule rule = {.words = "CLUSTER SLOTS",
                                          .bytes = slots};

    nodes_prepare();
    ranges[0].port = node_port(1);
    ranges[1].port = node_port(2);
    resp_slots(ranges, 2, slots, sizeof(slots));
    for (int i = 0; i < NODES; i++)
        node_run_as(i, &rule, 1);
    store_open(0, 0);
    say("a", WEIR__SEND_AGAIN);
    say_at(weir__place_of_slot(store, OTHER_SLOT), "b", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("a", said(1));
    EXPECT_STR("b", said(2));
}

TEST(a_node_without_a_name_is_where_the_one_is_that_was_asked)
{
    tell_names("", NULL);
}

TEST(a_node_has_a_name_that_is_looked_up)
{
    tell_names("localhost", "127.0.0.1");
}

TEST(a_lone_node_that_calls_itself_as_nobody_can_is_where_it_is)
{
    static const struct resp_range all = {0, 16383, "no-such-host.invalid", 1};
    static char slots[200];
    static const struct resp_rule rule = {.words = "CLUSTER SLOTS",
                                          .bytes = slots};

    nodes_prepare();
    resp_slots(&all, 1, slots, sizeof(slots));
    say_to(&rule, 1);
    AWAIT(strlen(answers) == 1);
    EXPECT_STR("a", said(0));
}

TEST(a_node_whose_address_nobody_knows_is_waited_for)
{
    static const struct resp_range nowhere = {0, 16383, "?", 0};
    static char slots[200];
    struct resp_rule rules[] = {
        {.words = "CLUSTER SLOTS", .times = 3, .bytes = slots},
        {.words = "SAY", .times = 2, .bytes = DOWN}};

    nodes_prepare();
    resp_slots(&nowhere, 1, slots, sizeof(slots));
    node_run(0, 1, rules, 2);
    node_run(1, 1, NULL, 0);
    store_open(0, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", said(1));
}

/* --- places --------------------------------------------------------------- */

TEST(topics_of_one_slot_are_one_place)
{
    uint16_t slot = weir__cluster_slot_of_topic(weir__slice_str("t"));
    char name[16];
    int suffix = 0;

    nodes_prepare();
    node_run(0, 0, NULL, 0);
    store_open(0, 0);
    do
        (void)snprintf(name, sizeof(name), "u%d", suffix++); /* fits */
    while (weir__cluster_slot_of_topic(weir__slice_str(name)) != slot);
    EXPECT_TRUE(weir__place_of_topic(store, weir__slice_str("t")) ==
                weir__place_of_topic(store, weir__slice_str(name)));
    EXPECT_TRUE(weir__place_of_slot(store, slot) !=
                weir__place_of_slot(store, (uint16_t)(slot + 1)));
}

TEST(a_place_that_waits_takes_so_much_and_no_more)
{
    enum { MIB = 1024 * 1024 };
    static const struct resp_rule rules[] = {{.words = "SAY", .bytes = DOWN}};
    int rc = WEIR_OK, count = 0;

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, 0);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(place()->state == WEIR__PLACE_HELD);
    while (rc == WEIR_OK && count < 20) {
        rc = say_long(place(), 'b', 8 * MIB, WEIR__SEND_AGAIN);
        count += rc == WEIR_OK;
    }
    EXPECT_INT(WEIR_EFULL, rc);
    EXPECT_TRUE(count >= 7 && count <= 9);
    EXPECT_TRUE(weir__place_queued(place()) >= 7 * 8 * MIB);
    EXPECT_INT(WEIR_OK, say_long(weir__place_of_slot(store, OTHER_SLOT), 'z', 1,
                                 WEIR__SEND_AGAIN)); /* that one is not full */
}

/* --- the end -------------------------------------------------------------- */

/* Each command is answered once; `answers` has the letters of those that were
 * not answered before. */
static void close_and_expect(const char *last)
{
    answers[0] = '\0';
    store_close();
    EXPECT_STR(last, answers);
}

TEST(closing_ends_what_a_place_holds)
{
    static const struct resp_rule rules[] = {{.words = "SAY", .bytes = DOWN}};

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(place()->state == WEIR__PLACE_HELD && place()->sequence.on_way == 0);
    say("c", WEIR__SEND_ONCE);
    close_and_expect("a~b~c~");
}

TEST(closing_ends_what_is_on_its_way_of_a_place_that_is_left)
{
    struct resp_rule rules[] = {{.words = "SAY a"},
                                {.words = "SAY b", .more = "", .every_ms = 50}};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    node_run(0, 0, rules, 2);
    node_run(1, 1, NULL, 0);
    store_open(0, 0);
    say("abc", WEIR__SEND_AGAIN);
    AWAIT(place()->state == WEIR__PLACE_LEAVING);
    say("d", WEIR__SEND_ONCE);
    close_and_expect("b~c~a~d~");
}

TEST(closing_ends_a_probe)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY", .times = 2, .bytes = TRYAGAIN},
        {.words = "SAY", .more = "", .every_ms = 50}};

    nodes_prepare();
    node_run(0, 0, rules, 2);
    store_open(0, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(heard(0, "SAY") == 3);
    EXPECT_INT(WEIR__PLACE_PROBING, place()->state);
    close_and_expect("a~b~");
}

TEST(closing_ends_a_replay)
{
    struct resp_rule rules[] = {{.words = "SAY c"}};
    static const struct resp_rule others[] = {
        {.words = "SAY", .more = "", .every_ms = 50}};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    place_open(rules, 1, others, 1);
    say("ab", REPLAY);
    AWAIT(strlen(answers) == 2);
    say("cd", REPLAY);
    AWAIT(heard(1, "SAY a") == 1);
    close_and_expect("c~"); /* the others were acknowledged */
}

static void say_more(void)
{
    EXPECT_INT(WEIR_OK, say_long(place(), 'z', 0, WEIR__SEND_AGAIN));
}

TEST(who_is_given_up_may_ask_again)
{
    static const struct resp_rule rules[] = {{.words = "SAY a", .bytes = DOWN},
                                             {.words = "SAY b", .bytes = DOWN}};

    nodes_prepare();
    node_run(0, 0, rules, 2);
    store_open(0, 500);
    at_answer('a', say_more);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 5);
    EXPECT_STR("a-b-z", answers);
}

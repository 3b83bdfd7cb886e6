/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis/store/place_fixture.h"

/* What was acknowledged of a slot is said again to the next node that has
 * it. */

static struct resp_rule info_rule(char letter)
{
    return (struct resp_rule){.words = "INFO server", .bytes = info_of(letter)};
}

static int count_of(const char *text, const char *words)
{
    int count = 0;

    for (; (text = strstr(text, words)) != NULL; text++)
        count++;
    return count;
}

/* Of all lines of the log: how many they are depends on how fast nodes are. */
static int calls_replayed(void)
{
    static const char words[] = "replayed ";
    const char *at = place_log;
    int sum = 0;

    for (; (at = strstr(at, words)) != NULL; at++)
        sum += (int)strtol(at + strlen(words), NULL, 10);
    return sum;
}

TEST(what_was_acknowledged_is_said_again_where_the_slot_is_now)
{
    struct resp_rule rules[] = {
        {.words = "SAY d"}, {.words = "SAY e"}, info_rule('a')};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    rules[1].bytes = moved_to(1);
    place_open(rules, 3, NULL, 0);
    say_script("ab", REPLAY);
    say("c", WEIR__SEND_AGAIN); /* is not to be */
    AWAIT(strlen(answers) == 3);
    say("de", REPLAY);
    AWAIT(strlen(answers) == 5);
    EXPECT_STR("abcde", said(0));
    EXPECT_STR("abde", said(1));
    EXPECT_STR("abcde", answers);
    EXPECT_INT(1, count_of(place_log, "replayed"));
    EXPECT_CONTAINS("replayed 2 calls, 0 had been lost", place_log);
}

TEST(what_was_acknowledged_of_other_slots_is_not_said_again)
{
    struct resp_rule rules[] = {{.words = "SAY d"},
                                info_rule('a'),
                                {.words = "CLUSTER SLOTS", .times = 1},
                                {.words = "CLUSTER SLOTS"}};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    rules[2].bytes = slots_at(0);
    rules[3].bytes = slots_split(SLOT - 1, 0, 1);
    node_run(0, 1, rules, 4);
    node_run(1, 1, &rules[3], 1);
    store_open(0, 0);
    say("a", REPLAY);
    say_at(weir__place_of_slot(store, 0), "xy", REPLAY);
    AWAIT(strlen(answers) == 3);
    say("d", REPLAY);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("axyd", said(0));
    EXPECT_STR("ad", said(1));
}

TEST(an_outage_does_not_make_what_was_acknowledged_older)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY b", .hangs_up = true}};

    place_open_beside(rules, 1, 10); /* 4 s */
    say("a", REPLAY);
    say("b", WEIR__SEND_AGAIN);
    AWAIT(store->servers->is_away);
    node_stop(0);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("zab", said(1));
}

TEST(what_a_node_acknowledged_is_not_said_again_to_it_where_it_had_to_wait)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY c", .times = 3, .bytes = TRYAGAIN}};

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, 0);
    say("ab", REPLAY);
    AWAIT(strlen(answers) == 2);
    say("c", REPLAY);
    AWAIT(strlen(answers) == 3);
    EXPECT_STR("abcccc", said(0));
}

TEST(a_slot_that_comes_back_is_told_again_at_both_ends)
{
    struct resp_rule rules[] = {{.words = "SAY c", .times = 1}, info_rule('a')};
    struct resp_rule others[] = {
        {.words = "SAY d"}, {.words = "SAY e"}, info_rule('b')};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    others[0].bytes = moved_to(0);
    others[1].bytes = moved_to(0);
    place_open(rules, 2, others, 3);
    say_script("ab", REPLAY);
    AWAIT(strlen(answers) == 2);
    say_script("c", REPLAY);
    AWAIT(strlen(answers) == 3);
    place_pass(150); /* else it goes in a circle */
    say_script("de", REPLAY);
    AWAIT(strlen(answers) == 5);
    /* Once each, unless the nodes are slow: then it goes in a circle. */
    EXPECT_CONTAINS("abcd", said(0) + 3);
    EXPECT_CONTAINS("abcd", said(1));
    EXPECT_TRUE(calls_replayed() >= 5);
}

TEST(a_replay_goes_on_where_it_is_sent_to)
{
    struct resp_rule rules[] = {{.words = "SAY c"}, info_rule('a')};
    struct resp_rule others[] = {{.words = "SAY"}, info_rule('b')};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    others[0].bytes = moved_to(2);
    new_owner = 2;
    place_open(rules, 2, others, 2);
    say_script("ab", REPLAY);
    AWAIT(strlen(answers) == 2);
    say_script("c", REPLAY);
    AWAIT(strlen(answers) == 3);
    EXPECT_TRUE(strlen(said(1)) <= 1); /* the first one goes alone */
    EXPECT_STR("abc", said(2));
    EXPECT_INT(2, calls_replayed());
}

TEST(a_replay_waits_for_longer_than_who_waits_for_an_answer)
{
    struct resp_rule rules[] = {{.words = "SAY c"}, info_rule('a')};
    static const struct resp_rule others[] = {
        {.words = "SAY", .times = 25, .bytes = DOWN}};

    nodes_prepare();
    place_wait_ms = 1000;
    rules[0].bytes = moved_to(1);
    place_open(rules, 2, others, 1);
    say_script("ab", REPLAY);
    AWAIT(strlen(answers) == 2);
    say("c", REPLAY);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("abc-", answers);
    AWAIT(strchr(said(1), 'b') != NULL);
    EXPECT_TRUE(strstr(place_log, "may be lost") == NULL);
}

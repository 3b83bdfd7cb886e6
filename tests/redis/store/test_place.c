/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/monotonic.h"
#include "tests/redis/store/place_fixture.h"

/* What becomes of commands whose slot is at another node, or at none. */

/* --- MOVED ---------------------------------------------------------------- */

TEST(commands_follow_their_slot_in_their_order)
{
    struct resp_rule rules[] = {{.words = "SAY a", .bytes = "+OK\r\n"},
                                {.words = "SAY b", .bytes = "+OK\r\n"},
                                {.words = "SAY"}};

    nodes_prepare();
    rules[2].bytes = moved_to(1);
    place_open(rules, 3, NULL, 0);
    say("abcd", WEIR__SEND_AGAIN);
    say("ef", WEIR__SEND_ONCE);
    AWAIT(strlen(answers) == 6);
    EXPECT_STR("abcdef", said(0));
    EXPECT_STR("cdef", said(1));
    EXPECT_STR("abcdef", answers);
    say("g", 0);
    AWAIT(strlen(answers) == 7);
    EXPECT_STR("cdefg", said(1));
}

TEST(what_is_sent_while_commands_come_back_goes_behind_them)
{
    struct resp_rule rules[] = {{.words = "SAY"}};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    place_open(rules, 1, NULL, 0);
    say("abc", WEIR__SEND_AGAIN);
    AWAIT(place()->server != store->servers); /* which does not stand yet */
    say("def", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 6);
    EXPECT_STR("abc", said(0));
    EXPECT_STR("abcdef", said(1));
}

TEST(scripts_that_the_next_node_lacks_are_loaded_there)
{
    struct resp_rule rules[] = {{.words = "SAY"}};
    static const struct resp_rule lacks[] = {
        {.words = "EVALSHA",
         .times = 2,
         .bytes = "-NOSCRIPT No matching script\r\n"}};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    place_open(rules, 1, lacks, 1);
    say("a", WEIR__SEND_AGAIN);
    say_script("bc", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 3);
    EXPECT_STR("abcbc", said(1)); /* as on one server */
    EXPECT_INT(2, heard(1, "SCRIPT LOAD"));
    EXPECT_STR("abc", answers);
}

TEST(a_script_that_is_lacked_by_a_node_that_is_tried_keeps_its_place)
{
    static const struct resp_rule rules[] = {
        {.words = "EVALSHA", .times = 3, .bytes = TRYAGAIN},
        {.words = "EVALSHA",
         .times = 1,
         .bytes = "-NOSCRIPT No matching script\r\n"}};

    nodes_prepare();
    place_open(rules, 2, NULL, 0);
    say_script("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", answers);
}

TEST(what_may_go_by_one_connection_only_goes_nowhere)
{
    struct resp_rule rules[] = {{.words = "SAY"}};

    nodes_prepare();
    rules[0].bytes = moved_to(1);
    place_open(rules, 1, NULL, 0);
    say("a", WEIR__SEND_HERE);
    say("b", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 3);
    EXPECT_STR("a-b", answers);
    EXPECT_STR("b", said(1));
}

TEST(what_may_go_by_one_connection_only_does_not_wait_for_a_place)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY a", .times = 5, .bytes = TRYAGAIN}};

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, 0);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(place()->state == WEIR__PLACE_HELD);
    EXPECT_INT(WEIR_ECONN, say_long(place(), 'b', 0, WEIR__SEND_HERE));
    AWAIT(strlen(answers) == 1);
    EXPECT_STR("aaaaaa", said(0));
}

/* --- a circle ------------------------------------------------------------- */

/* Commands that both nodes heard. */
static int asked(void)
{
    return heard(0, "SAY") + heard(1, "SAY") + heard(0, "SLOTS") +
           heard(1, "SLOTS");
}

TEST(nodes_that_name_each_other_are_asked_slowly)
{
    struct resp_rule rules[2][1] = {{{.words = "SAY"}}, {{.words = "SAY"}}};
    int64_t begun_ms;
    int before;

    nodes_prepare();
    rules[0][0].bytes = moved_to(1);
    rules[1][0].bytes = moved_to(0);
    node_run(0, 0, rules[0], 1);
    node_run(1, 1, rules[1], 1);
    store_open(0, 2500);
    say("ab", WEIR__SEND_AGAIN);
    place_pass(300); /* time is the subject */
    before = asked();
    begun_ms = weir__monotonic_ms();
    place_pass(2000); /* time is the subject */
    EXPECT_TRUE(asked() - before <=
                20 * (weir__monotonic_ms() - begun_ms) / 1000 + 12);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("a-b-", answers);
    EXPECT_CONTAINS("MOVED", place_held);
}

/* A map that came between had it sent again at once, twice as often. */
TEST(a_probe_is_answered_before_its_place_leaves)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY a", .times = 1, .bytes = TRYAGAIN}, {.words = "SAY a"}};

    nodes_prepare();
    node_run(0, 0, rules, 2);
    store_open(0, 0);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(place()->state == WEIR__PLACE_PROBING);
    weir__place_leave(place());
    EXPECT_INT(WEIR__PLACE_PROBING, place()->state);
    place()->server->is_away = true;
    weir__place_leave(place());
    EXPECT_INT(WEIR__PLACE_LEAVING, place()->state);
    AWAIT(strlen(said(0)) == 2);
}

TEST(a_node_that_names_itself_is_asked_slowly)
{
    struct resp_rule rules[1] = {{.words = "SAY", .times = 5}};

    nodes_prepare();
    rules[0].bytes = moved_to(0);
    node_run(0, 0, rules, 1);
    store_open(0, 0);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 1);
    EXPECT_STR("aaaaaa", said(0));
}

/* --- nobody is there ------------------------------------------------------ */

TEST(a_place_waits_for_a_node_that_does_not_answer_until_the_map_names_another)
{
    struct resp_rule rules[] = {{.words = "CLUSTER SLOTS", .times = 4},
                                {.words = "SAY"}};

    nodes_prepare();
    rules[0].bytes = slots_at(1);
    rules[1].bytes = moved_to(1);
    node_run(0, 2, rules, 2);
    node_run(2, 2, NULL, 0);
    node_stop(1);
    store_open(0, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", answers);
    EXPECT_STR("ab", said(0)); /* once */
    EXPECT_STR("ab", said(2));
}

TEST(a_node_whose_name_nobody_knows_is_as_good_as_none)
{
    struct resp_rule rules[] = {{.words = "CLUSTER SLOTS", .times = 4},
                                {.words = "SAY"}};

    nodes_prepare();
    rules[0].bytes = slots_at(0);
    rules[1].bytes = "-MOVED 7 no-such-host.invalid:6379\r\n";
    node_run(0, 2, rules, 2);
    node_run(2, 2, NULL, 0);
    store_open(0, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", answers);
    EXPECT_STR("ab", said(2));
}

TEST(who_does_not_say_where_a_slot_is_is_asked_until_the_map_says_it)
{
    struct resp_rule rules[] = {{.words = "CLUSTER SLOTS", .times = 3},
                                {.words = "SAY", .bytes = "-MOVED 7 ?:0\r\n"}};

    nodes_prepare();
    rules[0].bytes = slots_at(0);
    node_run(0, 1, rules, 2);
    node_run(1, 1, NULL, 0);
    store_open(0, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", said(1));
}

TEST(what_waits_for_a_cluster_that_is_down_waits_so_long)
{
    static const struct resp_rule rules[] = {{.words = "SAY", .bytes = DOWN}};

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, 1500);
    say("ab", WEIR__SEND_AGAIN);
    say("c", WEIR__SEND_ONCE);
    AWAIT(strlen(answers) == 6);
    EXPECT_STR("a-b-c-", answers);
    EXPECT_CONTAINS("slot 7 of another topic is served by no node", place_held);
    EXPECT_TRUE(heard(0, "SAY") <= 3 + 15 + 3);
}

enum { PATIENCE_MS = 60000 };

TEST(what_waited_too_long_ends_behind_the_probe_that_is_on_its_way)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY", .bytes = TRYAGAIN}};

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, PATIENCE_MS);
    say("abc", WEIR__SEND_AGAIN);
    AWAIT(place()->state == WEIR__PLACE_PROBING);
    place_ahead_ms = 2 * PATIENCE_MS;
    EXPECT_TRUE(weir__places_tick(store));
    EXPECT_STR("", answers);
    AWAIT(strlen(answers) == 6);
    EXPECT_STR("a-b-c-", answers);
}

TEST(what_is_sent_long_after_a_place_began_to_wait_waits_as_long)
{
    static const struct resp_range none = {SLOT + 1, 16383, NULL, 1};
    static char slots[200];
    struct resp_rule rules[] = {{.words = "CLUSTER SLOTS", .times = 1},
                                {.words = "CLUSTER SLOTS", .bytes = slots},
                                {.words = "SAY", .bytes = DOWN}};
    int64_t said_ms;

    nodes_prepare();
    resp_slots(&none, 1, slots, sizeof(slots));
    rules[0].bytes = slots_at(0);
    node_run(0, 0, rules, 3);
    store_open(0, 1000);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    said_ms = weir__monotonic_ms();
    say("b", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("a-b-", answers);
    EXPECT_TRUE(weir__monotonic_ms() - said_ms >= 500);
}

/* --- later ---------------------------------------------------------------- */

TEST(what_cannot_run_now_is_tried_alone_until_it_can)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY", .times = 12, .bytes = TRYAGAIN}};

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, 0);
    say("abc", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 3);
    EXPECT_STR("abcaaaaaaaaaabc", said(0));
    EXPECT_STR("abc", answers);
}

TEST(an_open_slot_is_waited_for_at_the_node_that_has_it)
{
    struct resp_rule rules[] = {{.words = "SAY", .times = 5}};

    nodes_prepare();
    rules[0].bytes = ask_to(1);
    node_run(0, 0, rules, 1);
    node_run(1, 1, NULL, 0);
    store_open(0, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("abaaaab", said(0));
    EXPECT_STR("", said(1));
    EXPECT_INT(0, heard(0, "ASKING") + heard(1, "ASKING"));
}

TEST(what_ran_in_between_is_not_sent_twice)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY a", .times = 1, .bytes = TRYAGAIN},
        {.words = "SAY c", .times = 1, .bytes = TRYAGAIN}};

    nodes_prepare();
    node_run(0, 0, rules, 2);
    store_open(0, 0);
    say("abcd", WEIR__SEND_ONCE);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("bdac", answers);
    EXPECT_STR("abcdac", said(0));
}

TEST(who_waits_for_an_open_slot_goes_where_the_map_says)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY", .bytes = TRYAGAIN}};

    nodes_prepare();
    place_open(rules, 1, NULL, 0);
    say("ab", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", said(1));
}

/* --- lost on the way ------------------------------------------------------ */

TEST(what_was_lost_on_its_way_while_a_place_waits_is_not_left_behind)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY a", .bytes = TRYAGAIN},
        {.words = "SAY b", .hangs_up = true}};

    place_open_beside(rules, 2, 2);
    say("abc", WEIR__SEND_AGAIN);
    AWAIT(store->servers->is_away);
    node_stop(0);
    AWAIT(strlen(answers) == 3);
    EXPECT_STR("abc", answers);
    EXPECT_STR("zabc", said(1));
}

TEST(what_was_lost_on_its_way_is_asked_again_where_the_slot_is_now)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY b", .hangs_up = true}};

    place_open_beside(rules, 1, 2);
    say("a", REPLAY);
    say("b", WEIR__SEND_AGAIN);
    say("c", WEIR__SEND_ONCE);
    AWAIT(store->servers->is_away);
    node_stop(0);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("ac?b", answers);
    EXPECT_STR("zab", said(1));
}

TEST(a_node_that_is_silent_is_left_when_the_map_names_it_no_more)
{
    place_open_beside(NULL, 0, 0);
    say("a", REPLAY);
    AWAIT(strlen(answers) == 1);
    node_pause(0);
    say("b", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", answers);
    EXPECT_STR("zab", said(1));
    EXPECT_CONTAINS("the cluster names another server", place_log);
}

/* Node 0 has all slots but one, and is the only one that is connected to; the
 * others say that node 1 has all. */
static void open_at_one(void)
{
    static struct resp_rule rules[1];

    nodes_prepare();
    rules[0] = (struct resp_rule){.words = "CLUSTER SLOTS",
                                  .bytes = slots_split(16382, 0, 1)};
    node_run(0, 0, rules, 1);
    node_run(1, 1, NULL, 0);
    node_run(2, 1, NULL, 0);
    store_open(0, 0);
    say("a", REPLAY);
    AWAIT(strlen(answers) == 1);
    EXPECT_INT(0, heard(1, "CLUSTER SLOTS"));
}

TEST(a_node_that_is_silent_is_left_where_no_other_one_is_connected_to)
{
    open_at_one();
    node_pause(0);
    say("b", WEIR__SEND_AGAIN);
    say("c", WEIR__SEND_ONCE);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("ac?b", answers);
    EXPECT_STR("ab", said(1));
    EXPECT_CONTAINS("the cluster names another server", place_log);
}

TEST(a_node_that_is_gone_is_left_where_no_other_one_is_connected_to)
{
    open_at_one();
    node_stop(0);
    say("b", WEIR__SEND_AGAIN);
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", said(1));
}

TEST(a_node_that_falls_silent_while_a_place_waits_is_left_as_well)
{
    static const struct resp_rule rules[] = {
        {.words = "SAY a", .bytes = TRYAGAIN},
        {.words = "SAY b", .more = "", .every_ms = 50}};

    place_open_beside(rules, 2, 1);
    say("ab", WEIR__SEND_AGAIN); /* a peer that repeats nothing for ever */
    AWAIT(strlen(answers) == 2);
    EXPECT_STR("ab", answers);
    EXPECT_STR("zab", said(1));
    EXPECT_CONTAINS("the cluster names another server", place_log);
}

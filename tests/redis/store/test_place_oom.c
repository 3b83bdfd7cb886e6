/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/harness/oom.h"
#include "tests/redis/store/place_fixture.h"

/* Memory that runs out while places look for their servers: what was taken is
 * answered once, and goes on when there is memory again. */

enum { SWEEP = 40 };

/* The slots are at node 0 at first, then at node 1, and all that is said to
 * node 0 is MOVED. */
static void open_moved(void)
{
    struct resp_rule rule = {.words = "SAY"};

    nodes_prepare();
    rule.bytes = moved_to(1);
    place_open(&rule, 1, NULL, 0);
}

/* The `nth` allocation fails from the first command on, or all from there on
 * for as long as a while. */
static void follow_without(int nth, bool is_once)
{
    answers[0] = '\0';
    open_moved();
    say("ab", REPLAY);
    if (is_once)
        oom_once_after(nth);
    else
        oom_after(nth);
    place_patience = patience_start(60.);
    for (int i = 0; i < 10; i++)
        place_turn();
    oom_off();
    AWAIT(strlen(answers) >= 2);
    EXPECT_STR("ab", answers);
    EXPECT_STR("ab", said(1));
    store_close();
    EXPECT_STR("ab", answers);
}

TEST(commands_follow_their_slot_though_an_allocation_fails)
{
    for (int nth = 0; nth < SWEEP / 4; nth++)
        follow_without(nth, true);
}

TEST(commands_follow_their_slot_when_there_is_memory_again)
{
    for (int nth = 0; nth < SWEEP / 4; nth++)
        follow_without(nth, false);
}

/* What cannot be taken is nobody's: it is freed, and no answer comes. */
TEST(a_command_that_memory_does_not_allow_is_refused)
{
    static const struct resp_rule rules[] = {{.words = "SAY", .bytes = DOWN}};
    int rc = WEIR_ENOMEM, failed = -1;

    nodes_prepare();
    node_run(0, 0, rules, 1);
    store_open(0, 500);
    say("a", WEIR__SEND_AGAIN);
    AWAIT(place()->state == WEIR__PLACE_HELD && place()->sequence.on_way == 0);
    for (int nth = 0; rc == WEIR_ENOMEM; nth++) {
        oom_once_after(nth);
        rc = say_long(place(), 'b', 64, WEIR__SEND_AGAIN);
        oom_off();
        failed++;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failed > 0);
    AWAIT(strlen(answers) == 4);
    EXPECT_STR("a-b-", answers);
}

TEST(opening_a_store_survives_any_allocation_failure)
{
    int rc = WEIR_ENOMEM;

    nodes_prepare();
    node_run(0, 0, NULL, 0);
    for (int nth = 0; rc == WEIR_ENOMEM; nth++) {
        oom_after(nth);
        rc = store_try(node_port(0), 0);
        oom_off();
    }
    EXPECT_INT(WEIR_OK, rc);
    AWAIT(store->servers->is_up);
}

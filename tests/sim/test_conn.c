/* SPDX-License-Identifier: MIT */

/* Real connections in a world: what holds despite pieces and cuts. */

#include "tests/harness/test.h"
#include "tests/sim/conn_world.h"

static void expect_all_answered(void)
{
    EXPECT_INT(CONN_COMMANDS, conn_world.sent);
    for (int i = 0; i < CONN_COMMANDS; i++)
        EXPECT_INT(1, conn_world.answers[i]);
    EXPECT_INT(0, conn_world.falls);
    EXPECT_TRUE(conn_world.executed >= CONN_COMMANDS);
}

TEST(commands_are_answered_although_all_bytes_come_in_pieces)
{
    (void)conn_world_run(1, false, "10.0.0.1");
    expect_all_answered();
    EXPECT_INT(CONN_COMMANDS, conn_world.executed);
    EXPECT_INT(1, conn_world.readies);
    EXPECT_INT(0, conn_world.losses);
}

TEST(a_name_is_looked_up_by_the_thread_of_the_resolver)
{
    (void)conn_world_run(2, false, "redis.example");
    expect_all_answered();
    EXPECT_INT(CONN_COMMANDS, conn_world.executed);
}

TEST(each_command_is_answered_once_and_in_order_despite_cuts)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        (void)conn_world_run(seed, true, "10.0.0.1");
        expect_all_answered();
        EXPECT_TRUE(conn_world.losses > 0);
    }
}

TEST(the_same_seed_gives_the_same_bytes)
{
    uint64_t last = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t hash = conn_world_run(seed, true, "redis.example");

        EXPECT_TRUE(hash != last);
        EXPECT_TRUE(conn_world_run(seed, true, "redis.example") == hash);
        last = hash;
    }
}

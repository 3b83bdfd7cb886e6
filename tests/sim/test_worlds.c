/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/harness/test.h"
#include "tests/sim/world.h"

static void expect_well(const struct world_plan *plan, uint64_t seed)
{
    struct world world;

    world_run(&world, plan, seed);
    if (world.missing + world.early + world.errors > 0)
        printf("  seed %d: %s\n", (int)seed, world.error);
    EXPECT_TRUE(world.added > 0 && world.runs > 0);
    EXPECT_INT(0, world.missing);
    EXPECT_INT(0, world.early);
    EXPECT_INT(0, world.errors);
}

TEST(each_acknowledged_job_runs_and_none_is_early)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world_plan plan = world_plan_of(seed);

        expect_well(&plan, seed);
    }
}

TEST(a_claim_that_a_busy_loop_reads_too_late_is_no_loss)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world_plan plan = {.jobs = 500,
                                  .workers = 3,
                                  .least_ns = 500 * SIM_US,
                                  .gap_ns = 50 * SIM_MS,
                                  .hold_one_in = 20,
                                  .hold_ns = 8 * SIM_S,
                                  .run_ns = 120 * SIM_S,
                                  .options = {"lease=2s", "timeout=6s"}};

        expect_well(&plan, seed);
    }
}

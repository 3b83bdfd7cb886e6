/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/harness/test.h"
#include "tests/sim/world.h"

static void expect_well(const struct world_plan *plan, uint64_t seed)
{
    struct world world;
    bool is_well = world_run(&world, plan, seed);

    if (!is_well) {
        printf("  seed %d\n", (int)seed);
        world_print_faults(&world);
    }
    EXPECT_TRUE(is_well);
    EXPECT_TRUE(world.added > 0 && world.runs > 0);
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
                                  .features = 1u << WORLD_HOLDS};

        expect_well(&plan, seed);
    }
}

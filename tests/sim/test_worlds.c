/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/harness/test.h"
#include "tests/sim/world.h"

/* Returns how many calls the model judged. */
static uint64_t expect_well(const struct world_plan *plan, uint64_t seed)
{
    struct world world;
    bool is_well = world_run(&world, plan, seed);

    if (!is_well) {
        printf("  seed %d\n", (int)seed);
        world_print_faults(&world);
    }
    EXPECT_TRUE(is_well);
    EXPECT_TRUE(world.added > 0 && world.runs > 0);
    return world.judged;
}

TEST(each_acknowledged_job_runs_and_none_is_early)
{
    uint64_t judged = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world_plan plan = world_plan_of(seed);

        judged += expect_well(&plan, seed);
    }
    EXPECT_TRUE(judged > 1000);
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

        EXPECT_TRUE(expect_well(&plan, seed) > 500);
    }
}

/* --- planted faults ------------------------------------------------------- */

static const struct {
    const char *name;
    const struct weir__script *script;
    const char *find, *replace;
} faults[] = {
    {"a job wakes nobody", &weir__script_delay_add_one, "if sleeper[2] then",
     "if false then"},
    {"a burst wakes one worker", &weir__script_delay_claim,
     "if not asleep and next_due then", "if false then"},
    {"a crash does not count", &weir__script_delay_claim,
     "ended = min(ended + 1, MOST_ENDED)", ""},
    {"a job is due a ms late", &weir__script_delay_add_one,
     "if string.byte(when) == 114 then due = due + now end",
     "if string.byte(when) == 114 then due = due + now + 1 end"},
    {"the id of a job that is done stays", &weir__script_delay_settle_one,
     "call('HDEL', ids, id)", ""},
    {"a retry comes at once", &weir__script_delay_settle,
     "local due = tonumber(value) + (absolute and 0 or now)",
     "local due = now"},
    {"a job without an answer is added twice", &weir__script_delay_add_keyed,
     "if said then", "if false then"},
};

/* A plan without limits and keys; every other seed has a burst of jobs. */
static struct world_plan plain_plan(uint64_t seed)
{
    struct world_plan plan = world_plan_of(seed);

    plan.features &= 1U << WORLD_DELAYS | 1U << WORLD_IDS | 1U << WORLD_HOLDS |
                     1U << WORLD_UNIQUE | 1U << WORLD_RETRIES |
                     1U << WORLD_THREADS;
    plan.faults &= 1U << WORLD_FAULT_CUT | 1U << WORLD_FAULT_DEATH |
                   1U << WORLD_FAULT_CUT_OFF;
    if (seed % 2 == 0)
        plan.gap_ns = SIM_MS;
    return plan;
}

TEST(planted_faults_show_in_worlds)
{
    enum { SEEDS = 10 };

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world_plan plan = plain_plan(seed);

        (void)expect_well(&plan, seed); /* nothing is planted */
    }

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        uint64_t seed = 1;
        struct world world = {.cpu_s = 0};
        bool is_well = true;

        for (; is_well && seed <= SEEDS; seed++) {
            struct world_plan plan = plain_plan(seed);

            plan.script = faults[i].script;
            plan.find = faults[i].find;
            plan.replace = faults[i].replace;
            is_well = world_run(&world, &plan, seed);
        }
        printf("  %s: seed %d, %s\n", faults[i].name, (int)seed - 1,
               world.problem);
        EXPECT_TRUE(!is_well);
    }
}

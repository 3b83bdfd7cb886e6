/* SPDX-License-Identifier: MIT */
#include "tests/chaos/schedules/schedules.h"
#include "tests/harness/fault_search.h"
#include "tests/harness/test.h"

/* WEIR_TEST_SEED and WEIR_TEST_OPERATIONS choose another run. */
enum { FAULT_OPERATIONS = 3000, FAULT_SEEDS = 10 };

TEST_DEADLINE(600 + number_from("WEIR_TEST_OPERATIONS", 0) / 100)

TEST(schedules_have_one_job_for_each_time_as_the_model_says)
{
    struct sched_options options = {
        .seed = (uint64_t)number_from("WEIR_TEST_SEED", 1),
        .operations = number_from("WEIR_TEST_OPERATIONS", 10000)};

    sched_run(&options);
}

/* --- planted faults ----------------------------------------------------- */

static const char *name_of(size_t index)
{
    return sched_faults[index].name;
}

static void run_seed(size_t index, uint64_t seed)
{
    struct sched_options options = {
        .seed = seed,
        .operations = FAULT_OPERATIONS,
        .fault = index == NO_FAULT ? NULL : &sched_faults[index]};

    sched_run(&options);
}

TEST(the_model_of_schedules_finds_every_planted_fault)
{
    struct fault_search search = {.model = "schedules",
                                  .count = sched_fault_count,
                                  .name = name_of,
                                  .seeds = FAULT_SEEDS,
                                  .run = run_seed};

    EXPECT_INT(0, faults_missed(&search));
}

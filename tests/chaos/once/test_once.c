/* SPDX-License-Identifier: MIT */
#include "tests/chaos/once/once.h"
#include "tests/harness/fault_search.h"
#include "tests/harness/test.h"

/* WEIR_TEST_SEED and WEIR_TEST_ADDS choose another run. */
enum { KEYS = 1000, FAULT_KEYS = 25, FAULT_ADDS = 20000, FAULT_SEEDS = 30 };

TEST_DEADLINE(600 + number_from("WEIR_TEST_ADDS", 0) / 500)

TEST(jobs_with_unique_keys_run_as_the_model_says)
{
    struct once_options options = {
        .seed = (uint64_t)number_from("WEIR_TEST_SEED", 1),
        .adds = number_from("WEIR_TEST_ADDS", 20000),
        .keys = KEYS};

    once_run(&options);
}

TEST(few_keys_are_fought_for_as_the_model_says)
{
    struct once_options options = {
        .seed = 2, .adds = 20000, .keys = FAULT_KEYS};

    once_run(&options);
}

/* --- planted faults ----------------------------------------------------- */

static const char *name_of(size_t index)
{
    return once_faults[index].name;
}

static void run_seed(size_t index, uint64_t seed)
{
    struct once_options options = {
        .seed = seed,
        .adds = FAULT_ADDS,
        .keys = FAULT_KEYS,
        .fault = index == NO_FAULT ? NULL : &once_faults[index]};

    once_run(&options);
}

TEST(the_model_of_unique_keys_finds_every_planted_fault)
{
    struct fault_search search = {.model = "once",
                                  .count = once_fault_count,
                                  .name = name_of,
                                  .seeds = FAULT_SEEDS,
                                  .run = run_seed};

    EXPECT_INT(0, faults_missed(&search));
}

/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/faults.h"
#include "tests/chaos/model/run.h"
#include "tests/harness/fault_search.h"
#include "tests/harness/test.h"

/* Within which each planted fault shows. */
enum { FAULT_OPERATIONS = 4000, FAULT_SEEDS = 150, FEW_SEEDS = 10 };

/* WEIR_TEST_SEED and WEIR_TEST_OPERATIONS choose another run. Where
 * WEIR_TEST_JUDGE is set only the model of jobs (tests/model) judges. */

static struct run_options options_of(long operations)
{
    struct run_options options = {
        .seed = (uint64_t)number_from("WEIR_TEST_SEED", 1),
        .operations = number_from("WEIR_TEST_OPERATIONS", operations),
        .walk_every = 500};

#ifdef WEIR_SANITIZED
    options.walk_every = 2000;
#endif
    return options;
}

/* Three seconds for a thousand operations. */
TEST_DEADLINE(1800 + 3 * number_from("WEIR_TEST_OPERATIONS", 0) / 1000)

TEST(random_operations_answer_as_the_plain_model)
{
    struct run_options options = options_of(50000);

    run_all(&options);
}

TEST(a_clock_that_goes_back_leaves_only_the_number_of_ready_jobs_wrong)
{
    struct run_options options = options_of(10000);

    options.clock_goes_back = true;
    run_all(&options);
}

/* --- planted faults ----------------------------------------------------- */

static const struct fault *fault_at(size_t index)
{
    if (index < fault_count)
        return &faults[index];
    index -= fault_count;
    return index < mixed_fault_count ? &mixed_faults[index]
                                     : &limit_faults[index - mixed_fault_count];
}

static const char *name_of(size_t index)
{
    return fault_at(index)->name;
}

static void run_seed(size_t index, uint64_t seed)
{
    struct run_options options = {.seed = seed,
                                  .operations = FAULT_OPERATIONS,
                                  .walk_every = 250,
                                  .fault = index == NO_FAULT ? NULL
                                                             : fault_at(index)};

    run_all(&options);
}

static struct fault_search search_of(unsigned seeds)
{
    return (struct fault_search){.model = "model",
                                 .count = fault_count + mixed_fault_count +
                                          limit_fault_count,
                                 .name = name_of,
                                 .seeds = seeds,
                                 .run = run_seed};
}

TEST(the_model_finds_every_planted_fault)
{
    struct fault_search search =
        search_of((unsigned)number_from("WEIR_TEST_SEEDS", FAULT_SEEDS));

    EXPECT_INT(0, faults_missed(&search));
}

/* WEIR_TEST_SEEDS says how many seeds. */
TEST(no_seed_differs_where_nothing_is_planted)
{
    struct fault_search search =
        search_of((unsigned)number_from("WEIR_TEST_SEEDS", FEW_SEEDS));

    EXPECT_TRUE(fault_search_is_sound(&search));
}

/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "tests/chaos/model/fault_search.h"
#include "tests/chaos/model/faults.h"
#include "tests/chaos/model/run.h"
#include "tests/harness/test.h"

/* Within which each planted fault shows. */
enum { FAULT_OPERATIONS = 4000, FAULT_SEEDS = 150 };

/* WEIR_TEST_SEED and WEIR_TEST_OPERATIONS choose another run. */

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

/* A minute each for so many operations, instead of the harness's deadline. */
static void allow_time(long operations)
{
    (void)alarm(120 + (unsigned)(operations / 1000) * 3);
}

TEST(random_operations_answer_as_the_plain_model)
{
    struct run_options options = options_of(50000);

    allow_time(options.operations);
    run_all(&options, redis_start(NULL));
}

TEST(a_clock_that_goes_back_leaves_only_the_number_of_ready_jobs_wrong)
{
    struct run_options options = options_of(10000);

    options.clock_goes_back = true;
    allow_time(options.operations);
    run_all(&options, redis_start(NULL));
}

/* --- planted faults ----------------------------------------------------- */

static void run_seed(const struct redis_proc *proc, const struct fault *fault,
                     uint64_t seed)
{
    struct run_options options = {.seed = seed,
                                  .operations = FAULT_OPERATIONS,
                                  .walk_every = 250,
                                  .fault = fault};

    run_all(&options, proc);
}

TEST(the_model_finds_every_planted_fault)
{
    struct fault_search search = {
        .proc = redis_start(NULL), .seeds = FAULT_SEEDS, .run = run_seed};

    allow_time(FAULT_OPERATIONS *
               (long)(fault_count + mixed_fault_count + limit_fault_count));
    EXPECT_TRUE(fault_search_is_sound(&search));
    EXPECT_INT(0, faults_missed(&search, faults, fault_count));
    EXPECT_INT(0, faults_missed(&search, mixed_faults, mixed_fault_count));
    EXPECT_INT(0, faults_missed(&search, limit_faults, limit_fault_count));
}

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "tests/chaos/lost/lost.h"
#include "tests/harness/fault_search.h"
#include "tests/harness/test.h"

/* WEIR_TEST_SEEDS chooses how many runs there are. */
enum { SEEDS = 120, FAULT_SEEDS = 400 };

static void run_seed(size_t index, uint64_t seed)
{
    static void (*const parts[])(struct lost_run *) = {lost_list, lost_bounded,
                                                       lost_ticks};
    struct lost_run run = {.seed = seed, .random = seed};

    caller_open(&run.caller, index == NO_FAULT ? NULL : &lost_faults[index]);
    lost_pass(&run, 1600000000123 + (int64_t)seed);
    parts[seed % 3](&run);
    caller_close(&run.caller);
}

static const char *name_of(size_t index)
{
    return lost_faults[index].name;
}

static struct fault_search search_of(unsigned seeds)
{
    return (struct fault_search){.model = "lost",
                                 .count = lost_fault_count,
                                 .name = name_of,
                                 .seeds = seeds,
                                 .run = run_seed};
}

TEST(whatever_key_is_lost_each_job_runs_or_is_counted)
{
    struct fault_search search =
        search_of((unsigned)number_from("WEIR_TEST_SEEDS", SEEDS));

    EXPECT_TRUE(fault_search_is_sound(&search));
}

TEST(the_count_finds_every_planted_fault)
{
    struct fault_search search = search_of(FAULT_SEEDS);

    EXPECT_INT(0, faults_missed(&search));
}

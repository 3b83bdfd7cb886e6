/* SPDX-License-Identifier: MIT */
#include "tests/harness/fault_search.h"

#include <stdlib.h>

#include "tests/harness/test.h"

static int status_of_3; /* how the child of seed 3 ends */

static void run_seed(size_t index, uint64_t seed)
{
    EXPECT_TRUE(index == NO_FAULT);
    if (seed == 3 && status_of_3 < 0)
        abort();
    if (seed == 3)
        _Exit(status_of_3);
}

static bool is_sound(int status)
{
    struct fault_search search = {.seeds = 4, .run = run_seed};

    status_of_3 = status;
    return fault_search_is_sound(&search);
}

TEST(a_model_is_sound_if_each_seed_comes_to_its_end)
{
    EXPECT_TRUE(is_sound(0));
    EXPECT_TRUE(!is_sound(1));
    EXPECT_TRUE(!is_sound(2));
    EXPECT_TRUE(!is_sound(-1)); /* a crash */
}

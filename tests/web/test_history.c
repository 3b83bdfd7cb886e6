/* SPDX-License-Identifier: MIT */
#include "adapters/web/history.h"

#include "tests/harness/test.h"

enum { STEP = WEIR__HISTORY_STEP_MS, POINTS = WEIR__HISTORY_POINTS };

static const int64_t began = (int64_t)1800000000 * 1000;

TEST(a_point_is_the_rate_of_its_half_minute)
{
    struct weir__history history = {0};

    weir__history_take(&history, began, 1000, -1);
    weir__history_take(&history, began + 20000, 1100, -1);
    weir__history_take(&history, began + STEP, 1600, 2500);
    EXPECT_INT(20, weir__history_rate(&history, 0));
    EXPECT_INT(250, weir__history_lateness_ms(&history, 0) * 100);
    EXPECT_INT(-1, weir__history_rate(&history, 1));
}

TEST(nothing_is_known_before_the_first_point_is_over)
{
    struct weir__history history = {0};

    EXPECT_INT(-1, weir__history_rate(&history, 0));
    weir__history_take(&history, began, 1000, 5);
    EXPECT_INT(-1, weir__history_rate(&history, 0));
    EXPECT_INT(-1, weir__history_lateness_ms(&history, POINTS - 1));
}

TEST(points_that_nobody_looked_at_are_not_known)
{
    struct weir__history history = {0};

    weir__history_take(&history, began, 0, 1000);
    weir__history_take(&history, began + STEP, 30, 1000);
    weir__history_take(&history, began + 3 * STEP, 330, -1);
    EXPECT_INT(-1, weir__history_rate(&history, 0));
    EXPECT_INT(5, weir__history_rate(&history, 1));
    EXPECT_INT(-1, weir__history_lateness_ms(&history, 1));
    EXPECT_INT(1, weir__history_rate(&history, 2));
    EXPECT_INT(1, weir__history_lateness_ms(&history, 2));
}

TEST(an_hour_is_kept_and_no_more)
{
    struct weir__history history = {0};

    for (int64_t i = 0; i <= 3 * POINTS; i++)
        weir__history_take(&history, began + i * STEP,
                           (uint64_t)(i * i * STEP / 1000), i * 1000);
    for (size_t age = 0; age < POINTS - 1; age++) {
        const int64_t i = 3 * POINTS - 1 - (int64_t)age;

        EXPECT_INT(2 * i + 1, weir__history_rate(&history, age));
        EXPECT_INT(i + 1, weir__history_lateness_ms(&history, age));
    }
    EXPECT_INT(-1, weir__history_rate(&history, POINTS - 1));
}

TEST(after_hours_without_a_look_nothing_old_is_shown)
{
    struct weir__history history = {0};

    for (int64_t i = 0; i < POINTS; i++)
        weir__history_take(&history, began + i * STEP, (uint64_t)i * 30, 0);
    weir__history_take(&history, began + (int64_t)100 * POINTS * STEP, 0, 0);
    for (size_t age = 0; age < POINTS; age++)
        EXPECT_INT(-1, weir__history_rate(&history, age));
}

TEST(a_total_that_fell_counts_from_zero)
{
    struct weir__history history = {0};

    weir__history_take(&history, began, 100000, 0);
    weir__history_take(&history, began + STEP, 60, 0);
    EXPECT_INT(2, weir__history_rate(&history, 0));
}

TEST(a_clock_that_went_back_begins_anew)
{
    struct weir__history history = {0};

    weir__history_take(&history, began, 0, 0);
    weir__history_take(&history, began + STEP, 30, 0);
    weir__history_take(&history, began - STEP, 60, 0);
    for (size_t age = 0; age < POINTS; age++)
        EXPECT_INT(-1, weir__history_rate(&history, age));
    weir__history_take(&history, began, 120, 0);
    EXPECT_INT(2, weir__history_rate(&history, 0));
}

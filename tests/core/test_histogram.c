/* SPDX-License-Identifier: MIT */
#include "core/histogram.h"

#include "tests/harness/test.h"

TEST(the_layout_of_buckets_is_fixed)
{
    static const struct {
        int64_t us;
        size_t bucket;
    } cases[] = {{INT64_MIN, 0},
                 {-1, 0},
                 {0, 0},
                 {1, 1},
                 {3, 3},
                 {4, 4},
                 {7, 7},
                 {8, 8},
                 {9, 8},
                 {10, 9},
                 {15, 11},
                 {16, 12},
                 {1000, 35},
                 {1023, 35},
                 {1024, 36},
                 {1000000, 75},
                 {(INT64_C(1) << 41) - 1, 159},
                 {INT64_C(1) << 41, 159},
                 {INT64_MAX, 159}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        EXPECT_INT(cases[i].bucket, weir__bucket_of(cases[i].us));
}

TEST(buckets_are_neighbours_without_gaps)
{
    for (size_t bucket = 0; bucket < WEIR__BUCKETS; bucket++) {
        int64_t top = weir__bucket_top_us(bucket);

        EXPECT_INT(bucket, weir__bucket_of(top));
        if (bucket < WEIR__BUCKETS - 1)
            EXPECT_INT(bucket + 1, weir__bucket_of(top + 1));
    }
    EXPECT_INT((INT64_C(1) << 41) - 1, weir__bucket_top_us(WEIR__BUCKETS - 1));
}

TEST(bounds_are_at_most_a_quarter_apart)
{
    for (size_t bucket = 5; bucket < WEIR__BUCKETS; bucket++) {
        int64_t low = weir__bucket_top_us(bucket - 1) + 1;
        int64_t width = weir__bucket_top_us(bucket) + 1 - low;

        EXPECT_TRUE(width * 4 <= low);
    }
}

TEST(without_counts_there_is_no_quantile)
{
    uint64_t counts[WEIR__BUCKETS] = {0};

    EXPECT_INT(-1, weir__bucket_quantile_us(counts, 500));
}

TEST(a_quantile_is_the_top_of_the_bucket_that_holds_it)
{
    uint64_t counts[WEIR__BUCKETS] = {0};

    counts[weir__bucket_of(1)] = 50;
    counts[weir__bucket_of(100)] = 49;
    counts[weir__bucket_of(5000)] = 1;
    EXPECT_INT(1, weir__bucket_quantile_us(counts, 0));
    EXPECT_INT(1, weir__bucket_quantile_us(counts, 500));
    EXPECT_INT(111, weir__bucket_quantile_us(counts, 501));
    EXPECT_INT(111, weir__bucket_quantile_us(counts, 990));
    EXPECT_INT(5119, weir__bucket_quantile_us(counts, 991));
    EXPECT_INT(5119, weir__bucket_quantile_us(counts, 1000));
}

TEST(one_count_is_every_quantile)
{
    uint64_t counts[WEIR__BUCKETS] = {0};

    counts[3] = 1;
    EXPECT_INT(3, weir__bucket_quantile_us(counts, 1));
    EXPECT_INT(3, weir__bucket_quantile_us(counts, 999));
}

TEST(huge_counts_do_not_overflow)
{
    uint64_t counts[WEIR__BUCKETS] = {0};

    counts[2] = UINT64_MAX / 2;
    counts[9] = UINT64_MAX / 2;
    EXPECT_INT(2, weir__bucket_quantile_us(counts, 500));
    EXPECT_INT(weir__bucket_top_us(9), weir__bucket_quantile_us(counts, 501));
}

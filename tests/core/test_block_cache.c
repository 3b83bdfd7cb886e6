/* SPDX-License-Identifier: MIT */
#include "core/block_cache.h"
#include "core/mem.h"
#include "tests/harness/test.h"

#include <stdint.h>
#include <string.h>

TEST(a_block_that_was_put_back_is_the_next_one_of_about_its_size)
{
    struct weir__block_cache cache = {0};
    size_t size = 100000, again = 90000;
    void *block = weir__block_cache_take(&cache, &size);

    EXPECT_TRUE(block != NULL);
    EXPECT_TRUE(size >= 100000);
    memset(block, 1, size);
    weir__block_cache_put(&cache, block, size);
    EXPECT_TRUE(weir__block_cache_take(&cache, &again) == block);
    EXPECT_INT((int64_t)size, (int64_t)again);
    weir__mem_free(block);
    weir__block_cache_fini(&cache);
}

TEST(what_is_too_small_or_much_too_large_stays_in_the_cache)
{
    struct weir__block_cache cache = {0};
    size_t size = 100000, larger = 200000, little = 100;
    void *block = weir__block_cache_take(&cache, &size), *other, *third;

    weir__block_cache_put(&cache, block, size);
    other = weir__block_cache_take(&cache, &larger);
    third = weir__block_cache_take(&cache, &little);
    EXPECT_TRUE(other != block);
    EXPECT_TRUE(third != block);
    EXPECT_TRUE(larger >= 200000);
    EXPECT_INT(1, (int64_t)cache.count);
    weir__mem_free(other);
    weir__mem_free(third);
    weir__block_cache_fini(&cache);
}

TEST(a_cache_keeps_no_more_than_it_says)
{
    struct weir__block_cache cache = {0};
    size_t huge = WEIR__CACHE_BYTES + 1;
    void *block = weir__block_cache_take(&cache, &huge);

    weir__block_cache_put(&cache, block, huge);
    EXPECT_INT(0, (int64_t)cache.count);
    for (int i = 0; i < 2 * WEIR__CACHE_BLOCKS; i++) {
        size_t size = 1;

        weir__block_cache_put(&cache, weir__mem_grow(NULL, 1, 8192), 8192);
        if (i == 0) {
            block = weir__block_cache_take(&cache, &size);
            weir__block_cache_put(&cache, block, size);
        }
    }
    EXPECT_INT(WEIR__CACHE_BLOCKS, (int64_t)cache.count);
    weir__block_cache_fini(&cache);
    EXPECT_INT(0, (int64_t)cache.count);
}

TEST(a_size_that_no_memory_has_is_refused)
{
    struct weir__block_cache cache = {0};
    size_t size = SIZE_MAX;

    EXPECT_TRUE(weir__block_cache_take(&cache, &size) == NULL);
}

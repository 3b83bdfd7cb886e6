/* SPDX-License-Identifier: MIT */
#include "core/mem.h"
#include "core/shelf.h"
#include "tests/harness/test.h"

#include <stdint.h>
#include <string.h>

TEST(a_block_that_was_put_back_is_the_next_one_of_about_its_size)
{
    struct weir__shelf shelf = {0};
    size_t size = 100000, again = 90000;
    void *block = weir__shelf_take(&shelf, &size);

    EXPECT_TRUE(block != NULL);
    EXPECT_TRUE(size >= 100000);
    memset(block, 1, size);
    weir__shelf_put(&shelf, block, size);
    EXPECT_TRUE(weir__shelf_take(&shelf, &again) == block);
    EXPECT_INT((int64_t)size, (int64_t)again);
    weir__mem_free(block);
    weir__shelf_fini(&shelf);
}

TEST(what_is_too_small_or_much_too_large_stays_on_the_shelf)
{
    struct weir__shelf shelf = {0};
    size_t size = 100000, larger = 200000, little = 100;
    void *block = weir__shelf_take(&shelf, &size), *other, *third;

    weir__shelf_put(&shelf, block, size);
    other = weir__shelf_take(&shelf, &larger);
    third = weir__shelf_take(&shelf, &little);
    EXPECT_TRUE(other != block);
    EXPECT_TRUE(third != block);
    EXPECT_TRUE(larger >= 200000);
    EXPECT_INT(1, (int64_t)shelf.count);
    weir__mem_free(other);
    weir__mem_free(third);
    weir__shelf_fini(&shelf);
}

TEST(a_shelf_keeps_no_more_than_it_says)
{
    struct weir__shelf shelf = {0};
    size_t huge = WEIR__SHELF_BYTES + 1;
    void *block = weir__shelf_take(&shelf, &huge);

    weir__shelf_put(&shelf, block, huge);
    EXPECT_INT(0, (int64_t)shelf.count);
    for (int i = 0; i < 2 * WEIR__SHELF_BLOCKS; i++) {
        size_t size = 1;

        weir__shelf_put(&shelf, weir__mem_grow(NULL, 1, 8192), 8192);
        if (i == 0) {
            block = weir__shelf_take(&shelf, &size);
            weir__shelf_put(&shelf, block, size);
        }
    }
    EXPECT_INT(WEIR__SHELF_BLOCKS, (int64_t)shelf.count);
    weir__shelf_fini(&shelf);
    EXPECT_INT(0, (int64_t)shelf.count);
}

TEST(a_size_that_no_memory_has_is_refused)
{
    struct weir__shelf shelf = {0};
    size_t size = SIZE_MAX;

    EXPECT_TRUE(weir__shelf_take(&shelf, &size) == NULL);
}

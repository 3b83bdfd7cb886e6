/* SPDX-License-Identifier: MIT */
#include "core/buf.h"
#include "tests/harness/test.h"

TEST(appended_bytes_are_kept_in_order_across_growth)
{
    struct weir__buf buf = {0};

    for (int i = 0; i < 1000; i++)
        weir__buf_append(&buf, "abc", 3);
    EXPECT_INT(3000, buf.len);
    EXPECT_MEM("abcabc", 6, buf.ptr + 2994, 6);
    EXPECT_TRUE(!buf.failed);
    weir__buf_fini(&buf);
}

TEST(a_size_that_overflows_fails_and_stays_failed)
{
    struct weir__buf buf = {0};

    weir__buf_append(&buf, "x", 1);
    EXPECT_TRUE(weir__buf_reserve(&buf, SIZE_MAX - 4) == NULL);
    EXPECT_TRUE(buf.failed);
    weir__buf_append(&buf, "y", 1);
    EXPECT_INT(1, buf.len);
    weir__buf_fini(&buf);
}

/* SPDX-License-Identifier: MIT */
#include "core/date.h"

#include "tests/harness/test.h"

TEST(dates_and_days_are_the_same)
{
    int64_t year;
    int month, day;

    EXPECT_INT(0, weir__date_days(1970, 1, 1));
    EXPECT_INT(-1, weir__date_days(1969, 12, 31));
    EXPECT_INT(4, weir__weekday_of(0)); /* a Thursday */
    EXPECT_INT(3, weir__weekday_of(-1));
    for (int64_t days = -1000000; days < 1000000; days += 13) {
        weir__date_of(days, &year, &month, &day);
        EXPECT_INT(days, weir__date_days(year, month, day));
        EXPECT_TRUE(day <= weir__days_in_month(year, month));
    }
}

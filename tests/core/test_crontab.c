/* SPDX-License-Identifier: MIT */
#include "core/crontab.h"

#include "core/date.h"
#include "core/text.h"
#include "tests/harness/test.h"

#include <stdio.h>

/* Times without a zone; test_cron_vectors.py compares many with croniter. */

enum { DAY = 86400 };

static const char *refusal(const char *text)
{
    static struct weir_error err;
    struct weir__cron cron = {.days = 42};

    err = (struct weir_error){0};
    EXPECT_INT(WEIR_EINVAL,
               weir__cron_parse(weir__slice_str(text), &cron, &err));
    EXPECT_INT(42, cron.days);
    EXPECT_INT(WEIR_EINVAL,
               weir__cron_parse(weir__slice_str(text), &cron, NULL));
    return err.text;
}

static int64_t at(int64_t year, int month, int day, int64_t seconds)
{
    return weir__date_days(year, month, day) * DAY + seconds;
}

/* The next time after one. */
static int64_t next(const char *text, int64_t after)
{
    struct weir__cron cron;
    struct weir_error err = {0};

    (void)weir__cron_parse(weir__slice_str(text), &cron, &err);
    EXPECT_STR("", err.text);
    return weir__cron_next(&cron, NULL, after);
}

TEST(five_fields_come_at_second_0_and_six_begin_with_the_second)
{
    int64_t noon = at(2026, 11, 26, DAY / 2);

    EXPECT_INT(noon + 60, next("* * * * *", noon));
    EXPECT_INT(noon + 60, next("* * * * *", noon + 59));
    EXPECT_INT(noon + 1, next("* * * * * *", noon));
    EXPECT_INT(noon + 70, next("10 * * * * *", noon + 10));
}

TEST(a_field_is_a_list_of_values_ranges_and_steps)
{
    int64_t day = at(2026, 11, 26, 0);

    EXPECT_INT(day + 7 * 60, next("7,9 * * * *", day));
    EXPECT_INT(day + 9 * 60, next("7,9 * * * *", day + 7 * 60));
    EXPECT_INT(day + 21 * 60, next("20-30 * * * *", day + 20 * 60));
    EXPECT_INT(day + 45 * 60, next("*/15 * * * *", day + 30 * 60));
    EXPECT_INT(day + 50 * 60, next("5/15 * * * *", day + 35 * 60));
    EXPECT_INT(day + 24 * 60, next("10-30/7 * * * *", day + 17 * 60));
}

TEST(months_and_weekdays_have_names)
{
    EXPECT_INT(at(2027, 2, 1, 0), next("0 0 1 FEB *", at(2026, 11, 26, 0)));
    /* 26 November 2026 is a Thursday. */
    EXPECT_INT(at(2026, 11, 27, 0),
               next("0 0 * * fri-sun", at(2026, 11, 26, 0)));
    EXPECT_INT(at(2026, 11, 29, 0), next("0 0 * * 7", at(2026, 11, 26, 0)));
    EXPECT_INT(at(2026, 11, 29, 0), next("0 0 * * 0-0", at(2026, 11, 26, 0)));
}

TEST(l_is_the_last_day_and_behind_a_weekday_the_last_of_these)
{
    EXPECT_INT(at(2028, 2, 29, 0), next("0 0 L * *", at(2028, 1, 31, 0)));
    EXPECT_INT(at(2027, 2, 28, 0), next("0 0 l feb *", at(2026, 11, 26, 0)));
    EXPECT_INT(at(2026, 11, 27, 0), next("0 0 * * 5L", at(2026, 11, 26, 0)));
    EXPECT_INT(at(2026, 12, 25, 0), next("0 0 * * friL", at(2026, 11, 27, 0)));
    EXPECT_INT(at(2026, 12, 25, 0), next("0 0 * * L5", at(2026, 11, 27, 0)));
}

TEST(of_two_day_fields_that_leave_days_out_one_is_enough)
{
    int64_t day = at(2026, 11, 26, 0);

    EXPECT_INT(at(2026, 11, 30, 0), next("0 0 13 * mon", day));
    EXPECT_INT(at(2026, 12, 13, 0), next("0 0 13 * mon", at(2026, 12, 7, 0)));
    EXPECT_INT(at(2026, 12, 13, 0), next("0 0 13 * *", day));
    EXPECT_INT(at(2026, 11, 30, 0), next("0 0 1-31 * mon", day));
}

TEST(names_stand_for_whole_expressions)
{
    int64_t now = at(2026, 11, 26, 12345);

    EXPECT_INT(at(2027, 1, 1, 0), next("@yearly", now));
    EXPECT_INT(at(2027, 1, 1, 0), next("@annually", now));
    EXPECT_INT(at(2026, 12, 1, 0), next("@monthly", now));
    EXPECT_INT(at(2026, 11, 29, 0), next("@weekly", now));
    EXPECT_INT(at(2026, 11, 27, 0), next(" @daily", now));
    EXPECT_INT(at(2026, 11, 27, 0), next("@midnight ", now));
    EXPECT_INT(at(2026, 11, 26, 4 * 3600), next("@hourly", now));
}

TEST(a_leap_day_comes_when_there_is_one)
{
    EXPECT_INT(at(2028, 2, 29, 0), next("0 0 29 2 *", at(2026, 11, 26, 0)));
    EXPECT_INT(at(2104, 2, 29, 0), next("0 0 29 2 *", at(2097, 1, 1, 0)));
}

TEST(times_before_1970_are_passed_over)
{
    EXPECT_INT(at(1970, 1, 3, 60), next("* * * * *", -5));
    EXPECT_INT(at(1970, 1, 3, 60), next("* * * * *", 0));
}

TEST(what_is_wrong_is_named)
{
    EXPECT_STR("minute: \"60\" is not 0 to 59", refusal("60 * * * *"));
    EXPECT_STR("hour: \"1x\" is not 0 to 23", refusal("0 1x * * *"));
    EXPECT_STR("day of the month: \"0\" is not 1 to 31", refusal("0 0 0 * *"));
    EXPECT_STR("month: \"mai\" is not 1 to 12 or a name of three letters",
               refusal("0 0 1 mai *"));
    EXPECT_STR("day of the week: \"8\" is not 0 to 7 or a name of three "
               "letters",
               refusal("0 0 * * 8"));
    EXPECT_STR("hour: \"2\" ends a range that began with more: write two "
               "ranges",
               refusal("0 22-2 * * *"));
    EXPECT_STR("minute: \"*/0\" has a step that is 0 or larger than the field",
               refusal("*/0 * * * *"));
    EXPECT_STR("minute: \"*/60\" has a step that is 0 or larger than the field",
               refusal("*/60 * * * *"));
    EXPECT_STR("minute: \"*/x\" has a step that is no number",
               refusal("*/x * * * *"));
    EXPECT_STR("\"@reboot\" is none of @yearly, @monthly, @weekly, @daily, "
               "@hourly",
               refusal("@reboot"));
    EXPECT_STR("\"0 3 * *\" is not five fields (minute, hour, day of the "
               "month, month, day of the week), or six with the second in "
               "front",
               refusal("0 3 * *"));
    EXPECT_STR("\"\" is not five fields (minute, hour, day of the month, "
               "month, day of the week), or six with the second in front",
               refusal(""));
    EXPECT_STR("no month of \"0 0 31 2,4 *\" has such a day",
               refusal("0 0 31 2,4 *"));
}

TEST(a_number_that_is_missing_is_told)
{
    static const char *const fields[] = {",",  "-1",   "1-", "1,,", "-",
                                         ",1", "1-/5", "/5", "*,"};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        char text[24], told[80];

        (void)snprintf(text, sizeof(text), "%s * * * *", fields[i]);
        (void)snprintf(told, sizeof(told),
                       "minute: \"%s\" lacks a number beside a comma, - or /",
                       fields[i]);
        EXPECT_STR(told, refusal(text));
    }
}

TEST(l_among_days_of_the_month_stands_alone)
{
    EXPECT_STR("day of the month: \"L-3\" has more than the L: that stands "
               "alone, for the last day",
               refusal("0 0 L-3 * *"));
    EXPECT_STR("day of the month: \"15l\" has more than the L: that stands "
               "alone, for the last day",
               refusal("0 0 1,15l * *"));
    EXPECT_INT(at(2028, 2, 1, 0), next("0 0 1,L * *", at(2028, 1, 31, 0)));
}

TEST(whatever_is_parsed_neither_crashes_nor_hangs)
{
    static const char letters[] = "0123456789*/,-L@afns  ";
    uint64_t random = 42;
    char text[24];

    for (int i = 0; i < 100000; i++) {
        struct weir__cron cron;
        size_t len = 0;

        for (random = random * 6364136223846793005u + 1442695040888963407u;
             len < (random >> 40) % sizeof(text); len++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[len] = letters[(random >> 33) % (sizeof(letters) - 1)];
        }
        if (weir__cron_parse(weir__slice_of(text, len), &cron, NULL) < 0)
            continue;
        EXPECT_TRUE(weir__cron_next(&cron, NULL, 1800000000) > 1800000000);
    }
}

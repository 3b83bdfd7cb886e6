/* SPDX-License-Identifier: MIT */
#include "core/date.h"

#include "core/assert.h"

int64_t weir__floor_div(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

/* Without the product of quotient and divisor, which may not fit. */
int64_t weir__floor_mod(int64_t number, int64_t by)
{
    int64_t rest = number % by;

    return rest < 0 ? rest + by : rest;
}

/* Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": what the C
 * library has may wait for a lock. Years begin in March here, so that a leap
 * day comes last. */
int64_t weir__date_days(int64_t year, int month, int day)
{
    int64_t from_march = (month + 9) % 12;
    int64_t y = year - (month <= 2), era = weir__floor_div(y, 400);
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * from_march + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
           719468;
}

void weir__date_of(int64_t days, int64_t *ret_year, int *ret_month,
                   int *ret_day)
{
    int64_t shifted = days + 719468, era = weir__floor_div(shifted, 146097);
    int64_t in_era = shifted - era * 146097;
    int64_t of_era =
        (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t of_year = in_era - (365 * of_era + of_era / 4 - of_era / 100);
    int64_t from_march = (5 * of_year + 2) / 153;

    WEIR_ASSERT(of_era >= 0 && of_era < 400 && of_year >= 0 && of_year < 366);
    *ret_day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
    *ret_month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *ret_year = of_era + era * 400 + (*ret_month <= 2);
}

int weir__weekday_of(int64_t days)
{
    return (int)weir__floor_mod(days + 4, 7);
}

bool weir__is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int weir__days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    WEIR_ASSERT(month >= 1 && month <= 12);
    return days[month - 1] + (month == 2 && weir__is_leap(year));
}

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DATE_H
#define WEIR_DATE_H

/* The Gregorian calendar, in days since 1970. Pure functions. */

#include <stdbool.h>
#include <stdint.h>

/* The days of a date, and back. */
int64_t weir__date_days(int64_t year, int month, int day);
void weir__date_of(int64_t days, int64_t *ret_year, int *ret_month,
                   int *ret_day);

/* 0 is Sunday. */
int weir__weekday_of(int64_t days);

bool weir__is_leap(int64_t year);
int weir__days_in_month(int64_t year, int month);

/* The quotient rounded down, also below 0, and what remains, 0 to by - 1. */
int64_t weir__floor_div(int64_t number, int64_t by);
int64_t weir__floor_mod(int64_t number, int64_t by);

#endif

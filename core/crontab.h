/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CRONTAB_H
#define WEIR_CRONTAB_H

/* Times that come again and again, as people write them for cron:
 *
 *     [second] minute hour day-of-month month day-of-week
 *
 * Each is *, a number, a range a-b, one of these with a step /n, or several
 * between commas; a step behind a single number counts to the field's end.
 * Months and weekdays have names of three letters, 0 and 7 are Sunday. L is
 * the last day of a month, 5L the last Friday of one. Where both day fields
 * leave days out, a day need be in one of them only. @yearly, @annually,
 * @monthly, @weekly, @daily, @midnight and @hourly stand for such texts.
 *
 * Summer time: an hour that begins with * counts hours as they pass, so a time
 * that the clocks skip does not come, and one that they repeat comes twice.
 * Else a time that they skip comes when they jump, and of one that they repeat
 * the first counts. Pure functions. */

#include <weir/base.h>

struct weir__zone;

struct weir__cron {
    uint64_t seconds, minutes; /* bit sets, as all below */
    uint32_t hours, days, months;
    uint8_t weekdays;      /* 0 is Sunday */
    uint8_t last_weekdays; /* the last one of a month */
    bool has_last_day;     /* of a month */
    bool is_any_day, is_any_weekday;
    bool follows_hours; /* of the clock that never jumps */
};

/* WEIR_EINVAL with a sentence that names the field, also where no day ever
 * matches. `err` may be NULL. */
int weir__cron_parse(struct weir_slice text, struct weir__cron *ret_cron,
                     struct weir_error *err);

/* The first time after `after`, both in seconds since 1970; -1: none within
 * 100 years. What lies before 3 January 1970 is passed over. */
int64_t weir__cron_next(const struct weir__cron *cron,
                        const struct weir__zone *zone, int64_t after);

#endif

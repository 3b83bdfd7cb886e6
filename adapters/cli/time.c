/* SPDX-License-Identifier: MIT */
#include "adapters/cli/time.h"

#include "core/date.h"
#include "core/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* What is left to read; `failed` is sticky. */
struct scan {
    const char *at;
    bool failed;
};

struct moment {
    int64_t year, month, day, hour, minute, second;
    int64_t ms;             /* fraction, rounded up */
    int64_t offset_minutes; /* east of UTC */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly `count` digits within min..max. */
static int64_t digits(struct scan *scan, int count, int64_t min, int64_t max)
{
    int64_t value = 0;

    for (int i = 0; i < count && !scan->failed; i++) {
        if (is_digit(*scan->at))
            value = value * 10 + (*scan->at++ - '0');
        else
            scan->failed = true;
    }
    scan->failed = scan->failed || value < min || value > max;
    return value;
}

/* One character, either case. */
static void expect(struct scan *scan, char upper, char lower)
{
    if (!scan->failed && (*scan->at == upper || *scan->at == lower))
        scan->at++;
    else
        scan->failed = true;
}

/* Rounded up, so that a job never comes due before the point given. */
static int64_t fraction_ms(struct scan *scan)
{
    int64_t ms = 0, unit = 100;
    bool is_more = false;

    if (scan->failed || *scan->at != '.')
        return 0;
    scan->at++;
    if (!is_digit(*scan->at))
        scan->failed = true;
    for (; is_digit(*scan->at); scan->at++) {
        ms += (*scan->at - '0') * unit;
        is_more = is_more || (unit == 0 && *scan->at != '0');
        unit /= 10;
    }
    return ms + (is_more ? 1 : 0);
}

static int64_t offset(struct scan *scan)
{
    int64_t sign, hours, minutes;

    if (scan->failed || *scan->at == 'Z' || *scan->at == 'z') {
        expect(scan, 'Z', 'z');
        return 0;
    }
    sign = *scan->at == '-' ? -1 : 1;
    expect(scan, '+', '-');
    hours = digits(scan, 2, 0, 23);
    expect(scan, ':', ':');
    minutes = digits(scan, 2, 0, 59);
    return sign * (hours * 60 + minutes);
}

static void read_moment(struct scan *scan, struct moment *moment)
{
    moment->year = digits(scan, 4, 0, 9999);
    expect(scan, '-', '-');
    moment->month = digits(scan, 2, 1, 12);
    expect(scan, '-', '-');
    moment->day = digits(scan, 2, 1, 31);
    expect(scan, 'T', 't');
    moment->hour = digits(scan, 2, 0, 23);
    expect(scan, ':', ':');
    moment->minute = digits(scan, 2, 0, 59);
    expect(scan, ':', ':');
    moment->second = digits(scan, 2, 0, 60); /* 60: a leap second */
    moment->ms = fraction_ms(scan);
    moment->offset_minutes = offset(scan);
    scan->failed =
        scan->failed || *scan->at != '\0' ||
        moment->day > weir__days_in_month(moment->year, (int)moment->month);
}

int weir__time_parse(const char *text, int64_t *ret_ms, struct weir_error *err)
{
    struct scan scan = {text, false};
    struct moment moment = {0};
    int64_t minutes;

    read_moment(&scan, &moment);
    if (scan.failed)
        return weir__error_set(
            err, WEIR_EINVAL,
            "\"%.60s\" is not a time; write it like 2026-01-31T08:30:00Z or "
            "2026-01-31T08:30:00.250+01:00",
            text);
    minutes = weir__date_days(moment.year, (int)moment.month, (int)moment.day) *
                  1440 +
              moment.hour * 60 + moment.minute - moment.offset_minutes;
    *ret_ms = (minutes * 60 + moment.second) * 1000 + moment.ms;
    return WEIR_OK;
}

void weir__time_print(int64_t ms, char buf[32])
{
    const int64_t day_ms = INT64_C(86400000);
    int64_t of_day = weir__floor_mod(ms, day_ms), year;
    int month, day;

    weir__date_of(weir__floor_div(ms, day_ms), &year, &month, &day);
    if (year < 0 || year > 9999) {
        (void)snprintf(buf, 32, "?");
        return;
    }
    (void)snprintf(buf, 32, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year,
                   month, day, (int)(of_day / 3600000),
                   (int)(of_day / 60000 % 60), (int)(of_day / 1000 % 60),
                   (int)(of_day % 1000)); /* fits */
}

void weir__span_print(int64_t ms, size_t most, char buf[64])
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {
        {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
    };
    const size_t count = sizeof(units) / sizeof(units[0]);
    size_t first = 0, len = 0;

    if (ms <= 0) {
        (void)snprintf(buf, 64, "0ms"); /* fits */
        return;
    }
    while (ms < units[first].ms)
        first++;
    for (size_t i = first; i < count && i - first < most; i++) {
        if (ms >= units[i].ms)
            len += (size_t)snprintf(buf + len, 64 - len, "%" PRId64 "%s",
                                    ms / units[i].ms, units[i].name); /* fits */
        ms %= units[i].ms;
    }
}

/* SPDX-License-Identifier: MIT */
#include "core/crontab.h"

#include <string.h>

#include "core/assert.h"
#include "core/date.h"
#include "core/error.h"
#include "core/text.h"
#include "core/zone.h"

enum { DAY = 86400, YEARS_MAX = 100 };

enum field { SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, WEEKDAY, FIELDS };

static const struct field_rule {
    const char *name;
    int lo, hi;
    const char *names; /* of three letters each; the first one is `lo` */
} rules[] = {
    [SECOND] = {"second", 0, 59, ""},
    [MINUTE] = {"minute", 0, 59, ""},
    [HOUR] = {"hour", 0, 23, ""},
    [DAY_OF_MONTH] = {"day of the month", 1, 31, ""},
    [MONTH] = {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    [WEEKDAY] = {"day of the week", 0, 7, "sunmontuewedthufrisat"},
};

/* --- parsing ------------------------------------------------------------- */

/* What is wrong with a part of a field. */
static int refuse(struct weir_error *err, enum field field,
                  struct weir_slice part, const char *why)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    return weir__error_set(err, WEIR_EINVAL, "%s: \"%s\" %s", rules[field].name,
                           weir__text_quote(part, quote), why);
}

static int refuse_range(struct weir_error *err, enum field field,
                        struct weir_slice part)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    return weir__error_set(
        err, WEIR_EINVAL, "%s: \"%s\" is not %d to %d%s", rules[field].name,
        weir__text_quote(part, quote), rules[field].lo, rules[field].hi,
        rules[field].names[0] == '\0' ? "" : " or a name of three letters");
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Cut off what stands in front of `at`, and what is there. */
static struct weir_slice cut(struct weir_slice *text, size_t at)
{
    struct weir_slice part = weir__slice_of(text->ptr, at);
    size_t skipped = at < text->len ? at + 1 : at;

    WEIR_ASSERT(at <= text->len);
    *text = weir__slice_of(text->ptr + skipped, text->len - skipped);
    return part;
}

static size_t find(struct weir_slice text, char c)
{
    size_t at = 0;

    while (at < text.len && text.ptr[at] != (uint8_t)c)
        at++;
    return at;
}

static int name_value(enum field field, struct weir_slice text)
{
    const char *names = rules[field].names;

    for (int i = 0; text.len == 3 && names[3 * i] != '\0'; i++) {
        bool is_same = true;

        for (int j = 0; j < 3; j++)
            is_same = is_same && (text.ptr[j] | 32) == names[3 * i + j];
        if (is_same)
            return rules[field].lo + i;
    }
    return -1;
}

/* A number or a name; -1: none that the field has. */
static int value_of(enum field field, struct weir_slice text)
{
    int number = 0;

    if (text.len == 0 || text.len > 3 || text.ptr[0] < '0' || text.ptr[0] > '9')
        return name_value(field, text);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        number = number * 10 + (text.ptr[i] - '0');
    }
    return number < rules[field].lo || number > rules[field].hi ? -1 : number;
}

static int parse_step(enum field field, struct weir_slice part,
                      struct weir_slice text, int *ret_step,
                      struct weir_error *err)
{
    int step = 0;

    for (size_t i = 0; i < text.len && step < 100; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return refuse(err, field, part, "has a step that is no number");
        step = step * 10 + (text.ptr[i] - '0');
    }
    if (step < 1 || step > rules[field].hi)
        return refuse(err, field, part,
                      "has a step that is 0 or larger than the field");
    *ret_step = step;
    return WEIR_OK;
}

/* *, a or a-b. Of a weekday range the end may be Sunday. */
static int parse_range(enum field field, struct weir_slice range, bool has_step,
                       int *ret_lo, int *ret_hi, struct weir_error *err)
{
    size_t dash = find(range, '-');
    struct weir_slice first;

    *ret_lo = rules[field].lo;
    *ret_hi = field == WEEKDAY ? 6 : rules[field].hi;
    if (weir__slice_equal(range, weir__slice_str("*")))
        return WEIR_OK;
    first = weir__slice_of(range.ptr, dash);
    *ret_lo = value_of(field, first);
    if (*ret_lo < 0)
        return refuse_range(err, field, first);
    if (dash == range.len) {
        if (!has_step)
            *ret_hi = *ret_lo;
        return WEIR_OK;
    }
    range = weir__slice_of(range.ptr + dash + 1, range.len - dash - 1);
    *ret_hi = value_of(field, range);
    if (*ret_hi < 0)
        return refuse_range(err, field, range);
    if (field == WEEKDAY && *ret_hi == 0 && *ret_lo > 0)
        *ret_hi = 7;
    if (*ret_hi < *ret_lo)
        return refuse(err, field, range,
                      "ends a range that began with more: write two ranges");
    return WEIR_OK;
}

/* L among days, 5L or L5 among weekdays. False: it is none of these. */
static bool take_last(enum field field, struct weir_slice part,
                      struct weir__cron *cron)
{
    bool is_behind, is_before;
    int weekday;

    if (field != DAY_OF_MONTH && field != WEEKDAY)
        return false;
    is_behind = part.len > 0 && (part.ptr[part.len - 1] | 32) == 'l';
    is_before = part.len > 0 && (part.ptr[0] | 32) == 'l';
    if (field == DAY_OF_MONTH) {
        cron->has_last_day = cron->has_last_day || (is_behind && part.len == 1);
        return is_behind && part.len == 1;
    }
    if (part.len < 2 || (!is_behind && !is_before))
        return false;
    weekday =
        value_of(field, is_behind ? weir__slice_of(part.ptr, part.len - 1)
                                  : weir__slice_of(part.ptr + 1, part.len - 1));
    if (weekday < 0)
        return false;
    cron->last_weekdays |= (uint8_t)(1U << weekday % 7);
    return true;
}

/* One of those between commas. */
static int parse_part(enum field field, struct weir_slice part, uint64_t *set,
                      struct weir__cron *cron, struct weir_error *err)
{
    struct weir_slice text = part, range;
    size_t slash = find(part, '/');
    bool has_step = slash < part.len;
    int lo, hi, step = 1, rc;

    if (take_last(field, part, cron))
        return WEIR_OK;
    if (field == DAY_OF_MONTH &&
        (find(part, 'L') < part.len || find(part, 'l') < part.len))
        return refuse(err, field, part,
                      "has more than the L: that stands "
                      "alone, for the last day");
    range = cut(&text, slash);
    rc = parse_range(field, range, has_step, &lo, &hi, err);
    if (rc == WEIR_OK && has_step)
        rc = parse_step(field, part, text, &step, err);
    if (rc < 0)
        return rc;
    for (int i = lo; i <= hi; i += step)
        *set |= UINT64_C(1) << (field == WEEKDAY ? i % 7 : i);
    return WEIR_OK;
}

/* Of a part of a field, up to its step. */
static bool lacks_number(struct weir_slice part)
{
    size_t len = find(part, '/');

    return len == 0 || part.ptr[0] == '-' || part.ptr[len - 1] == '-';
}

static int parse_field(enum field field, struct weir_slice text,
                       uint64_t *ret_set, struct weir__cron *cron,
                       struct weir_error *err)
{
    const struct weir_slice whole = text;
    uint64_t set = 0;

    do {
        bool is_last = find(text, ',') == text.len;
        struct weir_slice part = cut(&text, find(text, ','));
        int rc = lacks_number(part)
                     ? refuse(err, field, whole,
                              "lacks a number beside a comma, - or /")
                     : parse_part(field, part, &set, cron, err);

        if (rc < 0)
            return rc;
        if (is_last)
            break;
    } while (true);
    *ret_set = set;
    return WEIR_OK;
}

/* Is there a day that ever matches? In every 400 years each date comes on each
 * day of the week, but for 29 February, which comes on all of them, too. */
static bool ever_comes(const struct weir__cron *cron)
{
    if (!cron->is_any_weekday || cron->has_last_day)
        return true;
    for (int month = 1; month <= 12; month++)
        for (int day = 1; day <= weir__days_in_month(2000, month); day++)
            if ((cron->months >> month & 1) != 0 &&
                (cron->days >> day & 1) != 0)
                return true;
    return false;
}

/* The text that a name such as @daily stands for; empty: it is none. */
static struct weir_slice nickname(struct weir_slice text)
{
    static const char *const names[][2] = {
        {"@yearly", "0 0 1 1 *"},  {"@annually", "0 0 1 1 *"},
        {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
        {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (weir__slice_equal(text, weir__slice_str(names[i][0])))
            return weir__slice_str(names[i][1]);
    return (struct weir_slice){0};
}

/* Cut the text at blanks. Returns how many fields there are, FIELDS + 1 for
 * more than may be. */
static size_t split(struct weir_slice text, struct weir_slice words[FIELDS])
{
    size_t count = 0;

    for (;;) {
        size_t len = 0;

        while (text.len > 0 && is_blank(text.ptr[0]))
            text = weir__slice_of(text.ptr + 1, text.len - 1);
        while (len < text.len && !is_blank(text.ptr[len]))
            len++;
        if (len == 0 || count == FIELDS)
            return count + (len > 0);
        words[count++] = cut(&text, len);
    }
}

static void keep(struct weir__cron *cron, const uint64_t sets[FIELDS],
                 struct weir_slice hour)
{
    const uint64_t all_days = UINT64_C(0xfffffffe);

    WEIR_ASSERT(sets[SECOND] != 0 && sets[MINUTE] != 0 && sets[HOUR] != 0);
    cron->seconds = sets[SECOND];
    cron->minutes = sets[MINUTE];
    cron->hours = (uint32_t)sets[HOUR];
    cron->days = (uint32_t)sets[DAY_OF_MONTH];
    cron->months = (uint32_t)sets[MONTH];
    cron->weekdays = (uint8_t)sets[WEEKDAY];
    cron->is_any_day = sets[DAY_OF_MONTH] == all_days;
    cron->is_any_weekday = sets[WEEKDAY] == 0x7f;
    cron->follows_hours = hour.ptr[0] == '*' || sets[HOUR] == 0xffffff;
}

int weir__cron_parse(struct weir_slice text, struct weir__cron *ret_cron,
                     struct weir_error *err)
{
    struct weir_slice words[FIELDS], stands_for;
    struct weir__cron cron = {0};
    uint64_t sets[FIELDS] = {1}; /* second 0 */
    char quote[WEIR__TEXT_QUOTE_CAP];
    size_t count = split(text, words), first;

    if (count == 1 && words[0].ptr[0] == '@') {
        stands_for = nickname(words[0]);
        if (stands_for.len == 0)
            return weir__error_set(
                err, WEIR_EINVAL,
                "\"%s\" is none of @yearly, @monthly, @weekly, @daily, @hourly",
                weir__text_quote(words[0], quote));
        count = split(stands_for, words);
    }
    if (count < FIELDS - 1 || count > FIELDS)
        return weir__error_set(
            err, WEIR_EINVAL,
            "\"%s\" is not five fields (minute, hour, day of the month, month, "
            "day of the week), or six with the second in front",
            weir__text_quote(text, quote));
    first = FIELDS - count;
    for (size_t i = first; i < FIELDS; i++) {
        int rc =
            parse_field((enum field)i, words[i - first], &sets[i], &cron, err);

        if (rc < 0)
            return rc;
    }
    keep(&cron, sets, words[HOUR - first]);
    if (!ever_comes(&cron))
        return weir__error_set(err, WEIR_EINVAL,
                               "no month of \"%s\" has such a day",
                               weir__text_quote(text, quote));
    *ret_cron = cron;
    return WEIR_OK;
}

/* --- the next time ------------------------------------------------------- */

static bool is_day(const struct weir__cron *cron, int64_t days, int64_t year,
                   int month, int day)
{
    int length = weir__days_in_month(year, month);
    int weekday = weir__weekday_of(days);
    bool by_day =
        (cron->days >> day & 1) != 0 || (cron->has_last_day && day == length);
    bool by_weekday =
        (cron->weekdays >> weekday & 1) != 0 ||
        ((cron->last_weekdays >> weekday & 1) != 0 && day + 7 > length);

    if (cron->is_any_day)
        return by_weekday;
    if (cron->is_any_weekday)
        return by_day;
    return by_day || by_weekday;
}

/* The first bit from `from` on; -1: none. */
static int next_bit(uint64_t set, int from)
{
    uint64_t rest = from > 63 ? 0 : set >> from << from;

    WEIR_ASSERT(from >= 0);
    return rest == 0 ? -1 : __builtin_ctzll(rest);
}

/* The first time of a day at or after `from`; -1: none is left. */
static int64_t next_in_day(const struct weir__cron *cron, int64_t from)
{
    int hour = (int)(from / 3600), minute = (int)(from / 60 % 60);
    int second = next_bit(cron->seconds, (int)(from % 60)), at;

    WEIR_ASSERT(from >= 0 && from < DAY);
    at = next_bit(cron->minutes, second < 0 ? minute + 1 : minute);
    if (at != minute || second < 0)
        second = next_bit(cron->seconds, 0);
    minute = at;
    at = next_bit(cron->hours, minute < 0 ? hour + 1 : hour);
    if (at < 0)
        return -1;
    if (at != hour || minute < 0) {
        minute = next_bit(cron->minutes, 0);
        second = next_bit(cron->seconds, 0);
    }
    WEIR_ASSERT(minute >= 0 && second >= 0);
    return at * 3600 + minute * 60 + second;
}

/* The first local time after `local`; -1: none within the years. */
static int64_t next_local(const struct weir__cron *cron, int64_t local)
{
    int64_t days = (local + 1) / DAY, rest = (local + 1) % DAY, year, last, at;
    int month, day;

    WEIR_ASSERT(local >= 0 && cron->months != 0);
    weir__date_of(days, &year, &month, &day);
    last = year + YEARS_MAX;
    for (;;) {
        if ((cron->months >> month & 1) != 0 &&
            is_day(cron, days, year, month, day)) {
            at = next_in_day(cron, rest);
            if (at >= 0)
                return days * DAY + at;
        }
        rest = 0;
        if ((cron->months >> month & 1) == 0) /* the rest of the month */
            day = weir__days_in_month(year, month);
        if (day < weir__days_in_month(year, month)) {
            day++;
        } else {
            day = 1;
            year += month == 12;
            month = month % 12 + 1;
            if (year > last)
                return -1;
        }
        days = weir__date_days(year, month, day);
    }
}

/* The moments at which the clocks show such a time, one stretch of a constant
 * offset after the other. */
static int64_t next_moment(const struct weir__cron *cron,
                           const struct weir__zone *zone, int64_t after)
{
    int64_t last = after + (int64_t)YEARS_MAX * 366 * DAY;

    while (after < last) {
        int64_t until;
        int64_t offset = weir__zone_offset(zone, after + 1, &until);
        int64_t local = next_local(cron, after + offset);

        if (local < 0)
            return -1;
        if (local - offset < until)
            return local - offset;
        after = until - 1;
    }
    return -1;
}

int64_t weir__cron_next(const struct weir__cron *cron,
                        const struct weir__zone *zone, int64_t after)
{
    int64_t until, local, moment;

    if (after < 2 * DAY)
        after = 2 * DAY; /* local times are none before 1970 */
    if (cron->follows_hours)
        return next_moment(cron, zone, after);
    local = after + weir__zone_offset(zone, after, &until);
    do {
        local = next_local(cron, local);
        if (local < 0)
            return -1;
        moment = weir__zone_moment(zone, local);
    } while (moment <= after);
    return moment;
}

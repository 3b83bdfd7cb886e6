/* SPDX-License-Identifier: MIT */
#include "core/zone.h"

#include <string.h>

#include "core/assert.h"
#include "core/date.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

/* A file has changes of the offset up to some year, and a rule for the time
 * behind the last one: a text such as CET-1CEST,M3.5.0,M10.5.0/3. */

enum {
    HEAD = 44,            /* bytes of a header */
    TYPE = 6,             /* of an entry that says what an offset is */
    CHANGES_MAX = 10000,  /* far more than any zone has */
    DAY = 86400,          /* seconds */
    OFFSET_MAX = 2 * DAY, /* beyond what any zone has */
    RULE_HOURS_MAX = 167  /* of the time of day of a rule */
};

/* The day of a year on which a rule changes the clocks. */
struct day_rule {
    enum { DAY_OF_YEAR, DAY_WITHOUT_LEAP, DAY_OF_WEEK } form;
    int number;      /* of the day: from 0, or from 1 without 29 February */
    int month, week; /* week 5 is the last one */
    int64_t time;    /* of that day, local */
};

struct rule {
    bool is_there;
    bool has_summer;
    int64_t standard, summer; /* offsets */
    struct day_rule begin, end;
};

struct change {
    int64_t at; /* UTC */
    int64_t offset;
};

struct weir__zone {
    int64_t first_offset; /* before the first change */
    struct rule rule;
    size_t count;
    struct change changes[];
};

/* --- the rule behind the last change ------------------------------------- */

static bool take(struct weir_slice *text, char c)
{
    if (text->len == 0 || text->ptr[0] != (uint8_t)c)
        return false;
    *text = weir__slice_of(text->ptr + 1, text->len - 1);
    return true;
}

static bool is_digit(struct weir_slice text)
{
    return text.len > 0 && text.ptr[0] >= '0' && text.ptr[0] <= '9';
}

/* At least one digit, at most `most`. */
static bool take_number(struct weir_slice *text, int most, int *ret_number)
{
    int number = 0;

    if (!is_digit(*text))
        return false;
    while (is_digit(*text)) {
        number = number * 10 + (text->ptr[0] - '0');
        if (number > most)
            return false;
        *text = weir__slice_of(text->ptr + 1, text->len - 1);
    }
    *ret_number = number;
    return true;
}

/* An abbreviation: letters, or anything between < and >. */
static bool take_name(struct weir_slice *text)
{
    size_t len = 0;

    if (take(text, '<')) {
        while (len < text->len && text->ptr[len] != '>')
            len++;
        *text = weir__slice_of(text->ptr + len, text->len - len);
        return take(text, '>');
    }
    while (len < text->len &&
           ((text->ptr[len] | 32) >= 'a' && (text->ptr[len] | 32) <= 'z'))
        len++;
    *text = weir__slice_of(text->ptr + len, text->len - len);
    return len > 0;
}

/* Hours, perhaps minutes and seconds, perhaps with a sign. */
static bool take_time(struct weir_slice *text, int64_t *ret_seconds)
{
    bool is_negative = take(text, '-');
    int hours = 0, minutes = 0, seconds = 0;

    if (!is_negative)
        (void)take(text, '+');
    if (!take_number(text, RULE_HOURS_MAX, &hours) ||
        (take(text, ':') && !take_number(text, 59, &minutes)) ||
        (take(text, ':') && !take_number(text, 59, &seconds)))
        return false;
    *ret_seconds = hours * 3600 + minutes * 60 + seconds;
    if (is_negative)
        *ret_seconds = -*ret_seconds;
    return true;
}

static bool take_day(struct weir_slice *text, struct day_rule *ret_day)
{
    struct day_rule day = {.form = DAY_OF_YEAR, .time = 2 * 3600};
    bool is_read;

    if (!take(text, ','))
        return false;
    if (take(text, 'M')) {
        day.form = DAY_OF_WEEK;
        is_read = take_number(text, 12, &day.month) && day.month > 0 &&
                  take(text, '.') && take_number(text, 5, &day.week) &&
                  day.week > 0 && take(text, '.') &&
                  take_number(text, 6, &day.number);
    } else {
        if (take(text, 'J'))
            day.form = DAY_WITHOUT_LEAP;
        is_read = take_number(text, 365, &day.number) &&
                  (day.form == DAY_OF_YEAR || day.number > 0);
    }
    if (!is_read || (take(text, '/') && !take_time(text, &day.time)))
        return false;
    *ret_day = day;
    return true;
}

static bool is_offset(int64_t offset)
{
    return offset >= -OFFSET_MAX && offset <= OFFSET_MAX;
}

/* Offsets in the text are west of Greenwich. Empty: there is no rule. */
static bool read_rule(struct weir_slice text, struct rule *ret_rule)
{
    struct rule rule = {.is_there = text.len > 0};

    *ret_rule = rule;
    if (!rule.is_there)
        return true;
    if (!take_name(&text) || !take_time(&text, &rule.standard))
        return false;
    rule.standard = -rule.standard;
    rule.summer = rule.standard + 3600;
    rule.has_summer = text.len > 0;
    if (rule.has_summer) {
        if (!take_name(&text))
            return false;
        if (text.len > 0 && text.ptr[0] != ',') {
            if (!take_time(&text, &rule.summer))
                return false;
            rule.summer = -rule.summer;
        }
        if (!take_day(&text, &rule.begin) || !take_day(&text, &rule.end))
            return false;
    }
    *ret_rule = rule;
    return text.len == 0 && is_offset(rule.standard) &&
           (!rule.has_summer || is_offset(rule.summer));
}

static int64_t day_in(const struct day_rule *day, int64_t year)
{
    int64_t first =
        weir__date_days(year, day->form == DAY_OF_WEEK ? day->month : 1, 1);
    int to_wanted;

    if (day->form == DAY_OF_YEAR)
        return first + day->number;
    if (day->form == DAY_WITHOUT_LEAP)
        return first + day->number - 1 +
               (day->number >= 60 && weir__is_leap(year));
    to_wanted = (day->number - weir__weekday_of(first) + 7) % 7;
    to_wanted += 7 * (day->week - 1);
    while (to_wanted >= weir__days_in_month(year, day->month))
        to_wanted -= 7;
    return first + to_wanted;
}

/* Both changes of a year, the earlier one first. */
static void changes_in(const struct rule *rule, int64_t year,
                       struct change ret_changes[2])
{
    struct change begin = {
        day_in(&rule->begin, year) * DAY + rule->begin.time - rule->standard,
        rule->summer,
    };
    struct change end = {
        day_in(&rule->end, year) * DAY + rule->end.time - rule->summer,
        rule->standard,
    };

    ret_changes[0] = begin.at < end.at ? begin : end;
    ret_changes[1] = begin.at < end.at ? end : begin;
}

static int64_t offset_by_rule(const struct rule *rule, int64_t utc,
                              int64_t *ret_until)
{
    struct change changes[2];
    int64_t offset = rule->standard, year;
    int month, day;

    *ret_until = INT64_MAX;
    if (!rule->has_summer)
        return offset;
    weir__date_of(weir__floor_div(utc, DAY), &year, &month, &day);
    for (int64_t y = year - 1; y <= year + 1; y++) {
        changes_in(rule, y, changes);
        for (size_t i = 0; i < 2; i++) {
            if (changes[i].at > utc) {
                *ret_until = changes[i].at;
                return offset;
            }
            offset = changes[i].offset;
        }
    }
    return offset;
}

/* --- reading ------------------------------------------------------------- */

static uint64_t number_at(const uint8_t *at, size_t width)
{
    uint64_t number = 0;

    WEIR_ASSERT(width == 4 || width == 8);
    for (size_t i = 0; i < width; i++)
        number = number << 8 | at[i];
    return number;
}

static int64_t signed_at(const uint8_t *at, size_t width)
{
    uint64_t number = number_at(at, width);

    if (width == 4)
        return (int32_t)(uint32_t)number;
    return (int64_t)number;
}

/* What a header says there is. */
struct head {
    size_t utc_marks, standard_marks, leaps, changes, types, chars;
    size_t len; /* of header and data */
};

/* `width`: bytes of a time in the data. */
static bool read_head(struct weir_slice bytes, size_t width,
                      struct head *ret_head)
{
    size_t counts[6];

    if (bytes.len < HEAD || memcmp(bytes.ptr, "TZif", 4) != 0)
        return false;
    for (size_t i = 0; i < 6; i++) {
        counts[i] = (size_t)number_at(bytes.ptr + 20 + 4 * i, 4);
        if (counts[i] > CHANGES_MAX)
            return false;
    }
    *ret_head = (struct head){
        .utc_marks = counts[0],
        .standard_marks = counts[1],
        .leaps = counts[2],
        .changes = counts[3],
        .types = counts[4],
        .chars = counts[5],
        .len = HEAD + counts[3] * (width + 1) + counts[4] * TYPE + counts[5] +
               counts[2] * (width + 4) + counts[1] + counts[0],
    };
    return counts[4] > 0 && ret_head->len <= bytes.len;
}

/* Fill in the changes of the second part; false: they are none. */
static bool read_changes(struct weir__zone *zone, const uint8_t *data,
                         const struct head *head)
{
    const uint8_t *kinds = data + head->changes * 8;
    const uint8_t *types = kinds + head->changes;

    WEIR_ASSERT(head->types > 0);
    zone->count = head->changes;
    for (size_t i = 0; i < head->types; i++) {
        int64_t offset = signed_at(types + i * TYPE, 4);

        if (!is_offset(offset))
            return false;
    }
    zone->first_offset = signed_at(types, 4);
    for (size_t i = 0; i < head->changes; i++) {
        zone->changes[i].at = signed_at(data + i * 8, 8);
        if (kinds[i] >= head->types ||
            (i > 0 && zone->changes[i].at <= zone->changes[i - 1].at))
            return false;
        zone->changes[i].offset = signed_at(types + kinds[i] * TYPE, 4);
    }
    return true;
}

/* The text between two line feeds at the end. */
static bool read_end(struct weir_slice bytes, struct rule *ret_rule)
{
    if (bytes.len < 2 || bytes.ptr[0] != '\n' ||
        bytes.ptr[bytes.len - 1] != '\n')
        return false;
    return read_rule(weir__slice_of(bytes.ptr + 1, bytes.len - 2), ret_rule);
}

int weir__zone_read(struct weir_slice bytes, struct weir__zone **ret_zone,
                    struct weir_error *err)
{
    struct head head;
    struct weir__zone *zone;

    if (!read_head(bytes, 4, &head))
        return weir__error_set(err, WEIR_EINVAL,
                               "it is no file of a time zone");
    if (bytes.ptr[4] < '2')
        return weir__error_set(
            err, WEIR_EINVAL,
            "it is a time zone file of the first version, which ends in 2037");
    bytes = weir__slice_of(bytes.ptr + head.len, bytes.len - head.len);
    if (!read_head(bytes, 8, &head))
        return weir__error_set(err, WEIR_EINVAL,
                               "the second part of the time zone is broken");
    if (head.leaps > 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "the time zone counts leap seconds");
    zone = weir__mem_new(sizeof(*zone) + head.changes * sizeof(struct change));
    if (zone == NULL)
        return WEIR_ENOMEM;
    if (!read_changes(zone, bytes.ptr + HEAD, &head) ||
        !read_end(weir__slice_of(bytes.ptr + head.len, bytes.len - head.len),
                  &zone->rule)) {
        weir__mem_free(zone);
        return weir__error_set(err, WEIR_EINVAL,
                               "the changes of the time zone make no sense");
    }
    *ret_zone = zone;
    return WEIR_OK;
}

void weir__zone_free(struct weir__zone *zone)
{
    weir__mem_free(zone);
}

static bool is_name_byte(uint8_t c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '+';
}

int weir__zone_check(struct weir_slice name, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    bool is_sound = name.len > 0 && name.len <= WEIR__ZONE_MAX;
    bool is_in_part = false;

    for (size_t i = 0; is_sound && i < name.len; i++) {
        is_sound = is_name_byte(name.ptr[i]) ||
                   (name.ptr[i] == '/' && is_in_part && i + 1 < name.len);
        is_in_part = name.ptr[i] != '/';
    }
    if (is_sound)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "\"%s\" is no name of a time zone, such as Europe/Berlin",
        weir__text_quote(name, quote));
}

/* --- asking -------------------------------------------------------------- */

/* How many changes are not after `utc`. */
static size_t changes_until(const struct weir__zone *zone, int64_t utc)
{
    size_t lo = 0, hi = zone->count;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;

        if (zone->changes[middle].at <= utc)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

int64_t weir__zone_offset(const struct weir__zone *zone, int64_t utc,
                          int64_t *ret_until)
{
    size_t passed;

    *ret_until = INT64_MAX;
    if (zone == NULL)
        return 0;
    passed = changes_until(zone, utc);
    if (passed < zone->count) {
        *ret_until = zone->changes[passed].at;
        return passed == 0 ? zone->first_offset
                           : zone->changes[passed - 1].offset;
    }
    if (zone->rule.is_there)
        return offset_by_rule(&zone->rule, utc, ret_until);
    return zone->count == 0 ? zone->first_offset
                            : zone->changes[zone->count - 1].offset;
}

int64_t weir__zone_moment(const struct weir__zone *zone, int64_t local)
{
    int64_t from = local - OFFSET_MAX, until;

    for (;;) {
        int64_t moment = local - weir__zone_offset(zone, from, &until);

        WEIR_ASSERT(until > from);
        if (moment < from)
            return from; /* the clocks jump over it */
        if (moment < until)
            return moment;
        from = until;
    }
}

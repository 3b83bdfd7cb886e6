/* SPDX-License-Identifier: MIT */
#include "core/schedule.h"

#include <string.h>

#include "core/assert.h"
#include "core/date.h"
#include "core/text.h"
#include "core/zone.h"

enum {
    DIGITS = 13,
    GRACE_MS = 60000,
    SLACK_MS = 5000, /* steps of the clock that change nothing */
    GAP_RECENT_MS = 600000
};

#define MS_MAX INT64_C(9999999999999)

/* --- as text ------------------------------------------------------------- */

static const char *const missed_names[] = {
    [WEIR_CRON_ONCE] = "once",
    [WEIR_CRON_SKIP] = "skip",
    [WEIR_CRON_ALL] = "all",
};

const char *weir__missed_name(enum weir_cron_missed missed)
{
    WEIR_ASSERT((size_t)missed < 3);
    return missed_names[missed];
}

int weir__missed_find(struct weir_slice name)
{
    for (int i = 0; i < 3; i++)
        if (weir__slice_equal(name, weir__slice_str(missed_names[i])))
            return i;
    return -1;
}

/* `width` digits, with zeros in front. */
static void write_digits(char *to, int64_t number, size_t width)
{
    WEIR_ASSERT(number >= 0);
    for (size_t i = width; i > 0; i--, number /= 10)
        to[i - 1] = (char)('0' + number % 10);
}

static void put_number(struct weir__buf *buf, int64_t number)
{
    char text[DIGITS + 1];

    write_digits(text, number, DIGITS);
    text[DIGITS] = ' ';
    weir__buf_append(buf, text, sizeof(text));
}

static void put_word(struct weir__buf *buf, struct weir_slice word)
{
    if (word.len == 0)
        word = weir__slice_str("-");
    weir__buf_append(buf, word.ptr, word.len);
}

void weir__schedule_write(struct weir__buf *buf,
                          const struct weir__schedule *schedule)
{
    const int64_t numbers[] = {schedule->from_ms,   schedule->last_ms,
                               schedule->made_ms,   schedule->after_ms,
                               schedule->before_ms, schedule->every_ms,
                               schedule->jitter_ms};

    WEIR_ASSERT((schedule->every_ms > 0) != (schedule->at.len > 0));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        put_number(buf, numbers[i]);
    put_word(buf, weir__slice_str(weir__missed_name(schedule->missed)));
    weir__buf_append(buf, schedule->skips_overlap ? " skip " : " allow ",
                     schedule->skips_overlap ? 6 : 7);
    put_word(buf, schedule->zone);
    weir__buf_append(buf, " ", 1);
    put_word(buf, schedule->at);
}

/* Cut the first word off; of the last one nothing is left. */
static struct weir_slice take_word(struct weir_slice *text)
{
    struct weir_slice word = *text;
    size_t len = 0;

    while (len < text->len && text->ptr[len] != ' ')
        len++;
    word.len = len;
    len += len < text->len;
    *text = weir__slice_of(text->ptr + len, text->len - len);
    return word;
}

static bool take_number(struct weir_slice *text, int64_t *ret_number)
{
    struct weir_slice word = take_word(text);

    *ret_number = 0;
    if (word.len != DIGITS)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9')
            return false;
        *ret_number = *ret_number * 10 + (word.ptr[i] - '0');
    }
    return true;
}

static bool is_none(struct weir_slice word)
{
    return weir__slice_equal(word, weir__slice_str("-"));
}

static bool read_words(struct weir_slice text, struct weir__schedule *schedule)
{
    int missed = weir__missed_find(take_word(&text));
    struct weir_slice overlap = take_word(&text);

    schedule->missed = (enum weir_cron_missed)missed;
    schedule->skips_overlap =
        weir__slice_equal(overlap, weir__slice_str("skip"));
    schedule->zone = take_word(&text);
    schedule->at = text;
    if (is_none(schedule->zone))
        schedule->zone.len = 0;
    if (is_none(schedule->at))
        schedule->at.len = 0;
    return missed >= 0 && (schedule->every_ms > 0) != (schedule->at.len > 0);
}

int weir__schedule_read(struct weir_slice text,
                        struct weir__schedule *ret_schedule)
{
    struct weir__schedule schedule = {0};

    if (!take_number(&text, &schedule.from_ms) ||
        !take_number(&text, &schedule.last_ms) ||
        !take_number(&text, &schedule.made_ms) ||
        !take_number(&text, &schedule.after_ms) ||
        !take_number(&text, &schedule.before_ms) ||
        !take_number(&text, &schedule.every_ms) ||
        !take_number(&text, &schedule.jitter_ms) ||
        !read_words(text, &schedule) ||
        (schedule.at.len > 0 &&
         weir__cron_parse(schedule.at, &schedule.cron, NULL) < 0))
        return WEIR_EINVAL;
    *ret_schedule = schedule;
    return WEIR_OK;
}

/* --- times ---------------------------------------------------------------- */

int64_t weir__schedule_next(const struct weir__schedule *schedule,
                            const struct weir__zone *zone, int64_t after_ms)
{
    int64_t next;

    WEIR_ASSERT(after_ms >= 0);
    if (schedule->every_ms > 0) {
        int64_t passed = after_ms - schedule->from_ms;

        if (passed < 0)
            passed = 0; /* its first time is one interval later */
        next = schedule->from_ms +
               (passed / schedule->every_ms + 1) * schedule->every_ms;
        return next > MS_MAX ? -1 : next;
    }
    next = weir__cron_next(&schedule->cron, zone, after_ms / 1000);
    return next < 0 || next > MS_MAX / 1000 ? -1 : next * 1000;
}

/* The last time in after_ms < it <= now_ms, where there is one: the only moment
 * in between before which that time comes next, and behind which it does not.
 */
static int64_t last_time(const struct weir__schedule *schedule,
                         const struct weir__zone *zone, int64_t after_ms,
                         int64_t now_ms)
{
    int64_t lo = after_ms, hi = now_ms;

    while (hi - lo > 1) {
        int64_t middle = lo + (hi - lo) / 2;
        int64_t next = weir__schedule_next(schedule, zone, middle);

        if (next >= 0 && next <= now_ms)
            lo = middle;
        else
            hi = middle;
    }
    return weir__schedule_next(schedule, zone, lo);
}

static bool is_due(int64_t next_ms, int64_t now_ms)
{
    return next_ms >= 0 && next_ms <= now_ms;
}

/* Each of them, as many as one tick makes. */
static void plan_all(const struct weir__schedule *schedule,
                     const struct weir__zone *zone, int64_t now_ms,
                     struct weir__tick_plan *plan)
{
    while (plan->count < WEIR__TICK_TIMES && is_due(plan->next_ms, now_ms)) {
        plan->times[plan->count++] = plan->next_ms;
        plan->last_ms = plan->next_ms;
        plan->next_ms = weir__schedule_next(schedule, zone, plan->last_ms);
    }
    if (is_due(plan->next_ms, now_ms))
        plan->next_ms = now_ms; /* the others at once */
}

/* The last of them, or none. */
static void plan_one(const struct weir__schedule *schedule,
                     const struct weir__zone *zone, int64_t now_ms,
                     struct weir__tick_plan *plan)
{
    int64_t first = plan->next_ms;

    plan->last_ms = first;
    plan->next_ms = weir__schedule_next(schedule, zone, first);
    if (is_due(plan->next_ms, now_ms)) {
        plan->has_missed = true;
        plan->last_ms = last_time(schedule, zone, first, now_ms);
        plan->next_ms = weir__schedule_next(schedule, zone, plan->last_ms);
    }
    if (schedule->missed == WEIR_CRON_SKIP && now_ms - plan->last_ms > GRACE_MS)
        plan->has_missed = true;
    else
        plan->times[plan->count++] = plan->last_ms;
}

/* Times were missed: no job is made between two times. A gap that is recent
 * stays if it is longer. */
static void note_gap(const struct weir__schedule *schedule,
                     struct weir__tick_plan *plan)
{
    int64_t before_ms = plan->count > 0 ? plan->times[0] : plan->next_ms;
    int64_t old_ms = schedule->before_ms - schedule->after_ms;

    if (schedule->after_ms == 0 ||
        schedule->last_ms - schedule->before_ms > GAP_RECENT_MS)
        old_ms = 0;
    if (before_ms - schedule->last_ms > old_ms) {
        plan->after_ms = schedule->last_ms;
        plan->before_ms = before_ms;
    }
}

static void plan_until(const struct weir__schedule *schedule,
                       const struct weir__zone *zone, int64_t until_ms,
                       struct weir__tick_plan *plan)
{
    plan->count = 0;
    plan->has_missed = false;
    plan->after_ms = schedule->after_ms;
    plan->before_ms = schedule->before_ms;
    plan->last_ms = schedule->last_ms;
    plan->next_ms = weir__schedule_next(schedule, zone, plan->last_ms);
    if (!is_due(plan->next_ms, until_ms))
        return;
    if (schedule->missed == WEIR_CRON_ALL)
        plan_all(schedule, zone, until_ms, plan);
    else
        plan_one(schedule, zone, until_ms, plan);
    WEIR_ASSERT(plan->last_ms <= until_ms);
    if (plan->has_missed)
        note_gap(schedule, plan);
}

/* When the tick of this time comes: at the same ms as those of other schedules.
 * Whether the job before is over can be told at the time only. */
static int64_t tick_ms(const struct weir__schedule *schedule, int64_t time_ms)
{
    const int64_t step_ms = WEIR__AHEAD_MS / 2;
    int64_t ms = (time_ms / step_ms - 1) * step_ms;

    if (schedule->skips_overlap || ms < 0)
        return time_ms;
    WEIR_ASSERT(ms <= time_ms - step_ms && ms > time_ms - WEIR__AHEAD_MS);
    return ms;
}

static void plan_ahead(const struct weir__schedule *schedule,
                       const struct weir__zone *zone, int64_t now_ms,
                       struct weir__tick_plan *plan)
{
    plan_until(schedule, zone, now_ms, plan);
    if (plan->count == 0 && plan->next_ms > now_ms &&
        tick_ms(schedule, plan->next_ms) <= now_ms)
        plan_until(schedule, zone, plan->next_ms, plan);
}

/* The clock was ahead when times were missed: they come now, but for those of
 * more than a while ago. */
static void plan_gap(const struct weir__schedule *schedule,
                     const struct weir__zone *zone, int64_t now_ms,
                     struct weir__tick_plan *plan)
{
    struct weir__schedule early = *schedule;
    int64_t every_ms = schedule->every_ms, next_ms;

    early.last_ms = schedule->after_ms;
    if (early.last_ms < now_ms - GRACE_MS)
        early.last_ms = now_ms - GRACE_MS;
    if (every_ms > 0 && early.from_ms > early.last_ms) /* keep its beat */
        early.from_ms -=
            ((early.from_ms - early.last_ms) / every_ms + 1) * every_ms;
    plan_ahead(&early, zone, now_ms, plan);
    next_ms = plan->next_ms;
    if (next_ms < 0 || next_ms >= schedule->before_ms)
        next_ms = weir__schedule_next(schedule, zone, schedule->last_ms);
    plan->next_ms = next_ms;
    plan->after_ms = plan->last_ms;
    plan->before_ms = schedule->before_ms;
    plan->last_ms = schedule->last_ms;
}

void weir__schedule_plan(const struct weir__schedule *schedule,
                         const struct weir__zone *zone, int64_t now_ms,
                         struct weir__tick_plan *ret_plan)
{
    struct weir__tick_plan *plan = ret_plan;

    if (schedule->before_ms > now_ms + SLACK_MS)
        plan_gap(schedule, zone, now_ms, plan);
    else
        plan_ahead(schedule, zone, now_ms, plan);
    if (plan->next_ms > now_ms)
        plan->next_ms = tick_ms(schedule, plan->next_ms);
}

int64_t weir__schedule_due_ms(const struct weir__schedule *schedule,
                              struct weir_slice name, int64_t ms)
{
    uint64_t mixed = (uint64_t)weir__slice_hash(name) ^ (uint64_t)ms;

    if (schedule->jitter_ms <= 0)
        return ms;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    mixed ^= mixed >> 31;
    return ms + (int64_t)(mixed % ((uint64_t)schedule->jitter_ms + 1));
}

/* --- ids ------------------------------------------------------------------ */

struct weir_slice weir__occurrence_id(struct weir_slice name, int64_t ms,
                                      char buf[WEIR__OCCURRENCE_CAP])
{
    static const char form[] = "@0000-00-00T00:00:00.000Z";
    int64_t seconds = ms / 1000, year;
    int month, day;
    char *at = buf + name.len;
    size_t len = sizeof(form) - 1;

    WEIR_ASSERT(name.len > 0 && name.len <= WEIR_MAX_TOPIC);
    WEIR_ASSERT(ms >= 0 && ms <= MS_MAX);
    memcpy(buf, name.ptr, name.len);
    memcpy(at, form, sizeof(form));
    weir__date_of(seconds / 86400, &year, &month, &day);
    write_digits(at + 1, year, 4);
    write_digits(at + 6, month, 2);
    write_digits(at + 9, day, 2);
    write_digits(at + 12, seconds / 3600 % 24, 2);
    write_digits(at + 15, seconds / 60 % 60, 2);
    write_digits(at + 18, seconds % 60, 2);
    if (ms % 1000 != 0) {
        write_digits(at + 21, ms % 1000, 3);
    } else {
        memcpy(at + 20, "Z", 2);
        len = 21;
    }
    return weir__slice_of(buf, name.len + len);
}

struct weir_slice weir__tick_name(struct weir_slice id)
{
    const size_t len = sizeof(WEIR__TICK_SUFFIX) - 1;

    if (id.len <= len || id.len > WEIR_MAX_TOPIC + len ||
        memcmp(id.ptr + id.len - len, WEIR__TICK_SUFFIX, len) != 0)
        return (struct weir_slice){0};
    return weir__slice_of(id.ptr, id.len - len);
}

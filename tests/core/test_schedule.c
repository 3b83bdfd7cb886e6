/* SPDX-License-Identifier: MIT */
#include "core/schedule.h"

#include <string.h>

#include "core/text.h"
#include "core/zone.h"
#include "tests/harness/test.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, LEAD_MS = WEIR__AHEAD_MS / 2 };

#define NOON INT64_C(1795694400000) /* 26 November 2026 */

static struct weir__schedule every(int64_t ms, enum weir_cron_missed missed)
{
    return (struct weir__schedule){
        .from_ms = NOON, .last_ms = NOON, .every_ms = ms, .missed = missed};
}

static struct weir__schedule at(const char *text, enum weir_cron_missed missed)
{
    struct weir__schedule schedule = {
        .last_ms = NOON, .at = weir__slice_str(text), .missed = missed};

    EXPECT_INT(WEIR_OK, weir__cron_parse(schedule.at, &schedule.cron, NULL));
    return schedule;
}

static struct weir__tick_plan plan(struct weir__schedule schedule,
                                   int64_t now_ms)
{
    struct weir__tick_plan planned;

    weir__schedule_plan(&schedule, NULL, now_ms, &planned);
    return planned;
}

TEST(a_schedule_is_the_same_when_it_was_written_and_read)
{
    struct weir__schedule schedule = at("*/5 3 * * 1-5", WEIR_CRON_SKIP), read;
    struct weir__buf text = {0};

    schedule.made_ms = NOON - MINUTE;
    schedule.after_ms = NOON - 400 * SECOND;
    schedule.before_ms = NOON - 2 * MINUTE;
    schedule.jitter_ms = 2 * SECOND;
    schedule.skips_overlap = true;
    schedule.zone = weir__slice_str("Europe/Berlin");
    weir__schedule_write(&text, &schedule);
    weir__buf_append(&text, "", 1);
    EXPECT_STR("0000000000000 1795694400000 1795694340000 1795694000000 "
               "1795694280000 0000000000000 0000000002000 skip skip "
               "Europe/Berlin */5 3 * * 1-5",
               (const char *)text.ptr);
    EXPECT_INT(WEIR_OK, weir__schedule_read(
                            weir__slice_of(text.ptr, text.len - 1), &read));
    EXPECT_INT(NOON - MINUTE, read.made_ms);
    EXPECT_INT(NOON - 2 * MINUTE, read.before_ms);
    EXPECT_INT(WEIR_CRON_SKIP, read.missed);
    EXPECT_TRUE(read.skips_overlap);
    EXPECT_TRUE(weir__slice_equal(schedule.at, read.at));
    EXPECT_INT(schedule.cron.hours, read.cron.hours);
    for (size_t len = 0; len + 1 < text.len; len++)
        if (len < 118) /* then its expression is cut, and maybe another one */
            EXPECT_INT(WEIR_EINVAL, weir__schedule_read(
                                        weir__slice_of(text.ptr, len), &read));
    weir__buf_fini(&text);
}

TEST(a_stored_number_that_is_too_long_is_refused)
{
    struct weir__schedule read;

    EXPECT_INT(WEIR_EINVAL,
               weir__schedule_read(
                   weir__slice_str("99999999999999999999999999 0000000000000 "
                                   "0000000000000 0000000000000 0000000000000 "
                                   "0000000000000 0000000000000 skip skip UTC "
                                   "* * * * *"),
                   &read));
}

TEST(an_interval_counts_from_when_it_was_set)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);

    EXPECT_INT(NOON + MINUTE, weir__schedule_next(&schedule, NULL, NOON));
    EXPECT_INT(NOON + MINUTE, weir__schedule_next(&schedule, NULL, NOON + 1));
    EXPECT_INT(NOON + 2 * MINUTE,
               weir__schedule_next(&schedule, NULL, NOON + MINUTE));
    EXPECT_INT(NOON + MINUTE, weir__schedule_next(&schedule, NULL, NOON - 5));
}

TEST(a_tick_makes_the_job_of_a_time_and_comes_before_the_next_one)
{
    struct weir__tick_plan planned =
        plan(every(MINUTE, WEIR_CRON_ONCE), NOON + MINUTE + 7);

    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON + MINUTE, planned.times[0]);
    EXPECT_INT(NOON + MINUTE, planned.last_ms);
    EXPECT_INT(NOON + 2 * MINUTE - LEAD_MS, planned.next_ms);
    EXPECT_TRUE(!planned.has_missed);
}

TEST(a_tick_makes_the_job_of_the_next_time_ahead)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ALL);
    struct weir__tick_plan planned = plan(schedule, NOON + MINUTE - LEAD_MS);

    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON + MINUTE, planned.times[0]);
    EXPECT_INT(NOON + MINUTE, planned.last_ms);
    EXPECT_INT(NOON + 2 * MINUTE - LEAD_MS, planned.next_ms);
    schedule.last_ms = planned.last_ms;
    planned = plan(schedule, NOON + MINUTE - LEAD_MS);
    EXPECT_INT(0, planned.count);
    EXPECT_INT(NOON + 2 * MINUTE - LEAD_MS, planned.next_ms);
}

TEST(a_tick_that_comes_early_makes_none)
{
    struct weir__tick_plan planned =
        plan(every(MINUTE, WEIR_CRON_ALL), NOON + MINUTE - LEAD_MS - 1);

    EXPECT_INT(0, planned.count);
    EXPECT_INT(NOON, planned.last_ms);
    EXPECT_INT(NOON + MINUTE - LEAD_MS, planned.next_ms);
}

TEST(ticks_of_times_close_to_each_other_come_together)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);

    for (int ms = 0; ms < LEAD_MS; ms++) {
        schedule.from_ms = NOON + ms;
        EXPECT_INT(NOON + MINUTE - LEAD_MS, plan(schedule, NOON).next_ms);
    }
    schedule.from_ms++;
    EXPECT_INT(NOON + MINUTE, plan(schedule, NOON).next_ms);
}

TEST(where_the_job_before_counts_a_tick_comes_at_its_time)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);

    schedule.skips_overlap = true;
    EXPECT_INT(0, plan(schedule, NOON + MINUTE - 1).count);
    EXPECT_INT(NOON + MINUTE, plan(schedule, NOON + MINUTE - 1).next_ms);
    EXPECT_INT(1, plan(schedule, NOON + MINUTE).count);
}

TEST(where_the_clock_was_set_back_no_time_comes_twice)
{
    struct weir__tick_plan planned =
        plan(every(MINUTE, WEIR_CRON_ALL), NOON - 3600 * SECOND);

    EXPECT_INT(0, planned.count);
    EXPECT_INT(NOON + MINUTE - LEAD_MS, planned.next_ms);
}

/* A tick's next plan, after which a job was made or not. */
static struct weir__tick_plan go_on(struct weir__schedule *schedule,
                                    int64_t now_ms)
{
    struct weir__tick_plan planned;

    weir__schedule_plan(schedule, NULL, now_ms, &planned);
    schedule->last_ms = planned.last_ms;
    schedule->after_ms = planned.after_ms;
    schedule->before_ms = planned.before_ms;
    return planned;
}

TEST(a_clock_that_was_a_day_ahead_for_a_moment_stops_no_schedule)
{
    const int64_t day = INT64_C(86400) * SECOND;
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);
    struct weir__tick_plan planned;

    planned = go_on(&schedule, NOON + day + 1);
    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON + day, planned.times[0]);
    planned = go_on(&schedule, NOON + SECOND);
    EXPECT_INT(0, planned.count);
    EXPECT_INT(NOON + MINUTE - LEAD_MS, planned.next_ms);
    for (int64_t ms = NOON + MINUTE; ms < NOON + day; ms += MINUTE) {
        planned = go_on(&schedule, ms);
        EXPECT_INT(1, planned.count);
        EXPECT_INT(ms, planned.times[0]);
    }
    /* The time of the day after had its job, and no time comes twice. */
    planned = go_on(&schedule, NOON + day);
    EXPECT_INT(0, planned.count);
    EXPECT_INT(NOON + day + MINUTE - LEAD_MS, planned.next_ms);
    planned = go_on(&schedule, NOON + day + MINUTE);
    EXPECT_INT(NOON + day + MINUTE, planned.times[0]);
}

TEST(a_small_step_of_the_clock_after_missed_times_changes_nothing)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);
    struct weir__tick_plan planned = go_on(&schedule, NOON + 10 * MINUTE);

    EXPECT_INT(NOON + 10 * MINUTE, planned.times[0]);
    planned = go_on(&schedule, NOON + 10 * MINUTE - SECOND);
    EXPECT_INT(0, planned.count);
    EXPECT_INT(NOON + 11 * MINUTE - LEAD_MS, planned.next_ms);
}

TEST(a_schedule_that_was_set_while_the_clock_was_ahead_begins_at_once)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);
    struct weir__tick_plan planned;

    schedule.before_ms = schedule.from_ms;
    planned = go_on(&schedule, NOON - 3600 * SECOND - 30 * SECOND);
    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON - 3600 * SECOND - MINUTE, planned.times[0]);
    EXPECT_INT(NOON - 3600 * SECOND - LEAD_MS, planned.next_ms);
    planned = go_on(&schedule, NOON - 3600 * SECOND);
    EXPECT_INT(NOON - 3600 * SECOND, planned.times[0]);
}

TEST(of_times_that_were_missed_the_last_one_has_a_job)
{
    struct weir__tick_plan planned =
        plan(every(MINUTE, WEIR_CRON_ONCE), NOON + 100 * MINUTE + 7);

    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON + 100 * MINUTE, planned.times[0]);
    EXPECT_INT(NOON + 101 * MINUTE - LEAD_MS, planned.next_ms);
    EXPECT_TRUE(planned.has_missed);
    /* A year of seconds takes no longer. */
    planned = plan(at("* * * * * *", WEIR_CRON_ONCE),
                   NOON + INT64_C(365) * 86400 * SECOND + 1);
    EXPECT_INT(NOON + INT64_C(365) * 86400 * SECOND, planned.times[0]);
}

TEST(with_skip_a_time_that_is_a_minute_late_has_none)
{
    struct weir__tick_plan planned =
        plan(at("1 * * * *", WEIR_CRON_SKIP), NOON + 2 * MINUTE);

    EXPECT_INT(1, planned.count);
    planned = plan(at("1 * * * *", WEIR_CRON_SKIP), NOON + 2 * MINUTE + 1);
    EXPECT_INT(0, planned.count);
    EXPECT_TRUE(planned.has_missed);
    EXPECT_INT(NOON + MINUTE, planned.last_ms);
    EXPECT_INT(NOON + 61 * MINUTE - LEAD_MS, planned.next_ms);
}

TEST(with_all_each_has_one_and_a_tick_makes_60_of_them)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ALL);
    int64_t now_ms = NOON + 100 * MINUTE;
    struct weir__tick_plan planned = plan(schedule, now_ms);

    EXPECT_INT(60, planned.count);
    EXPECT_INT(NOON + MINUTE, planned.times[0]);
    EXPECT_INT(NOON + 60 * MINUTE, planned.last_ms);
    EXPECT_INT(now_ms, planned.next_ms);
    schedule.last_ms = planned.last_ms;
    planned = plan(schedule, now_ms);
    EXPECT_INT(40, planned.count);
    EXPECT_INT(NOON + 101 * MINUTE - LEAD_MS, planned.next_ms);
}

TEST(a_late_tick_makes_the_job_of_a_time_that_is_near_at_once)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);
    int64_t now_ms = NOON + 2 * MINUTE - LEAD_MS;
    struct weir__tick_plan planned = plan(schedule, now_ms);

    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON + MINUTE, planned.times[0]);
    EXPECT_INT(now_ms, planned.next_ms);
    schedule.last_ms = planned.last_ms;
    planned = plan(schedule, now_ms);
    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON + 2 * MINUTE, planned.times[0]);
    EXPECT_INT(NOON + 3 * MINUTE - LEAD_MS, planned.next_ms);
    /* What was missed has none. */
    planned =
        plan(every(2 * MINUTE, WEIR_CRON_SKIP), NOON + 4 * MINUTE - LEAD_MS);
    EXPECT_INT(1, planned.count);
    EXPECT_INT(NOON + 4 * MINUTE, planned.times[0]);
    EXPECT_TRUE(planned.has_missed);
}

TEST(jitter_moves_a_job_and_always_by_the_same)
{
    struct weir__schedule schedule = every(MINUTE, WEIR_CRON_ONCE);
    struct weir_slice name = weir__slice_str("a");
    int64_t least = INT64_MAX, most = 0;

    EXPECT_INT(NOON, weir__schedule_due_ms(&schedule, name, NOON));
    schedule.jitter_ms = 10 * SECOND;
    for (int i = 0; i < 1000; i++) {
        int64_t ms = NOON + i * MINUTE;
        int64_t moved = weir__schedule_due_ms(&schedule, name, ms) - ms;

        EXPECT_INT(moved, weir__schedule_due_ms(&schedule, name, ms) - ms);
        EXPECT_TRUE(moved >= 0 && moved <= 10 * SECOND);
        least = moved < least ? moved : least;
        most = moved > most ? moved : most;
    }
    EXPECT_TRUE(least < SECOND && most > 9 * SECOND);
}

TEST(a_schedule_has_times_until_the_year_2286)
{
    struct weir__schedule schedule = at("0 12 * * *", WEIR_CRON_SKIP);

    schedule.last_ms = INT64_C(9000000000000); /* in 2255, at 16:00 */
    EXPECT_INT(INT64_C(9000072000000),
               weir__schedule_next(&schedule, NULL, schedule.last_ms));
}

TEST(ids_have_the_time_and_ms_where_there_are_some)
{
    char buf[WEIR__OCCURRENCE_CAP];

    (void)weir__occurrence_id(weir__slice_str("night"), NOON, buf);
    EXPECT_STR("night@2026-11-26T12:00:00Z", buf);
    (void)weir__occurrence_id(weir__slice_str("night"), NOON + 7, buf);
    EXPECT_STR("night@2026-11-26T12:00:00.007Z", buf);
    EXPECT_INT(5, weir__tick_name(weir__slice_str("night@next")).len);
    EXPECT_INT(0, weir__tick_name(weir__slice_str("@next")).len);
    EXPECT_INT(0, weir__tick_name(weir__slice_str("night@nex")).len);
}

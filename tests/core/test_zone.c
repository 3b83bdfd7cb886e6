/* SPDX-License-Identifier: MIT */
#include "core/date.h"
#include "core/zone.h"

#include <stdio.h>
#include <string.h>

#include "core/crontab.h"
#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/harness/test.h"

enum { DAY = 86400, HOUR = 3600 };

static uint8_t bytes[1 << 16];
static struct weir__zone *zone;

/* The file of a zone. */
static struct weir_slice file_of(const char *name)
{
    char path[128];
    FILE *file;
    size_t len;

    (void)snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
    file = fopen(path, "rb");
    EXPECT_TRUE(file != NULL);
    len = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    return weir__slice_of(bytes, len);
}

static void close_zone(void)
{
    weir__zone_free(zone);
    zone = NULL;
}

static void read_zone(struct weir_slice file)
{
    struct weir_error err = {0};

    close_zone();
    (void)weir__zone_read(file, &zone, &err);
    EXPECT_STR("", err.text);
}

static void begin(void)
{
    test_at_end(close_zone);
}

TEST_SETUP(begin)

static int64_t at(int64_t year, int month, int day, int64_t seconds)
{
    return weir__date_days(year, month, day) * DAY + seconds;
}

static int64_t next(const char *text, int64_t after)
{
    struct weir__cron cron;
    struct weir_error err = {0};

    (void)weir__cron_parse(weir__slice_str(text), &cron, &err);
    EXPECT_STR("", err.text);
    return weir__cron_next(&cron, zone, after);
}

/* A file with no change, only a rule. */
static struct weir_slice file_with_rule(const char *rule)
{
    static const uint8_t head[44 + 7] = {
        'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 1, /* one type, one char */
    };
    size_t len = 0;

    for (int i = 0; i < 2; i++, len += sizeof(head))
        memcpy(bytes + len, head, sizeof(head));
    len += (size_t)snprintf((char *)bytes + len, 100, "\n%s\n", rule);
    return weir__slice_of(bytes, len);
}

TEST(a_zone_changes_its_offset_as_its_file_says)
{
    int64_t until, change = at(2026, 3, 29, HOUR);

    read_zone(file_of("Europe/Berlin"));
    EXPECT_INT(HOUR, weir__zone_offset(zone, change - 1, &until));
    EXPECT_INT(change, until);
    EXPECT_INT(2 * HOUR, weir__zone_offset(zone, change, &until));
    EXPECT_INT(at(2026, 10, 25, HOUR), until);
}

TEST(behind_the_last_change_its_rule_holds)
{
    int64_t until;

    read_zone(file_of("Europe/Berlin"));
    EXPECT_INT(2 * HOUR, weir__zone_offset(zone, at(2090, 7, 1, 0), &until));
    EXPECT_INT(at(2090, 10, 29, HOUR), until);
    read_zone(file_with_rule("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"));
    EXPECT_INT(11 * HOUR, weir__zone_offset(zone, at(2026, 1, 1, 0), &until));
    EXPECT_INT(at(2026, 4, 4, 15 * HOUR), until);
    EXPECT_INT(10 * HOUR + HOUR / 2, weir__zone_offset(zone, until, &until));
    EXPECT_INT(at(2026, 10, 3, 15 * HOUR + HOUR / 2), until);
}

TEST(rules_may_count_days_and_cross_midnight)
{
    int64_t until;

    read_zone(file_with_rule("A0B,J60/0,300/-1:30"));
    EXPECT_INT(0, weir__zone_offset(zone, at(2028, 2, 29, 0), &until));
    EXPECT_INT(at(2028, 3, 1, 0), until); /* day 60 but for the leap day */
    EXPECT_INT(HOUR, weir__zone_offset(zone, until, &until));
    EXPECT_INT(at(2028, 1, 1, 300 * DAY - HOUR * 3 / 2 - HOUR), until);
    read_zone(file_with_rule("UTC0"));
    EXPECT_INT(0, weir__zone_offset(zone, 1800000000, &until));
    EXPECT_INT(INT64_MAX, until);
}

TEST(a_time_that_the_clocks_skip_is_when_they_jump)
{
    int64_t jump = at(2026, 3, 29, HOUR);

    read_zone(file_of("Europe/Berlin"));
    EXPECT_INT(jump, weir__zone_moment(zone, at(2026, 3, 29, 2 * HOUR)));
    EXPECT_INT(jump, weir__zone_moment(zone, at(2026, 3, 29, 3 * HOUR)));
    EXPECT_INT(jump, next("30 2 * * *", jump - HOUR));
    EXPECT_INT(at(2026, 3, 30, HOUR / 2), next("30 2 * * *", jump));
    /* Every half hour is one by the clock that never jumps. */
    EXPECT_INT(jump, next("*/30 * * * *", jump - HOUR / 2));
    EXPECT_INT(jump + HOUR / 2, next("*/30 * * * *", jump));
}

TEST(of_a_time_that_the_clocks_repeat_the_first_counts)
{
    int64_t change = at(2026, 10, 25, HOUR);

    read_zone(file_of("Europe/Berlin"));
    EXPECT_INT(change - HOUR,
               weir__zone_moment(zone, at(2026, 10, 25, 2 * HOUR)));
    EXPECT_INT(change - HOUR / 2, next("30 2 * * *", change - HOUR));
    EXPECT_INT(change + DAY + HOUR / 2, next("30 2 * * *", change - HOUR / 2));
}

TEST(a_schedule_of_every_hour_counts_both)
{
    int64_t change = at(2026, 10, 25, HOUR);

    read_zone(file_of("Europe/Berlin"));
    EXPECT_INT(change - HOUR / 2, next("30 * * * *", change - HOUR));
    EXPECT_INT(change + HOUR / 2, next("30 * * * *", change - HOUR / 2));
}

TEST(a_day_that_a_zone_skipped_comes_when_it_jumped)
{
    read_zone(file_of("Pacific/Apia")); /* there was no 30 December 2011 */
    EXPECT_INT(at(2011, 12, 30, 10 * HOUR),
               next("0 12 30 12 *", at(2011, 12, 1, 0)));
}

TEST(names_that_lead_elsewhere_are_none)
{
    static const char *const names[] = {"",
                                        "/etc/passwd",
                                        "../passwd",
                                        "Europe/../x",
                                        "Europe//Berlin",
                                        "Europe/",
                                        "a b",
                                        "Europe/Berlin\n"};
    struct weir_error err;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        EXPECT_INT(WEIR_EINVAL,
                   weir__zone_check(weir__slice_str(names[i]), &err));
    EXPECT_STR("\"Europe/Berlin\\n\" is no name of a time zone, such as "
               "Europe/Berlin",
               err.text);
    EXPECT_INT(WEIR_OK,
               weir__zone_check(
                   weir__slice_str("America/Argentina/Buenos_Aires"), &err));
    EXPECT_INT(WEIR_OK, weir__zone_check(weir__slice_str("Etc/GMT+5"), &err));
}

TEST(a_rule_with_an_offset_beyond_two_days_is_refused)
{
    static const char *const beyond[] = {"A100", "A-48:00:01",
                                         "A0B49,M3.5.0,M10.5.0",
                                         "A-47:30B,M3.5.0,M10.5.0"};

    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
        EXPECT_INT(WEIR_EINVAL,
                   weir__zone_read(file_with_rule(beyond[i]), &zone, NULL));
    read_zone(file_with_rule("A-48"));
    EXPECT_INT(at(2026, 1, 1, 0), next("0 0 3 1 *", at(2025, 12, 31, 0)));
}

TEST(bytes_that_are_no_zone_are_refused)
{
    struct weir_slice file;
    uint64_t random = 1;

    file = file_of("America/New_York");
    for (size_t len = 0; len < file.len; len++) {
        zone = NULL;
        EXPECT_INT(WEIR_EINVAL,
                   weir__zone_read(weir__slice_of(bytes, len), &zone, NULL));
    }
    for (int i = 0; i < 20000; i++) { /* one byte is another one */
        size_t place;
        uint8_t before;
        int64_t until;

        random = random * 6364136223846793005u + 1442695040888963407u;
        place = (random >> 40) % file.len;
        before = bytes[place];
        bytes[place] = (uint8_t)(random >> 32);
        zone = NULL;
        if (weir__zone_read(file, &zone, NULL) == WEIR_OK) {
            (void)weir__zone_offset(zone, 1800000000, &until);
            (void)weir__zone_moment(zone, 5000000000);
            EXPECT_TRUE(next("59 23 29 2 *", 1800000000) > 1800000000);
        }
        close_zone();
        bytes[place] = before;
    }
}

TEST(without_memory_nothing_is_read)
{
    zone = NULL;
    oom_after(0);
    EXPECT_INT(WEIR_ENOMEM,
               weir__zone_read(file_of("Europe/Berlin"), &zone, NULL));
    oom_off();
    EXPECT_TRUE(zone == NULL);
}

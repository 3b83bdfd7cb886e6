/* SPDX-License-Identifier: MIT */
#include "adapters/cli/time.h"
#include "tests/harness/test.h"

static int64_t parsed(const char *text)
{
    struct weir_error err = {0};
    int64_t ms = -1;

    if (weir__time_parse(text, &ms, &err) < 0)
        EXPECT_STR("", err.text);
    return ms;
}

static void refused(const char *text)
{
    struct weir_error err = {0};
    int64_t ms = 77;

    EXPECT_INT(WEIR_EINVAL, weir__time_parse(text, &ms, &err));
    EXPECT_CONTAINS("is not a time", err.text);
    EXPECT_INT(77, ms);
}

TEST(utc_is_counted_from_1970)
{
    EXPECT_INT(0, parsed("1970-01-01T00:00:00Z"));
    EXPECT_INT(1000000000000, parsed("2001-09-09T01:46:40Z"));
    EXPECT_INT(4102444800000, parsed("2100-01-01T00:00:00Z"));
    EXPECT_INT(-1000, parsed("1969-12-31T23:59:59Z"));
}

static const char *span(int64_t ms, size_t most)
{
    static char text[64];

    weir__span_print(ms, most, text);
    return text;
}

TEST(a_span_has_its_first_units)
{
    EXPECT_STR("0ms", span(0, 2));
    EXPECT_STR("999ms", span(999, 2));
    EXPECT_STR("1s", span(1000, 2));
    EXPECT_STR("7m24s", span(444235, 2));
    EXPECT_STR("7m24s235ms", span(444235, SIZE_MAX));
    EXPECT_STR("1h", span(3600000 + 59000, 2));
    EXPECT_STR("7d", span(604800000, SIZE_MAX));
    EXPECT_STR("106751991167d7h12m55s807ms", span(INT64_MAX, SIZE_MAX));
}

TEST(leap_days_are_known)
{
    EXPECT_INT(951782400000, parsed("2000-02-29T00:00:00Z"));
    EXPECT_INT(1709164800000, parsed("2024-02-29T00:00:00Z"));
    refused("2023-02-29T00:00:00Z");
    refused("2100-02-29T00:00:00Z");
}

TEST(an_offset_is_subtracted)
{
    EXPECT_INT(0, parsed("1970-01-01T01:30:00+01:30"));
    EXPECT_INT(0, parsed("1969-12-31T19:00:00-05:00"));
    EXPECT_INT(0, parsed("1970-01-01T00:00:00-00:00"));
}

TEST(a_fraction_is_kept_to_the_millisecond_and_rounded_up)
{
    EXPECT_INT(250, parsed("1970-01-01T00:00:00.25Z"));
    EXPECT_INT(1, parsed("1970-01-01T00:00:00.001Z"));
    EXPECT_INT(2, parsed("1970-01-01T00:00:00.0010001Z"));
    EXPECT_INT(1, parsed("1970-01-01T00:00:00.001000Z"));
    EXPECT_INT(1000, parsed("1970-01-01T00:00:00.999999999Z"));
}

TEST(lower_case_letters_and_a_leap_second_are_accepted)
{
    EXPECT_INT(0, parsed("1970-01-01t00:00:00z"));
    EXPECT_INT(60000, parsed("1970-01-01T00:00:60Z"));
}

TEST(what_is_no_rfc_3339_is_refused)
{
    refused("");
    refused("tomorrow");
    refused("2026-01-31");
    refused("2026-01-31T08:30:00");
    refused("2026-01-31 08:30:00Z");
    refused("2026-01-31T08:30Z");
    refused("2026-1-31T08:30:00Z");
    refused("2026-13-01T08:30:00Z");
    refused("2026-04-31T08:30:00Z");
    refused("2026-00-10T08:30:00Z");
    refused("2026-01-31T24:00:00Z");
    refused("2026-01-31T08:60:00Z");
    refused("2026-01-31T08:30:61Z");
    refused("2026-01-31T08:30:00.Z");
    refused("2026-01-31T08:30:00+0100");
    refused("2026-01-31T08:30:00+24:00");
    refused("2026-01-31T08:30:00Zebra");
    refused(" 2026-01-31T08:30:00Z");
}

TEST(what_is_printed_is_read_as_the_same)
{
    /* Of years 0 to 9999, at all times of the day and year. */
    const int64_t first = -62167219200000, last = 253402300799999;
    int64_t read_ms = 0;
    char buf[32];

    for (int64_t ms = first; ms <= last; ms += 40123456789) {
        weir__time_print(ms, buf);
        EXPECT_INT(WEIR_OK, weir__time_parse(buf, &read_ms, NULL));
        EXPECT_INT(ms, read_ms);
    }
    weir__time_print(first - 1, buf);
    EXPECT_STR("?", buf);
    weir__time_print(last + 1, buf);
    EXPECT_STR("?", buf);
}

TEST(a_point_in_time_is_printed_in_utc)
{
    char buf[32];

    weir__time_print(1000000000123, buf);
    EXPECT_STR("2001-09-09T01:46:40.123Z", buf);
    weir__time_print(-1, buf);
    EXPECT_STR("1969-12-31T23:59:59.999Z", buf);
    weir__time_print(-1000, buf);
    EXPECT_STR("1969-12-31T23:59:59.000Z", buf);
    weir__time_print(INT64_MAX, buf);
    EXPECT_STR("?", buf);
    weir__time_print(INT64_MIN, buf);
    EXPECT_STR("?", buf);
}

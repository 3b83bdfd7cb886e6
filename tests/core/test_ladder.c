/* SPDX-License-Identifier: MIT */
#include "core/ladder.h"

#include <string.h>

#include "core/text.h"
#include "tests/harness/test.h"

static struct weir__ladder ladder(const char *text)
{
    struct weir__ladder parsed;
    struct weir_error err = {0};

    (void)weir__ladder_parse(weir__slice_str(text), &parsed, &err);
    EXPECT_STR("", err.text);
    return parsed;
}

static const char *refusal(const char *text)
{
    static struct weir_error err;
    struct weir__ladder parsed = {.count = 42};

    err = (struct weir_error){0};
    EXPECT_INT(WEIR_EINVAL,
               weir__ladder_parse(weir__slice_str(text), &parsed, &err));
    EXPECT_INT(42, parsed.count);
    EXPECT_INT(WEIR_EINVAL,
               weir__ladder_parse(weir__slice_str(text), &parsed, NULL));
    return err.text;
}

TEST(each_step_is_the_delay_of_one_retry)
{
    struct weir__ladder steps = ladder("15s 3m 10m");

    EXPECT_INT(3, steps.count);
    EXPECT_INT(15000, weir__ladder_delay_ms(&steps, 0));
    EXPECT_INT(180000, weir__ladder_delay_ms(&steps, 1));
    EXPECT_INT(600000, weir__ladder_delay_ms(&steps, 2));
    EXPECT_INT(-1, weir__ladder_delay_ms(&steps, 3));
    EXPECT_INT(-1, weir__ladder_delay_ms(&steps, UINT32_MAX));
}

TEST(none_has_no_step)
{
    struct weir__ladder steps = ladder(" none ");

    EXPECT_INT(0, steps.count);
    EXPECT_INT(-1, weir__ladder_delay_ms(&steps, 0));
}

TEST(three_dots_repeat_the_last_step_for_ever)
{
    static const char *const texts[] = {"1s 5s ...", "1s 5s...", "1s 5s  ... "};

    for (size_t i = 0; i < 3; i++) {
        struct weir__ladder steps = ladder(texts[i]);

        EXPECT_INT(2, steps.count);
        EXPECT_INT(1000, weir__ladder_delay_ms(&steps, 0));
        EXPECT_INT(5000, weir__ladder_delay_ms(&steps, 1));
        EXPECT_INT(5000, weir__ladder_delay_ms(&steps, 2));
        EXPECT_INT(5000, weir__ladder_delay_ms(&steps, UINT32_MAX));
    }
}

TEST(blanks_around_and_between_steps_do_not_matter)
{
    struct weir__ladder steps = ladder(" \t1s\t  2s ");

    EXPECT_INT(2, steps.count);
    EXPECT_INT(1000, steps.step_ms[0]);
    EXPECT_INT(2000, steps.step_ms[1]);
    EXPECT_TRUE(!steps.repeats);
}

TEST(the_default_ladder_has_nine_steps)
{
    const struct weir__ladder steps = WEIR__LADDER_DEFAULT;
    struct weir__ladder same = ladder("15s 3m 10m 30m 30m 1h 2h 6h 15h");

    EXPECT_INT(9, steps.count);
    EXPECT_MEM(&same, sizeof(same), &steps, sizeof(steps));
    EXPECT_INT(54000000, weir__ladder_delay_ms(&steps, 8));
    EXPECT_INT(-1, weir__ladder_delay_ms(&steps, 9));
}

TEST(a_refused_ladder_names_the_wrong_part)
{
    static const struct {
        const char *text;
        const char *sentence;
    } bad[] = {
        {"", "retry ladder is empty: write \"none\""},
        {"   ", "retry ladder is empty"},
        {"15", "step 1: \"15\" is not a duration"},
        {"1s 1.5s", "step 2: \"1.5s\" is not a duration"},
        {"15 s", "step 1: \"15\" is not a duration"},
        {"1s 2s 99999999999d", "step 3: duration \"99999999999d\" is longer"},
        {"1s, 2s", "step 1: \"1s,\" is not a duration"},
        {"1s\n2s", "step 1: \"1s\\n2s\" is not a duration"},
        {"0s", "step 1: \"0s\" is not within 1ms and 365d"},
        {"1s 366d", "step 2: \"366d\" is not within 1ms and 365d"},
        {"...", "\"...\" has no step to repeat"},
        {" ... ", "\"...\" has no step to repeat"},
        {"1s ... 2s", "\"...\" comes last, after a step"},
        {"1s ... ...", "\"...\" comes last, after a step"},
        {"1s......", "step 1: \"1s...\" is not a duration"},
        {"... 1s", "\"...\" comes last, after a step"},
        {"none 1s", "\"none\" stands alone"},
        {"1s none", "\"none\" stands alone"},
        {"none ...", "\"none\" stands alone"},
        {"None", "step 1: \"None\" is not a duration"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT_CONTAINS(bad[i].sentence, refusal(bad[i].text));
}

TEST(sixty_four_steps_are_the_most)
{
    char text[4 * 65 + 1];

    for (size_t i = 0; i < 65; i++)
        memcpy(text + 4 * i, "10s ", 5);
    EXPECT_STR("retry ladder has more than 64 steps", refusal(text));
    text[4 * 64] = '\0';
    EXPECT_INT(64, ladder(text).count);
}

TEST(the_longest_step_is_a_year)
{
    EXPECT_INT(365 * 86400000LL, ladder("365d").step_ms[0]);
    EXPECT_INT(1, ladder("1ms").step_ms[0]);
}

TEST(jitter_stays_within_its_percent_and_reaches_both_ends)
{
    int64_t least = INT64_MAX, most = 0;

    for (uint64_t random = 0; random < 1000; random++) {
        int64_t moved = weir__jitter_ms(1000, 20, random * 0x9E3779B97F4A7C15u);

        least = moved < least ? moved : least;
        most = moved > most ? moved : most;
    }
    EXPECT_TRUE(least >= 800 && least < 810);
    EXPECT_TRUE(most <= 1200 && most > 1190);
    EXPECT_INT(800, weir__jitter_ms(1000, 20, 0));
    EXPECT_INT(1200, weir__jitter_ms(1000, 20, 400));
    EXPECT_INT(45, weir__jitter_ms(50, 10, 0)); /* below 100 ms, too */
}

TEST(jitter_never_makes_a_delay_vanish)
{
    EXPECT_INT(1, weir__jitter_ms(1, 100, 0));
    EXPECT_INT(1, weir__jitter_ms(2, 100, 0));
    EXPECT_INT(0, weir__jitter_ms(0, 50, 12345));
    EXPECT_INT(77, weir__jitter_ms(77, 0, UINT64_MAX));
}

TEST(jitter_copes_with_the_longest_delays)
{
    int64_t longest = 3650 * 86400000LL;

    for (uint64_t random = 0; random < 100; random++) {
        int64_t moved = weir__jitter_ms(longest, 50, ~random);

        EXPECT_TRUE(moved >= longest / 2 && moved <= longest / 2 * 3);
    }
}

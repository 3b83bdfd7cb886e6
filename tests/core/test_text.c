/* SPDX-License-Identifier: MIT */
#include "core/text.h"

#include <string.h>

#include "tests/harness/test.h"

static int64_t duration(const char *text)
{
    int64_t ms = -1;

    EXPECT_INT(WEIR_OK, weir__duration_parse(weir__slice_str(text), &ms, NULL));
    return ms;
}

TEST(durations_are_digits_and_a_unit)
{
    EXPECT_INT(0, duration("0ms"));
    EXPECT_INT(0, duration("0s"));
    EXPECT_INT(250, duration("250ms"));
    EXPECT_INT(15000, duration("15s"));
    EXPECT_INT(15000, duration("015s"));
    EXPECT_INT(180000, duration("3m"));
    EXPECT_INT(7200000, duration("2h"));
    EXPECT_INT(86400000, duration("1d"));
    EXPECT_INT(3650 * 86400000LL, duration("3650d"));
    EXPECT_INT(604800000, duration("1w"));
}

TEST(durations_may_have_several_units)
{
    EXPECT_INT(5400000, duration("1h30m"));
    EXPECT_INT(90061001, duration("1d1h1m1s1ms"));
    EXPECT_INT(14 * 86400000LL + 500, duration("2w500ms"));
    EXPECT_INT(0, duration("0h0m"));
}

TEST(other_durations_are_refused_with_a_sentence_that_quotes_them)
{
    static const char *const bad[] = {
        "",     "15",           "15 s",   " 15s",
        "15s ", "1.5s",         "s",      "-1s",
        "+1s",  "15S",          "15sec",  "1e3s",
        "1s1s", "15ss",         "ms",     "3651d",
        "...",  "99999999999d", "none",   "0x1s",
        "1M",   "1W",           "15\ts",  "1m1h",
        "1h1h", "1h30",         "1h 30m", "3650d1ms",
        "h1m",  "1hm",          "0",      "9223372036854775808ms"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct weir_error err = {0};
        int64_t ms = 42;
        int rc = weir__duration_parse(weir__slice_str(bad[i]), &ms, &err);

        EXPECT_STR("WEIR_EINVAL", weir_error_name(rc));
        EXPECT_INT(WEIR_EINVAL, err.code);
        EXPECT_INT(42, ms);
        EXPECT_TRUE(strchr(err.text, '"') != NULL);
        if (strchr(bad[i], '\t') == NULL)
            EXPECT_CONTAINS(bad[i], err.text);
    }
}

TEST(a_duration_without_a_unit_is_told_the_units)
{
    struct weir_error err = {0};
    int64_t ms;

    (void)weir__duration_parse(weir__slice_str("15"), &ms, &err);
    EXPECT_STR("\"15\" is not a duration: write digits and one of ms, s, m, h, "
               "d, w, for example 15s or 1h30m",
               err.text);
    (void)weir__duration_parse(weir__slice_str("99999999999d"), &ms, &err);
    EXPECT_STR("duration \"99999999999d\" is longer than 3650d", err.text);
}

TEST(long_and_unprintable_texts_are_quoted_in_part)
{
    char long_text[100];
    struct weir_error err = {0};
    int64_t ms;

    memset(long_text, 'x', sizeof(long_text));
    long_text[0] = '\n';
    (void)weir__duration_parse(weir__slice_of(long_text, 100), &ms, &err);
    EXPECT_CONTAINS("\"\\nxxx", err.text);
    EXPECT_CONTAINS("xxx...\"", err.text);
    EXPECT_TRUE(strlen(err.text) < 150);
}

TEST(durations_are_written_in_their_shortest_exact_form)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "0ms"},
                 {1, "1ms"},
                 {1500, "1500ms"},
                 {1000, "1s"},
                 {90000, "90s"},
                 {60000, "1m"},
                 {7200000, "2h"},
                 {86400000, "1d"},
                 {90000000, "25h"},
                 {-1500, "-1500ms"},
                 {-120000, "-2m"},
                 {INT64_MIN, "-9223372036854775808ms"},
                 {INT64_MAX, "9223372036854775807ms"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[24];

        EXPECT_INT(strlen(cases[i].text),
                   weir__duration_format(cases[i].ms, text));
        EXPECT_STR(cases[i].text, text);
    }
}

TEST(what_is_written_parses_to_the_same_duration)
{
    for (int64_t ms = 0; ms < 200000; ms += 17) {
        char text[24];

        (void)weir__duration_format(ms, text);
        EXPECT_INT(ms, duration(text));
    }
}

TEST(sizes_are_digits_and_an_optional_binary_unit)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0", 0},
                {"512", 512},
                {"64KiB", 65536},
                {"1MiB", 1048576},
                {"2GiB", 2147483648},
                {"9223372036854775806", INT64_MAX - 1}};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t bytes = -1;
        struct weir_slice text = weir__slice_str(good[i].text);

        EXPECT_INT(WEIR_OK, weir__size_parse(text, &bytes, NULL));
        EXPECT_INT(good[i].bytes, bytes);
    }
}

TEST(other_sizes_are_refused_with_a_sentence_that_quotes_them)
{
    static const char *const bad[] = {
        "",     "KiB",   "1 KiB",         "1kib",
        "64K",  "64KB",  "1.5MiB",        "-1",
        "1TiB", "1KiBx", "9000000000GiB", "99999999999999999999"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct weir_error err = {0};
        int64_t bytes = 42;
        struct weir_slice text = weir__slice_str(bad[i]);

        EXPECT_INT(WEIR_EINVAL, weir__size_parse(text, &bytes, &err));
        EXPECT_INT(42, bytes);
        EXPECT_CONTAINS("\"", err.text);
        EXPECT_CONTAINS(bad[i], err.text);
    }
}

/* `len` bytes 'a' */
static struct weir_slice letters(size_t len)
{
    static char text[200];

    memset(text, 'a', sizeof(text));
    return weir__slice_of(text, len);
}

TEST(ids_are_printable_ascii_without_braces)
{
    static const char *const good[] = {"1", "order-17/\"a\\b\"", "a~!"};

    for (size_t i = 0; i < 3; i++)
        EXPECT_INT(WEIR_OK, weir__id_check(weir__slice_str(good[i]), NULL));
    EXPECT_INT(WEIR_OK, weir__id_check(letters(1), NULL));
    EXPECT_INT(WEIR_OK, weir__id_check(letters(128), NULL));
}

TEST(other_ids_are_refused_with_a_sentence)
{
    static const struct {
        const char *id;
        const char *sentence;
    } bad[] = {{"", "id is empty"},
               {"a b", "id \"a b\" is not allowed at byte 2: use printable"},
               {"{x}", "id \"{x}\" is not allowed at byte 1"},
               {"x}", "at byte 2"},
               {"a\x7f", "at byte 2"},
               {"\xc3\xa9", "at byte 1"},
               {"a\n", "id \"a\\n\" is not allowed at byte 2"},
               {"@x", "does not begin with @"},
               {"!x", "does not begin with !"}};
    struct weir_error err = {0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct weir_slice id = weir__slice_str(bad[i].id);

        EXPECT_INT(WEIR_EINVAL, weir__id_check(id, &err));
        EXPECT_CONTAINS(bad[i].sentence, err.text);
    }
    EXPECT_INT(WEIR_EINVAL, weir__id_check(letters(129), &err));
    EXPECT_CONTAINS("has 129 bytes; at most 128", err.text);
    EXPECT_INT(WEIR_EINVAL, weir__id_check(weir__slice_of("a\0b", 3), &err));
}

TEST(an_id_made_by_weir_may_be_looked_up_but_not_chosen)
{
    struct weir_slice made = weir__slice_str("@01h");

    EXPECT_INT(WEIR_OK, weir__id_check_any(made, NULL));
    EXPECT_INT(WEIR_EINVAL, weir__id_check(made, NULL));
    EXPECT_INT(WEIR_EINVAL, weir__id_check_any(weir__slice_str("!x"), NULL));
}

TEST(what_a_server_says_is_an_id_is_held_to_the_same_rule)
{
    static const char marks[] = "a~!";
    char text[300];

    for (size_t len = 0; len < sizeof(text); len++)
        for (int i = 0; i < 3 * 256; i++) {
            const size_t places[] = {0, len / 2, len > 0 ? len - 1 : 0};
            struct weir_slice id = {(uint8_t *)text, len};

            memset(text, marks[i % 5 % 3], sizeof(text));
            text[places[i / 256]] = (char)i;
            EXPECT_INT(weir__id_check_any(id, NULL) == WEIR_OK,
                       weir__id_is_sound(id));
            EXPECT_INT(weir__group_check(id, NULL) == WEIR_OK,
                       weir__group_is_sound(id));
        }
}

TEST(topics_are_letters_digits_and_four_marks)
{
    static const char *const bad[] = {"a b", "a/b", "{a}", "a*", "\xc3\xa9"};
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, weir__topic_check(weir__slice_str("A.z_0:9-"), NULL));
    EXPECT_INT(WEIR_OK, weir__topic_check(letters(40), NULL));
    EXPECT_INT(WEIR_EINVAL, weir__topic_check(letters(41), &err));
    EXPECT_CONTAINS("at most 40", err.text);
    EXPECT_INT(WEIR_EINVAL, weir__topic_check(letters(0), &err));
    EXPECT_STR("topic is empty", err.text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct weir_slice topic = weir__slice_str(bad[i]);

        EXPECT_INT(WEIR_EINVAL, weir__topic_check(topic, &err));
        EXPECT_CONTAINS("use letters, digits and . _ : -", err.text);
    }
}

TEST(hexadecimal_digits_are_of_either_case)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";

    for (int i = 0; i < 32; i++)
        EXPECT_INT(i % 16, weir__hex_digit(digits[i]));
    for (const char *other = "/:@G`g\x80 "; *other != '\0'; other++)
        EXPECT_INT(-1, weir__hex_digit(*other));
    EXPECT_INT(-1, weir__hex_digit('\0'));
}

TEST(each_byte_that_a_topic_may_have_is_known)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "0123456789._:-";

    for (int byte = 0; byte < 256; byte++) {
        uint8_t text[] = {'a', (uint8_t)byte};
        struct weir_slice topic = {text, sizeof(text)};
        bool is_allowed = memchr(allowed, byte, sizeof(allowed) - 1) != NULL;

        EXPECT_INT(is_allowed, weir__topic_check(topic, NULL) == WEIR_OK);
    }
}

TEST(slices_are_equal_when_their_bytes_are)
{
    struct weir_slice none = weir__slice_str(NULL);

    EXPECT_INT(0, none.len);
    EXPECT_TRUE(weir__slice_equal(none, weir__slice_str("")));
    EXPECT_TRUE(
        weir__slice_equal(weir__slice_str("ab"), weir__slice_of("abc", 2)));
    EXPECT_TRUE(
        !weir__slice_equal(weir__slice_str("ab"), weir__slice_str("ac")));
    EXPECT_TRUE(!weir__slice_equal(weir__slice_str("ab"), none));
}

/* SPDX-License-Identifier: MIT */
#include "core/visible.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "tests/harness/test.h"

static void expect_shown(const char *wanted, const char *text)
{
    struct weir_slice rest = weir__slice_str(text);
    char shown[128];

    EXPECT_INT(strlen(wanted), weir__visible_take(&rest, shown, sizeof(shown)));
    EXPECT_STR(wanted, shown);
    EXPECT_INT(0, rest.len);
}

TEST(what_a_terminal_obeys_is_shown_as_an_escape)
{
    expect_shown("a\\nb\\r\\tc", "a\nb\r\tc");
    expect_shown("\\x1b[31m\\x7f\\x07", "\x1b[31m\x7f\x07");
    expect_shown("\\u009b31m\\u0080", "\xc2\x9b"
                                      "31m\xc2\x80");
}

TEST(every_c1_control_is_hidden_and_what_follows_them_is_not)
{
    for (uint32_t code = 0x80; code < 0xc0; code++) {
        char text[3] = {(char)0xc2, (char)code, '\0'}, wanted[8];

        (void)snprintf(wanted, sizeof(wanted), "\\u%04x", code);
        expect_shown(code < 0xa0 ? wanted : text, text);
    }
}

TEST(what_turns_the_direction_round_or_ends_a_line_is_hidden)
{
    expect_shown("\\u061c\\u200e\\u200f", "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f");
    expect_shown("\\u2028\\u2029", "\xe2\x80\xa8\xe2\x80\xa9");
    expect_shown("\\u202a\\u202e", "\xe2\x80\xaa\xe2\x80\xae");
    expect_shown("\\u2066\\u2069", "\xe2\x81\xa6\xe2\x81\xa9");
    expect_shown("\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5",
                 "\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5");
}

TEST(each_byte_that_is_no_utf_8_is_shown_as_itself)
{
    expect_shown("\\x9b31m\\xff", "\x9b"
                                  "31m\xff");
    expect_shown("\\xed\\xa0\\x80", "\xed\xa0\x80"); /* a surrogate */
    expect_shown("\\xc0\\x9b", "\xc0\x9b");          /* overlong */
    expect_shown("\\xe2\\x80", "\xe2\x80");          /* cut */
}

TEST(all_else_is_shown_as_it_is)
{
    expect_shown("", "");
    expect_shown("C:\\x1b \"quoted\" ~", "C:\\x1b \"quoted\" ~");
    expect_shown("\xd7\xa9 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                 "\xd7\xa9 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(what_does_not_fit_is_left_with_no_character_in_part)
{
    struct weir_slice text = weir__slice_str("ab\xe2\x82\xac\x1b");
    char shown[8];

    EXPECT_INT(2, weir__visible_take(&text, shown, 5));
    EXPECT_STR("ab", shown);
    EXPECT_INT(3, weir__visible_take(&text, shown, 7));
    EXPECT_STR("\xe2\x82\xac", shown);
    EXPECT_INT(1, text.len);
    EXPECT_INT(0, weir__visible_take(&text, shown, 4));
    EXPECT_INT(4, weir__visible_take(&text, shown, 5));
    EXPECT_STR("\\x1b", shown);
}

TEST(a_sentence_is_cut_between_two_characters)
{
    char long_text[600];
    struct weir_error err = {0};

    for (size_t i = 0; i < sizeof(long_text) - 3; i += 3)
        memcpy(long_text + i, "\xe2\x82\xac", 4);
    (void)weir__error_set(&err, WEIR_EINVAL, "%s", long_text);
    EXPECT_TRUE(strchr(err.text, '\\') == NULL);
    EXPECT_TRUE(strlen(err.text) > sizeof(err.text) - 4);
}

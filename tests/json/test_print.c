/* SPDX-License-Identifier: MIT */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "adapters/json/json.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void expect_text(const char *wanted, struct weir_slice value)
{
    char text[1024];

    EXPECT_INT(strlen(wanted), weir__json_print(value, text, sizeof(text)));
    EXPECT_STR(wanted, text);
}

/* JSON to msgpack and back gives `wanted`. */
static void expect_back(const char *wanted, const char *json)
{
    struct weir__buf buf = {0};

    EXPECT_INT(WEIR_OK, weir__json_to_msgpack(
                            weir__slice_of(json, strlen(json)), &buf, NULL));
    expect_text(wanted, weir__buf_slice(&buf));
    weir__buf_fini(&buf);
}

TEST(json_survives_the_way_to_msgpack_and_back)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "-9223372036854775808",
        "\"\"",
        "\"a/b \\\"q\\\" \\\\ \\n\\t\\u0001\\u0000z\"",
        "\"\xc3\xa9 \xf0\x9f\x98\x80\"",
        "[]",
        "{}",
        "[[],{},[null,[1]]]",
        "{\"z\":1,\"a\":{\"k\":[true,false,null,\"x\",1.5]},\"\":0}",
    };

    for (size_t i = 0; i < COUNT(texts); i++)
        expect_back(texts[i], texts[i]);
}

TEST(floats_stay_floats_and_are_short)
{
    static const char *const texts[] = {
        "0.1",
        "1.0",
        "-0.0",
        "1.5",
        "100.0",
        "1e+20",
        "1e-07",
        "0.30000000000000004",
        "4.94065645841247e-324",
        "1e+22",
        "0.0001",
        "1.7976931348623157e+308",
        "-1.25",
        "3.141592653589793",
        "2.2250738585072014e-308",
        "123456789012345.0",
        "1234567890123456.0",
        "9007199254740993.0",
    };

    for (size_t i = 0; i + 1 < COUNT(texts); i++)
        expect_back(texts[i], texts[i]);
    expect_back("9007199254740992.0", texts[COUNT(texts) - 1]);
    expect_back("1.0", "1e0");
    expect_text("0.5", BYTES("\xca\x3f\0\0\0"));
}

TEST(what_json_does_not_have_is_written_as_something_else)
{
    expect_text("{\"$bin\":\"\"}", BYTES("\xc4\x00"));
    expect_text("{\"$bin\":\"AA==\"}", BYTES("\xc4\x01\x00"));
    expect_text("{\"$bin\":\"+/8=\"}", BYTES("\xc4\x02\xfb\xff"));
    expect_text("{\"$bin\":\"TWFu\"}", BYTES("\xc4\x03Man"));
    expect_text("{\"$bin\":\"TWFuTQ==\"}", BYTES("\xc4\x04ManM"));
    expect_text("{\"$ext\":5,\"data\":\"Kg==\"}", BYTES("\xd4\x05\x2a"));
    expect_text("{\"$ext\":-1,\"data\":\"\"}", BYTES("\xc7\x00\xff"));
    expect_text("[null,null,null]", BYTES("\x93\xca\x7f\xc0\0\0"
                                          "\xcb\xff\xf0\0\0\0\0\0\0"
                                          "\xca\x7f\x80\0\0"));
}

TEST(keys_that_are_no_strings_become_their_json_text)
{
    expect_text("{\"1\":0,\"null\":1,\"true\":2,\"1.5\":3,\"[1,\\\"x\\\"]\":4}",
                BYTES("\x85\x01\x00\xc0\x01\xc3\x02\xca\x3f\xc0\0\0\x03"
                      "\x92\x01\xa1x\x04"));
    expect_text("{\"{\\\"$bin\\\":\\\"AA==\\\"}\":1}",
                BYTES("\x81\xc4\x01\x00\x01"));
}

TEST(of_equal_msgpack_keys_the_first_is_printed)
{
    expect_text("{\"a\":1,\"1\":3}", BYTES("\x84\xa1"
                                           "a\x01\xa1"
                                           "a\x02\x01\x03\xa1"
                                           "1\x04"));
    expect_text("{\"a\":null}", BYTES("\x82\xa1"
                                      "a\xc0\xa1"
                                      "a\x02"));
}

TEST(bytes_that_are_not_utf8_are_replaced)
{
    expect_text("\"a\xef\xbf\xbd"
                "b\xc3\xa9\xef\xbf\xbd\"",
                BYTES("\xa6"
                      "a\xff"
                      "b\xc3\xa9\xc3"));
    expect_text("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
                BYTES("\xa3\xed\xa0\x80"));
    expect_text("{\"a\xef\xbf\xbd"
                "b\xef\xbf\xbd\":1}",
                BYTES("\x81\xa4"
                      "a\0b\xff\x01"));
}

TEST(what_a_terminal_would_obey_is_printed_as_an_escape)
{
    expect_text("\"\\u001b[31m\\u007f\\u009b31m\"",
                BYTES("\xab\x1b[31m\x7f\xc2\x9b"
                      "31m"));
    expect_text("{\"\\u202ea\":\"\\u2028\xe2\x82\xac\"}",
                BYTES("\x81\xa4\xe2\x80\xae"
                      "a\xa6\xe2\x80\xa8\xe2\x82\xac"));
    expect_back("\"\\u009b\\u2069\"", "\"\\u009b\xe2\x81\xa9\"");
}

TEST(printing_into_too_little_room_cuts_and_tells_the_length)
{
    char text[8] = "xxxxxxx";

    EXPECT_INT(7, weir__json_print(BYTES("\x93\x01\x02\x03"), text, 4));
    EXPECT_STR("[1,", text);
    EXPECT_INT(7, weir__json_print(BYTES("\x93\x01\x02\x03"), text, 8));
    EXPECT_STR("[1,2,3]", text);
    EXPECT_INT(7, weir__json_print(BYTES("\x93\x01\x02\x03"), text, 7));
    EXPECT_STR("[1,2,3", text);
    EXPECT_INT(7, weir__json_print(BYTES("\x93\x01\x02\x03"), text, 1));
    EXPECT_STR("", text);
    EXPECT_INT(7, weir__json_print(BYTES("\x93\x01\x02\x03"), NULL, 0));
}

TEST(nothing_prints_as_null_and_broken_bytes_do_not_print)
{
    struct json_object *json = NULL;
    char text[8] = "kept";

    EXPECT_INT(0, weir__json_print(BYTES("\x92\x01"), text, sizeof(text)));
    EXPECT_INT(
        0, weir__json_print(BYTES("\xdd\x0f\xff\xff\xff"), text, sizeof(text)));
    EXPECT_STR("kept", text);
    EXPECT_INT(WEIR_EMALFORMED, weir__json_from_msgpack(BYTES("\xc1"), &json));
    expect_text("null", (struct weir_slice){0});
}

TEST(the_deepest_value_is_printed)
{
    uint8_t bytes[32];
    char text[80];

    memset(bytes, 0x91, sizeof(bytes));
    bytes[31] = 0xc4;
    EXPECT_INT(0,
               weir__json_print(weir__slice_of(bytes, 32), text, sizeof(text)));
    bytes[31] = 0x90;
    EXPECT_INT(64,
               weir__json_print(weir__slice_of(bytes, 32), text, sizeof(text)));
    EXPECT_CONTAINS("[[[[[[[[]]]]]]]]", text);
}

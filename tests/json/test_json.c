/* SPDX-License-Identifier: MIT */
#include "adapters/json/json.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/random.h"
#include "core/text.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

struct packing {
    const char *json;
    const char *bytes;
    size_t len;
};

#define CASE(json, literal)                \
    {                                      \
        json, literal, sizeof(literal) - 1 \
    }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void expect_packing(const struct packing *packing)
{
    struct weir__buf buf = {0};
    struct weir_error err = {0};

    EXPECT_INT(
        WEIR_OK,
        weir__json_to_msgpack(
            weir__slice_of(packing->json, strlen(packing->json)), &buf, &err));
    EXPECT_MEM(packing->bytes, packing->len, buf.ptr, buf.len);
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&buf)));
    weir__buf_fini(&buf);
}

static void expect_refused(struct weir_slice json, const char *sentence)
{
    struct weir__buf buf = {0};
    struct weir_error err = {0};
    uint8_t *copy = exact_copy(json);

    EXPECT_INT(WEIR_EINVAL, weir__json_to_msgpack(
                                weir__slice_of(copy, json.len), &buf, &err));
    EXPECT_INT(WEIR_EINVAL, err.code);
    EXPECT_STR(sentence, err.text);
    EXPECT_INT(0, buf.len);
    weir__buf_fini(&buf);
    weir__mem_free(copy);
}

TEST(every_json_type_has_its_msgpack_form)
{
    static const struct packing cases[] = {
        CASE("null", "\xc0"),
        CASE("true", "\xc3"),
        CASE("false", "\xc2"),
        CASE("0", "\x00"),
        CASE("-1", "\xff"),
        CASE("1.5", "\xcb\x3f\xf8\0\0\0\0\0\0"),
        CASE("1.0", "\xcb\x3f\xf0\0\0\0\0\0\0"),
        CASE("1e0", "\xcb\x3f\xf0\0\0\0\0\0\0"),
        CASE("-0.0", "\xcb\x80\0\0\0\0\0\0\0"),
        CASE("1.7976931348623157e308", "\xcb\x7f\xef\xff\xff\xff\xff\xff\xff"),
        CASE("5e-324", "\xcb\0\0\0\0\0\0\0\x01"),
        CASE("\"\"", "\xa0"),
        CASE("\"a\\u0000b\"", "\xa3"
                              "a\0b"),
        CASE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\xa8\"\\/\b\f\n\r\t"),
        CASE("\"\\u00e9 \\ud83d\\uDE00\"", "\xa7\xc3\xa9 \xf0\x9f\x98\x80"),
        CASE("\"\xf4\x8f\xbf\xbf\"", "\xa4\xf4\x8f\xbf\xbf"),
        CASE("[]", "\x90"),
        CASE("{}", "\x80"),
        CASE(" \t\r\n[1 , null]\n ", "\x92\x01\xc0"),
        CASE("{\"a\":{\"b\":[1]}, \"\":\"\"}", "\x82\xa1"
                                               "a\x81\xa1"
                                               "b\x91\x01\xa0\xa0"),
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_packing(&cases[i]);
}

TEST(integers_keep_all_of_their_64_bits)
{
    static const struct packing cases[] = {
        CASE("127", "\x7f"),
        CASE("128", "\xcc\x80"),
        CASE("-32", "\xe0"),
        CASE("-33", "\xd0\xdf"),
        CASE("4294967296", "\xcf\0\0\0\x01\0\0\0\0"),
        CASE("9007199254740993", "\xcf\0\x20\0\0\0\0\0\x01"),
        CASE("9223372036854775807", "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"),
        CASE("9223372036854775808", "\xcf\x80\0\0\0\0\0\0\0"),
        CASE("18446744073709551615", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),
        CASE("-9223372036854775807", "\xd3\x80\0\0\0\0\0\0\x01"),
        CASE("-9223372036854775808", "\xd3\x80\0\0\0\0\0\0\0"),
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_packing(&cases[i]);
}

TEST(what_would_have_to_be_rounded_is_refused)
{
    expect_refused(BYTES("18446744073709551616"),
                   "json: integer beyond 64 bits at byte 1");
    expect_refused(BYTES("[1, -9223372036854775809]"),
                   "json: integer beyond 64 bits at byte 5");
    expect_refused(BYTES("100000000000000000000"),
                   "json: integer beyond 64 bits at byte 1");
    expect_refused(BYTES("1e400"), "json: 1e400 is not finite");
    expect_refused(BYTES("{\"a\":[-1.5E+999]}"),
                   "json: -1.5E+999 is not finite");
    expect_refused(BYTES("NaN"), "json: unexpected character at byte 1");
    expect_refused(BYTES("[Infinity]"), "json: unexpected character at byte 2");
    expect_refused(BYTES("-Infinity"), "json: digit expected at byte 2");
    expect_refused(BYTES("{\"a\\u0000b\" :1}"), "json: NUL in a key at byte 2");
    expect_refused(BYTES("\"\\ud800\""),
                   "json: half of a surrogate pair at byte 2");
    expect_refused(BYTES("\"x\\udc00\\ud800\""),
                   "json: half of a surrogate pair at byte 3");
    expect_refused(BYTES("\"\\ud800\\u0041\""),
                   "json: half of a surrogate pair at byte 2");
}

TEST(broken_json_is_refused_with_its_byte)
{
    static const struct {
        const char *json;
        const char *what;
        int byte;
    } cases[] = {
        {" ", "unexpected end of data", 2},
        {"tru", "unexpected character", 1},
        {"[1,2", "unexpected end of data", 5},
        {"{\"a\"", "unexpected end of data", 5},
        {"[1,]", "comma before an end", 3},
        {"{\"a\":1,}", "comma before an end", 7},
        {"[1, ]", "comma before an end", 3},
        {"[1 2]", "array value separator ',' expected", 4},
        {"{1:2}", "quoted object property name expected", 2},
        {"{'a':1}", "quoted object property name expected", 2},
        {"// x\n1", "unexpected character", 1},
        {"/* x */1", "unexpected character", 1},
        {"01", "number with a leading zero", 1},
        {"-01", "number with a leading zero", 1},
        {"1.", "digit expected", 3},
        {".5", "unexpected character", 1},
        {"1e", "digit expected", 3},
        {"-", "digit expected", 2},
        {"+1", "unexpected character", 1},
        {"0x10", "unexpected character", 2},
        {"True", "unexpected character", 1},
        {"\"abc", "string without an end", 1},
        {"\"a\nb\"", "control character in a string", 3},
        {"\"\\x\"", "unknown escape", 2},
        {"\"\\u12g4\"", "unknown escape", 2},
        {"\"\\", "unknown escape", 2},
        {"\"\xff\"", "invalid UTF-8", 2},
        {"\"\xc0\x80\"", "invalid UTF-8", 2},
        {"\"\xe0\x9f\xbf\"", "invalid UTF-8", 2},
        {"\"\xed\xa0\x80\"", "invalid UTF-8", 2},
        {"\"\xf0\x8f\xbf\xbf\"", "invalid UTF-8", 2},
        {"\"\xf4\x90\x80\x80\"", "invalid UTF-8", 2},
        {"\"\xe2\x82\"", "invalid UTF-8", 2},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char sentence[100];

        (void)snprintf(sentence, sizeof(sentence), "json: %s at byte %d",
                       cases[i].what, cases[i].byte); /* fits */
        expect_refused(weir__slice_of(cases[i].json, strlen(cases[i].json)),
                       sentence);
    }
}

TEST(empty_text_and_text_behind_the_value_are_refused)
{
    expect_refused((struct weir_slice){0}, "json: empty text");
    expect_refused(BYTES("\xef\xbb\xbf{}"),
                   "json: begins with a byte order mark (EF BB BF): save it as "
                   "UTF-8 without one");
    expect_refused(BYTES("1 x"), "json: unexpected character at byte 3");
    expect_refused(BYTES("1 2"), "json: unexpected character at byte 3");
    expect_refused(BYTES("{} {}"), "json: unexpected character at byte 4");
    expect_refused(BYTES("nulltrue"), "json: unexpected character at byte 5");
    expect_refused(BYTES("1\0 2"), "json: unexpected character at byte 2");
    expect_refused(BYTES("[1]\0"), "json: unexpected character at byte 4");
}

TEST(json_nested_beyond_32_levels_is_refused)
{
    struct weir__buf buf = {0};
    char deep[32 + 1 + 32]; /* a scalar in 32 arrays */

    memset(deep, '[', 32);
    deep[32] = '1';
    memset(deep + 33, ']', 32);
    EXPECT_INT(WEIR_OK,
               weir__json_to_msgpack(weir__slice_of(deep + 1, sizeof(deep) - 2),
                                     &buf, NULL));
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&buf)));
    expect_refused(weir__slice_of(deep, sizeof(deep)),
                   "json: nested deeper than 32 levels at byte 33");
    weir__buf_fini(&buf);
}

TEST(valid_json_cut_anywhere_is_refused)
{
    static const char json[] =
        "{\"a\":[1,-2.5e3,true,null],\"b\\u00e9\":\"\\ud83d\\ude00 \xc3\xa9\"}";

    for (size_t len = 0; len < sizeof(json) - 1; len++) {
        uint8_t *copy = exact_copy(weir__slice_of(json, len));
        struct weir__buf buf = {0};
        struct weir_error err = {0};

        EXPECT_INT(WEIR_EINVAL, weir__json_to_msgpack(weir__slice_of(copy, len),
                                                      &buf, &err));
        EXPECT_CONTAINS("json: ", err.text);
        weir__buf_fini(&buf);
        weir__mem_free(copy);
    }
}

TEST(of_equal_json_keys_the_last_counts)
{
    static const struct packing packing = CASE("{\"a\":1,\"a\":2}", "\x81\xa1"
                                                                    "a\x02");

    expect_packing(&packing);
}

TEST(of_many_equal_json_keys_the_last_counts)
{
    char json[4000] = "{", key[24];
    struct weir__buf buf = {0}, wanted = {0};

    /* k0 to k99 twice, then k0 once more with an object in it. */
    for (int i = 0; i < 200; i++) {
        (void)snprintf(key, sizeof(key), "\"k%d\":%d,", i % 100, i);
        memcpy(json + strlen(json), key, strlen(key) + 1);
    }
    (void)snprintf(json + strlen(json), 24, "%s", "\"k0\":{\"a\":1,\"a\":[]}}");
    EXPECT_INT(WEIR_OK,
               weir__json_to_msgpack(weir__slice_str(json), &buf, NULL));
    weir__buf_append(&wanted, "\xde\0\x64", 3);
    for (int i = 101; i < 200; i++) {
        int len = snprintf(key, sizeof(key), "k%d", i % 100);
        uint8_t head = (uint8_t)(0xa0 | len);
        uint8_t number[] = {0xcc, (uint8_t)i};

        weir__buf_append(&wanted, &head, 1);
        weir__buf_append(&wanted, key, (size_t)len);
        if (i < 128)
            weir__buf_append(&wanted, number + 1, 1);
        else
            weir__buf_append(&wanted, number, 2);
    }
    weir__buf_append(&wanted,
                     "\xa2k0\x81\xa1"
                     "a\x90",
                     7);
    EXPECT_MEM(wanted.ptr, wanted.len, buf.ptr, buf.len);
    weir__buf_fini(&buf);
    weir__buf_fini(&wanted);
}

static size_t packed_len(const char *open, const char *element, size_t count)
{
    struct weir__buf json = {0}, buf = {0};
    size_t len;

    weir__buf_append(&json, open, 1);
    for (size_t i = 0; i < count; i++)
        weir__buf_append(&json, element, strlen(element) - (i + 1 == count));
    weir__buf_append(&json, *open == '[' ? "]" : "\"", 1);
    EXPECT_INT(WEIR_OK,
               weir__json_to_msgpack(weir__buf_slice(&json), &buf, NULL));
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&buf)));
    len = buf.len;
    weir__buf_fini(&json);
    weir__buf_fini(&buf);
    return len;
}

TEST(lengths_of_every_size_have_their_head)
{
    EXPECT_INT(1 + 15, packed_len("[", "1,", 15));
    EXPECT_INT(3 + 16, packed_len("[", "1,", 16));
    EXPECT_INT(3 + 65535, packed_len("[", "1,", 65535));
    EXPECT_INT(5 + 65536, packed_len("[", "1,", 65536));
    EXPECT_INT(1 + 31, packed_len("\"", "ab", 16));
    EXPECT_INT(2 + 33, packed_len("\"", "ab", 17));
    EXPECT_INT(2 + 255, packed_len("\"", "ab", 128));
    EXPECT_INT(3 + 257, packed_len("\"", "ab", 129));
    EXPECT_INT(3 + 65535, packed_len("\"", "ab", 32768));
    EXPECT_INT(5 + 65537, packed_len("\"", "ab", 32769));
}

TEST(a_refused_value_leaves_the_buffer_as_it_was)
{
    struct weir__buf buf = {0};

    weir__buf_append(&buf, "kept", 4);
    EXPECT_INT(WEIR_EINVAL,
               weir__json_to_msgpack(BYTES("[1,{\"a\":nan}]"), &buf, NULL));
    EXPECT_MEM("kept", 4, buf.ptr, buf.len);
    weir__buf_fini(&buf);
}

TEST(decimal_numbers_are_the_nearest_doubles)
{
    uint64_t random = 7;
    char text[64];

    for (int round = 0; round < 50000; round++) {
        uint64_t draw = weir__random_next(&random);
        struct weir__buf buf = {0};
        msgpack_sbuffer wanted;
        msgpack_packer packer;
        int len =
            snprintf(text, sizeof(text), "%s%llu.%0*llu%s", draw & 1 ? "-" : "",
                     (unsigned long long)(draw >> 1) % 100000,
                     1 + (int)(draw >> 60) % 15,
                     (unsigned long long)(draw >> 20) % 1000000000,
                     draw & 2   ? ""
                     : draw & 4 ? "e-7"
                                : "E12"); /* fits */

        msgpack_sbuffer_init(&wanted);
        msgpack_packer_init(&packer, &wanted, msgpack_sbuffer_write);
        (void)msgpack_pack_double(&packer, strtod(text, NULL));
        EXPECT_INT(WEIR_OK, weir__json_to_msgpack(
                                weir__slice_of(text, (size_t)len), &buf, NULL));
        EXPECT_MEM(wanted.data, wanted.size, buf.ptr, buf.len);
        msgpack_sbuffer_destroy(&wanted);
        weir__buf_fini(&buf);
    }
}

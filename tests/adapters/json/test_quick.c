/* SPDX-License-Identifier: MIT */
#include "adapters/json/quick.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "adapters/json/json.h"
#include "core/random.h"
#include "tests/adapters/msgpack/bytes.h"
#include "tests/harness/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const texts[] = {
    "null",
    " [1 , -2,3.25,\"a\\n\\\"b\\\\\\/\\t\\r\\b\\f\",true,false,null] ",
    "{\"order\":42,\"lines\":[{\"sku\":\"x-1\",\"price\":19.99}],\"\":{}}",
    "[-0,-0.0,0.1,123456789.012345,0,00,1.,.5,1e3,-,1.5E-2]",
    "[999999999999999999,1000000000000000000,9223372036854775808]",
    "{\"a\":1,\"b\":2,\"a\":3}",
    "{\"a\\u0041\":\"\\u00e9\\ud83d\\ude00\"}",
    "[\"caf\xc3\xa9 \xf0\x9f\x98\x80\",\"\xc3\",\"\xed\xa0\x80\"]",
    "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]",
    "[127,128,255,256,65535,65536,4294967295,4294967296,-32,-33,-129]",
    "{\"a\":[[[[[[[[[[{\"b\":[]}]]]]]]]]]]}",
};

/* The careful way, around the quick one. */
static int carefully(struct weir_slice json, struct weir__buf *buf)
{
    struct json_object *parsed = NULL;
    int rc = weir__json_parse(json, &parsed, NULL);

    if (rc < 0)
        return rc;
    rc = weir__json_object_to_msgpack(parsed, buf, NULL);
    (void)json_object_put(parsed);
    return rc;
}

/* Whether the quick way took it. */
static bool compare(struct weir_slice json)
{
    uint8_t *copy = exact_copy(json);
    struct weir__json_quick quick = {copy, copy + json.len};
    struct weir__buf one = {0}, other = {0};
    bool is_taken = weir__json_quick_value(&quick, &one) == WEIR_OK &&
                    weir__json_quick_is_done(&quick);

    if (is_taken) {
        EXPECT_INT(WEIR_OK, carefully(json, &other));
        EXPECT_MEM(other.ptr, other.len, one.ptr, one.len);
    }
    weir__buf_fini(&one);
    weir__buf_fini(&other);
    weir__mem_free(copy);
    return is_taken;
}

TEST(the_quick_way_takes_what_is_simple)
{
    EXPECT_TRUE(compare(weir__slice_str(texts[0])));
    EXPECT_TRUE(compare(weir__slice_str(texts[1])));
    EXPECT_TRUE(compare(weir__slice_str(texts[2])));
    EXPECT_TRUE(compare(weir__slice_str(texts[8])));
    EXPECT_TRUE(compare(weir__slice_str(texts[9])));
    EXPECT_TRUE(compare(weir__slice_str(texts[10])));
}

TEST(the_quick_way_leaves_what_has_two_meanings)
{
    EXPECT_TRUE(!compare(weir__slice_str("{\"a\":1,\"a\":2}")));
    EXPECT_TRUE(!compare(weir__slice_str("-0")));
    EXPECT_TRUE(!compare(weir__slice_str("1e3")));
    EXPECT_TRUE(!compare(weir__slice_str("\"\\u0041\"")));
    EXPECT_TRUE(!compare(weir__slice_str("[1,]")));
    EXPECT_TRUE(!compare(weir__slice_str("[1 2]")));
    EXPECT_TRUE(!compare(weir__slice_str("{\"a\" 1}")));
    EXPECT_TRUE(!compare(weir__slice_str("01")));
    EXPECT_TRUE(!compare(weir__slice_str("1.")));
}

TEST(every_cut_of_a_text_is_read_alike_or_left)
{
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t len = 1; len <= strlen(texts[i]); len++)
            (void)compare(weir__slice_of(texts[i], len));
}

static void mutate(char *text, size_t len, uint64_t *random)
{
    static const char bytes[] = "0123456789-+.eE\"\\/{}[]:, untrfalse\x01\xc3";
    uint64_t draw = weir__random_next(random);

    text[draw % len] = bytes[(draw >> 32) % (sizeof(bytes) - 1)];
}

TEST(random_changes_of_a_text_are_read_alike_or_left)
{
    uint64_t random = 20260131;
    char text[128];

    for (int round = 0; round < 100000; round++) {
        const char *from = texts[(size_t)round % COUNT(texts)];
        size_t len = strlen(from);

        memcpy(text, from, len);
        mutate(text, len, &random);
        if (round % 3 == 0)
            mutate(text, len, &random);
        (void)compare(weir__slice_of(text, len));
    }
}

TEST(fractions_are_rounded_as_the_careful_way_does)
{
    uint64_t random = 7;
    char text[64];

    for (int round = 0; round < 50000; round++) {
        uint64_t draw = weir__random_next(&random);
        int len = snprintf(text, sizeof(text), "%llu.%0*llu",
                           (unsigned long long)(draw % 100000),
                           1 + (int)(draw >> 60) % 10,
                           (unsigned long long)(draw >> 20) % 1000000000);

        (void)compare(weir__slice_of(text, (size_t)len));
    }
}

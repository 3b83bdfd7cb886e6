/* SPDX-License-Identifier: MIT */
/* <weir/body.h>: the same bytes as msgpack-c, and what it refuses. */
#include <weir/body.h>

#include <float.h>
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>

#include "adapters/msgpack/scan.h"
#include "tests/harness/test.h"

enum { BUF = 300 * 1024 };

static uint8_t buf[BUF];
static struct weir_body body;
static msgpack_sbuffer wanted;
static msgpack_packer packer;

static void begin(void)
{
    weir_body_init(&body, buf, sizeof(buf));
    msgpack_sbuffer_destroy(&wanted);
    msgpack_sbuffer_init(&wanted);
    msgpack_packer_init(&packer, &wanted, msgpack_sbuffer_write);
}

/* What was written is one value, and what `packer` made. */
static void expect_same(void)
{
    struct weir_error err = {0};
    struct weir_slice got = {0};

    EXPECT_INT(WEIR_OK, weir_body_end(&body, &got, &err));
    EXPECT_MEM(wanted.data, wanted.size, got.ptr, got.len);
    EXPECT_INT(WEIR_OK, weir__msgpack_check(got));
    EXPECT_INT(body.len, got.len);
}

static void expect_refused(int code, const char *words)
{
    struct weir_error err = {0};
    struct weir_slice got = {buf, 7};

    EXPECT_INT(code, weir_body_end(&body, &got, &err));
    EXPECT_INT(code, weir_body_end(&body, &got, NULL));
    EXPECT_INT(code, err.code);
    EXPECT_CONTAINS(words, err.text);
    EXPECT_INT(7, got.len);
}

static void try_int(int64_t value)
{
    begin();
    weir_body_int(&body, value);
    (void)msgpack_pack_int64(&packer, value);
    expect_same();
}

TEST(integers_take_the_shortest_form_on_both_sides_of_each_limit)
{
    static const int shifts[] = {5, 7, 8, 15, 16, 31, 32};

    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++)
        for (int64_t near = -2; near <= 2; near++) {
            try_int((INT64_C(1) << shifts[i]) + near);
            try_int(-(INT64_C(1) << shifts[i]) + near);
        }
    for (int64_t near = 0; near <= 2; near++) {
        try_int(near);
        try_int(-near);
        try_int(INT64_MAX - near);
        try_int(INT64_MIN + near);
    }
    begin();
    weir_body_uint(&body, UINT64_MAX);
    (void)msgpack_pack_uint64(&packer, UINT64_MAX);
    expect_same();
}

TEST(lengths_take_the_shortest_form_on_both_sides_of_each_limit)
{
    static const size_t lens[] = {0,   1,   15,    16,    31,    32,
                                  255, 256, 65535, 65536, 200000};
    char *bytes = calloc(1, BUF);

    EXPECT_TRUE(bytes != NULL);
    memset(bytes, 'x', BUF);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        begin();
        weir_body_text(&body, bytes, lens[i]);
        (void)msgpack_pack_str(&packer, lens[i]);
        (void)msgpack_pack_str_body(&packer, bytes, lens[i]);
        expect_same();
        begin();
        weir_body_bin(&body, bytes, lens[i]);
        (void)msgpack_pack_bin(&packer, lens[i]);
        (void)msgpack_pack_bin_body(&packer, bytes, lens[i]);
        expect_same();
        begin();
        weir_body_array(&body, (uint32_t)lens[i]);
        (void)msgpack_pack_array(&packer, lens[i]);
        for (size_t n = 0; n < lens[i]; n++) {
            weir_body_nil(&body);
            (void)msgpack_pack_nil(&packer);
        }
        expect_same();
        if (lens[i] > 65536)
            continue; /* twice as many values */
        begin();
        weir_body_map(&body, (uint32_t)lens[i]);
        (void)msgpack_pack_map(&packer, lens[i]);
        for (size_t n = 0; n < lens[i] * 2; n++) {
            weir_body_bool(&body, n % 2 == 0);
            (void)(n % 2 == 0 ? msgpack_pack_true(&packer)
                              : msgpack_pack_false(&packer));
        }
        expect_same();
    }
    free(bytes);
}

TEST(numbers_with_a_point_keep_every_bit)
{
    static const double numbers[] = {0.1,     -0.0,     DBL_MAX,
                                     DBL_MIN, HUGE_VAL, (double)NAN};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        begin();
        weir_body_double(&body, numbers[i]);
        (void)msgpack_pack_double(&packer, numbers[i]);
        expect_same();
    }
}

/* {"a": [], "b": {"c": [1, {}]}, "d": "e"} */
TEST(what_is_full_is_over)
{
    begin();
    weir_body_map(&body, 3);
    weir_body_str(&body, "a");
    weir_body_array(&body, 0);
    weir_body_str(&body, "b");
    weir_body_map(&body, 1);
    weir_body_str(&body, "c");
    weir_body_array(&body, 2);
    weir_body_int(&body, 1);
    weir_body_map(&body, 0);
    weir_body_str(&body, "d");
    weir_body_str(&body, "e");
    (void)msgpack_pack_map(&packer, 3);
    (void)msgpack_pack_str_with_body(&packer, "a", 1);
    (void)msgpack_pack_array(&packer, 0);
    (void)msgpack_pack_str_with_body(&packer, "b", 1);
    (void)msgpack_pack_map(&packer, 1);
    (void)msgpack_pack_str_with_body(&packer, "c", 1);
    (void)msgpack_pack_array(&packer, 2);
    (void)msgpack_pack_int(&packer, 1);
    (void)msgpack_pack_map(&packer, 0);
    (void)msgpack_pack_str_with_body(&packer, "d", 1);
    (void)msgpack_pack_str_with_body(&packer, "e", 1);
    expect_same();
}

TEST(a_value_that_is_msgpack_counts_as_one)
{
    const struct weir_slice pair = {(const uint8_t *)"\x92\x01\x02", 3};

    begin();
    weir_body_array(&body, 2);
    weir_body_value(&body, pair);
    weir_body_value(&body, pair);
    (void)msgpack_pack_array(&packer, 2);
    for (int i = 0; i < 2; i++) {
        (void)msgpack_pack_array(&packer, 2);
        (void)msgpack_pack_int(&packer, 1);
        (void)msgpack_pack_int(&packer, 2);
    }
    expect_same();
}

TEST(what_is_missing_or_too_much_is_told_at_the_end)
{
    begin();
    expect_refused(WEIR_EINVAL, "body: nothing was written");
    begin();
    weir_body_map(&body, 2);
    weir_body_str(&body, "a");
    expect_refused(WEIR_EINVAL, "less values than were announced");
    begin();
    weir_body_array(&body, 1);
    weir_body_nil(&body);
    weir_body_nil(&body);
    expect_refused(WEIR_EINVAL, "a value follows that no map or array");
    weir_body_init(&body, buf, sizeof(buf));
    weir_body_nil(&body);
    weir_body_str(&body, "b");
    weir_body_map(&body, 1); /* the first mistake counts */
    expect_refused(WEIR_EINVAL, "a value follows that no map or array");
}

TEST(it_is_as_deep_as_bodies_may_be)
{
    begin();
    for (int i = 0; i < WEIR_BODY_DEPTH; i++) {
        weir_body_array(&body, i < WEIR_BODY_DEPTH - 1);
        (void)msgpack_pack_array(&packer, i < WEIR_BODY_DEPTH - 1);
    }
    expect_same();
    begin();
    for (int i = 0; i < WEIR_BODY_DEPTH; i++)
        weir_body_array(&body, 1);
    weir_body_nil(&body);
    expect_refused(WEIR_EINVAL, "more than 32 levels");
}

TEST(a_buffer_that_is_too_small_is_told_with_what_it_takes)
{
    uint8_t small[8];

    memset(small, 0x55, sizeof(small));
    weir_body_init(&body, small, 4);
    weir_body_array(&body, 2);
    weir_body_str(&body, "abc");
    weir_body_int(&body, 7);
    EXPECT_INT(6, body.len);
    expect_refused(WEIR_ETOOBIG, "more bytes than the buffer has");
    EXPECT_INT(0x55, small[4]); /* nothing was written behind it */
    weir_body_init(&body, NULL, 0);
    weir_body_str(&body, "");
    expect_refused(WEIR_ETOOBIG, "more bytes than the buffer has");
    EXPECT_INT(1, body.len);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/scan.h"

#include <float.h>
#include <stdio.h>

#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

/* One value with everything in it: {"a": 1, "list": [nil, true, -1, 1.5f],
 * "bin": bin8, "str8": str8, "ext": fixext1, "deep": {"k": [[2]]}} */
static const char sample[] = "\x86"
                             "\xa1"
                             "a\x01"
                             "\xa4"
                             "list\x94\xc0\xc3\xff\xca\x3f\xc0\x00\x00"
                             "\xa3"
                             "bin\xc4\x02\x00\xff"
                             "\xa4"
                             "str8\xd9\x03xyz"
                             "\xa3"
                             "ext\xd4\x05\x2a"
                             "\xa4"
                             "deep\x81\xa1k\x91\x91\x02";

static struct weir_value head_of(struct weir_slice bytes, size_t wanted_len)
{
    struct weir_value value;

    EXPECT_INT(wanted_len, weir__msgpack_head(bytes, &value));
    return value;
}

static struct weir_value find(const char *path)
{
    struct weir_value value;

    weir__msgpack_find(BYTES(sample), path, &value);
    return value;
}

TEST(integers_of_every_width_keep_their_value)
{
    static const struct {
        const char *bytes;
        size_t len;
        int64_t value;
    } cases[] = {
        {"\x00", 1, 0},
        {"\x7f", 1, 127},
        {"\xe0", 1, -32},
        {"\xff", 1, -1},
        {"\xcc\x00", 2, 0},
        {"\xcc\x80", 2, 128},
        {"\xcc\xff", 2, 255},
        {"\xcd\x01\x00", 3, 256},
        {"\xcd\xff\xff", 3, 65535},
        {"\xce\x00\x01\x00\x00", 5, 65536},
        {"\xce\xff\xff\xff\xff", 5, UINT32_MAX},
        {"\xcf\x00\x00\x00\x01\x00\x00\x00\x00", 9, 4294967296},
        {"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", 9, INT64_MAX},
        {"\xd0\x80", 2, -128},
        {"\xd0\x7f", 2, 127},
        {"\xd1\x80\x00", 3, -32768},
        {"\xd1\xff\x7f", 3, -129},
        {"\xd2\x80\x00\x00\x00", 5, INT32_MIN},
        {"\xd2\x7f\xff\xff\xff", 5, INT32_MAX},
        {"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9, INT64_MIN},
        {"\xd3\x7f\xff\xff\xff\xff\xff\xff\xff", 9, INT64_MAX},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct weir_slice bytes = weir__slice_of(cases[i].bytes, cases[i].len);
        struct weir_value value = head_of(bytes, cases[i].len);

        EXPECT_INT(WEIR_OK, weir__msgpack_check(bytes));
        EXPECT_INT(WEIR_TYPE_INT, value.type);
        EXPECT_INT(cases[i].value, value.as.i64);
    }
}

TEST(only_integers_above_int64_are_unsigned)
{
    struct weir_value value =
        head_of(BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), 9);

    EXPECT_INT(WEIR_TYPE_UINT, value.type);
    EXPECT_TRUE(value.as.u64 == UINT64_MAX);
    value = head_of(BYTES("\xcf\x80\x00\x00\x00\x00\x00\x00\x00"), 9);
    EXPECT_INT(WEIR_TYPE_UINT, value.type);
    EXPECT_TRUE(value.as.u64 == (uint64_t)INT64_MAX + 1);
}

TEST(floats_nil_and_booleans_are_read)
{
    struct weir_value value = head_of(BYTES("\xca\x3f\xc0\x00\x00"), 5);

    EXPECT_INT(WEIR_TYPE_FLOAT, value.type);
    EXPECT_TRUE(value.as.f64 > 1.4999 && value.as.f64 < 1.5001);
    value = head_of(BYTES("\xcb\x7f\xef\xff\xff\xff\xff\xff\xff"), 9);
    EXPECT_TRUE(value.type == WEIR_TYPE_FLOAT && value.as.f64 >= DBL_MAX);
    EXPECT_INT(WEIR_TYPE_NIL, head_of(BYTES("\xc0"), 1).type);
    value = head_of(BYTES("\xc2"), 1);
    EXPECT_TRUE(value.type == WEIR_TYPE_BOOL && !value.as.boolean);
    value = head_of(BYTES("\xc3"), 1);
    EXPECT_TRUE(value.type == WEIR_TYPE_BOOL && value.as.boolean);
}

/* A value of `head` and `len` bytes 'x' behind it. */
static void expect_bytes(struct weir_slice head, enum weir_type type,
                         size_t len)
{
    size_t whole = head.len + len;
    uint8_t *bytes = weir__mem_new(whole);
    struct weir_value value;

    memset(bytes, 'x', whole);
    memcpy(bytes, head.ptr, head.len);
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__slice_of(bytes, whole)));
    value = head_of(weir__slice_of(bytes, whole), whole);
    EXPECT_INT(type, value.type);
    EXPECT_INT(len, value.as.bytes.len);
    EXPECT_TRUE(value.as.bytes.ptr == bytes + head.len);
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(weir__slice_of(bytes, whole - 1)));
    weir__mem_free(bytes);
}

TEST(strings_binaries_and_extensions_are_read_at_every_length_form)
{
    expect_bytes(BYTES("\xa1"), WEIR_TYPE_STR, 1);
    expect_bytes(BYTES("\xbf"), WEIR_TYPE_STR, 31);
    expect_bytes(BYTES("\xd9\x20"), WEIR_TYPE_STR, 32);
    expect_bytes(BYTES("\xd9\xff"), WEIR_TYPE_STR, 255);
    expect_bytes(BYTES("\xda\x01\x00"), WEIR_TYPE_STR, 256);
    expect_bytes(BYTES("\xda\xff\xff"), WEIR_TYPE_STR, 65535);
    expect_bytes(BYTES("\xdb\x00\x01\x00\x00"), WEIR_TYPE_STR, 65536);
    expect_bytes(BYTES("\xc4\xff"), WEIR_TYPE_BIN, 255);
    expect_bytes(BYTES("\xc5\xff\xff"), WEIR_TYPE_BIN, 65535);
    expect_bytes(BYTES("\xc6\x00\x01\x00\x00"), WEIR_TYPE_BIN, 65536);
    expect_bytes(BYTES("\xd4\x07"), WEIR_TYPE_EXT, 1);
    expect_bytes(BYTES("\xd5\x07"), WEIR_TYPE_EXT, 2);
    expect_bytes(BYTES("\xd6\x07"), WEIR_TYPE_EXT, 4);
    expect_bytes(BYTES("\xd7\x07"), WEIR_TYPE_EXT, 8);
    expect_bytes(BYTES("\xd8\x07"), WEIR_TYPE_EXT, 16);
    expect_bytes(BYTES("\xc7\xff\x07"), WEIR_TYPE_EXT, 255);
    expect_bytes(BYTES("\xc8\xff\xff\x07"), WEIR_TYPE_EXT, 65535);
    expect_bytes(BYTES("\xc9\x00\x01\x00\x00\x07"), WEIR_TYPE_EXT, 65536);
}

/* A container of `head` and `children` nils behind it. */
static void expect_container(struct weir_slice head, enum weir_type type,
                             size_t count)
{
    size_t whole = head.len + (type == WEIR_TYPE_MAP ? 2 * count : count);
    uint8_t *bytes = weir__mem_new(whole);
    struct weir_value value;

    memset(bytes, 0xc0, whole);
    memcpy(bytes, head.ptr, head.len);
    EXPECT_INT(whole, weir__msgpack_length(weir__slice_of(bytes, whole)));
    value = head_of(weir__slice_of(bytes, whole), head.len);
    EXPECT_INT(type, value.type);
    EXPECT_INT(count, value.as.count);
    EXPECT_INT(0, weir__msgpack_length(weir__slice_of(bytes, whole - 1)));
    weir__mem_free(bytes);
}

TEST(arrays_and_maps_are_read_at_every_length_form)
{
    expect_container(BYTES("\x90"), WEIR_TYPE_ARRAY, 0);
    expect_container(BYTES("\x9f"), WEIR_TYPE_ARRAY, 15);
    expect_container(BYTES("\xdc\x00\x00"), WEIR_TYPE_ARRAY, 0);
    expect_container(BYTES("\xdc\xff\xff"), WEIR_TYPE_ARRAY, 65535);
    expect_container(BYTES("\xdd\x00\x01\x00\x00"), WEIR_TYPE_ARRAY, 65536);
    expect_container(BYTES("\x80"), WEIR_TYPE_MAP, 0);
    expect_container(BYTES("\x8f"), WEIR_TYPE_MAP, 15);
    expect_container(BYTES("\xde\xff\xff"), WEIR_TYPE_MAP, 65535);
    expect_container(BYTES("\xdf\x00\x01\x00\x00"), WEIR_TYPE_MAP, 65536);
}

TEST(a_value_cut_anywhere_is_refused)
{
    size_t whole = sizeof(sample) - 1;

    EXPECT_INT(WEIR_OK, weir__msgpack_check(BYTES(sample)));
    for (size_t len = 0; len < whole; len++) {
        uint8_t *bytes = exact_copy(weir__slice_of(sample, len));
        struct weir_slice cut = weir__slice_of(bytes, len);

        EXPECT_INT(WEIR_EMALFORMED, weir__msgpack_check(cut));
        EXPECT_INT(0, weir__msgpack_length(cut));
        weir__mem_free(bytes);
    }
}

TEST(bytes_behind_the_value_are_refused_by_check_only)
{
    EXPECT_INT(WEIR_EMALFORMED, weir__msgpack_check(BYTES("\x01\x02")));
    EXPECT_INT(1, weir__msgpack_length(BYTES("\x01\x02")));
    EXPECT_INT(3, weir__msgpack_length(BYTES("\x92\xc0\xc0\xc0")));
}

TEST(nothing_and_the_unused_byte_are_refused)
{
    struct weir_value value;

    EXPECT_INT(WEIR_EMALFORMED, weir__msgpack_check((struct weir_slice){0}));
    EXPECT_INT(WEIR_EMALFORMED, weir__msgpack_check(BYTES("\xc1")));
    EXPECT_INT(WEIR_EMALFORMED, weir__msgpack_check(BYTES("\x91\xc1")));
    EXPECT_INT(0, weir__msgpack_head(BYTES("\xc1"), &value));
    EXPECT_INT(WEIR_TYPE_NONE, value.type);
    EXPECT_INT(0, weir__msgpack_head((struct weir_slice){0}, &value));
    EXPECT_INT(WEIR_TYPE_NONE, value.type);
}

/* `open` times an array of one around the bytes of `inner`. */
static int check_nested(size_t open, struct weir_slice inner)
{
    uint8_t bytes[64];

    memset(bytes, 0x91, open);
    memcpy(bytes + open, inner.ptr, inner.len);
    return weir__msgpack_check(weir__slice_of(bytes, open + inner.len));
}

TEST(nesting_beyond_32_levels_is_refused)
{
    EXPECT_INT(WEIR_OK, check_nested(31, BYTES("\xc0")));
    EXPECT_INT(WEIR_OK, check_nested(31, BYTES("\x90")));
    EXPECT_INT(WEIR_OK, check_nested(30, BYTES("\x81\xc0\xc0")));
    EXPECT_INT(WEIR_EMALFORMED, check_nested(32, BYTES("\xc0")));
    EXPECT_INT(WEIR_EMALFORMED, check_nested(32, BYTES("\x90")));
    EXPECT_INT(WEIR_EMALFORMED, check_nested(31, BYTES("\x81\xc0\xc0")));
    EXPECT_INT(WEIR_EMALFORMED, check_nested(33, BYTES("\xc0")));
}

TEST(counts_beyond_the_bytes_that_are_there_are_refused)
{
    char chain[60];

    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(BYTES("\xdd\x0f\xff\xff\xff")));
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(BYTES("\xdd\xff\xff\xff\xff")));
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(BYTES("\xdf\xff\xff\xff\xff")));
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(BYTES("\xdf\x80\x00\x00\x00")));
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(BYTES("\xdb\xff\xff\xff\xff")));
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(BYTES("\xc6\xff\xff\xff\xff")));
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(BYTES("\xc9\xff\xff\xff\xff\x01")));
    for (size_t i = 0; i < sizeof(chain); i += 3)
        memcpy(chain + i, "\xdc\xff\xff", 3);
    EXPECT_INT(WEIR_EMALFORMED,
               weir__msgpack_check(weir__slice_of(chain, sizeof(chain))));
}

TEST(a_path_leads_through_maps_and_arrays)
{
    EXPECT_INT(1, find("a").as.i64);
    EXPECT_INT(WEIR_TYPE_NIL, find("list.0").type);
    EXPECT_INT(-1, find("list.2").as.i64);
    EXPECT_INT(WEIR_TYPE_FLOAT, find("list.3").type);
    EXPECT_INT(4, find("list").as.count);
    EXPECT_MEM("\x00\xff", 2, find("bin").as.bytes.ptr,
               find("bin").as.bytes.len);
    EXPECT_MEM("xyz", 3, find("str8").as.bytes.ptr, find("str8").as.bytes.len);
    EXPECT_INT(5, find("ext").as.bytes.ptr[-1]);
    EXPECT_INT(2, find("deep.k.0.0").as.i64);
    EXPECT_INT(WEIR_TYPE_MAP, find("").type);
}

TEST(a_path_that_leads_nowhere_finds_nothing)
{
    static const char *const paths[] = {
        "b",
        "A",
        "a.0",
        "a.",
        ".",
        ".a",
        "list.4",
        "list.-1",
        "list.00",
        "list.01",
        "list.+1",
        "list. 1",
        "list.",
        "list.x",
        "list..0",
        "deep.0",
        "str8.0",
        "deep.k.0.0.0",
        "list.18446744073709551616",
        "list.99999999999999999999999999",
    };

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        EXPECT_INT(WEIR_TYPE_NONE, find(paths[i]).type);
    EXPECT_INT(WEIR_TYPE_NONE, find(NULL).type);
}

TEST(of_equal_keys_the_first_counts)
{
    struct weir_value value;

    weir__msgpack_find(BYTES("\x82\xa1x\x01\xa1x\x02"), "x", &value);
    EXPECT_INT(1, value.as.i64);
}

TEST(an_empty_step_means_the_empty_key)
{
    static const char bytes[] = "\x82\xa0\x81\xa0\x05\xa1x\x81\xa0\x06";
    struct weir_value value;

    weir__msgpack_find(BYTES(bytes), "x.", &value);
    EXPECT_INT(6, value.as.i64);
    weir__msgpack_find(BYTES(bytes), ".", &value);
    EXPECT_INT(5, value.as.i64);
}

TEST(keys_that_are_no_strings_are_passed_over)
{
    struct weir_value value;

    weir__msgpack_find(BYTES("\x84\x01\x02\x91\xc0\x03\xc4\x01x\x04\xa1x\x05"),
                       "x", &value);
    EXPECT_INT(5, value.as.i64);
    weir__msgpack_find(BYTES("\x81\x01\x02"), "1", &value);
    EXPECT_INT(WEIR_TYPE_NONE, value.type);
}

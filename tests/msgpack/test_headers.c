/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/headers.h"

#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/text.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

static void expect_slice(struct weir_slice wanted, struct weir_slice got)
{
    EXPECT_MEM(wanted.ptr, wanted.len, got.ptr, got.len);
}

TEST(headers_read_back_as_written)
{
    char text[WEIR_MAX_HEADER] = "";
    const struct weir_header headers[] = {
        {BYTES("traceparent"), BYTES("00-1")},
        {BYTES("x"), weir__slice_of(text, sizeof(text) - 1)},
    };
    struct weir_header got[WEIR_MAX_HEADERS];
    struct weir__buf buf = {0};

    memset(text, 'v', sizeof(text) - 1);
    weir__headers_write(&buf, headers, 2);
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&buf)));
    EXPECT_INT(2, weir__headers_read(weir__buf_slice(&buf), got));
    for (size_t i = 0; i < 2; i++) {
        expect_slice(headers[i].name, got[i].name);
        expect_slice(headers[i].value, got[i].value);
    }
    weir__buf_fini(&buf);
}

/* The names that are read, each behind a blank. */
static const char *names_of(struct weir_slice map)
{
    static char names[200];
    struct weir_header got[WEIR_MAX_HEADERS];
    size_t count = weir__headers_read(map, got);
    int len = 0;

    names[0] = '\0';
    for (size_t i = 0; i < count; i++)
        len += snprintf(names + len, sizeof(names) - (size_t)len, " %.*s",
                        (int)got[i].name.len, (const char *)got[i].name.ptr);
    return names;
}

TEST(what_is_no_header_is_left_out)
{
    EXPECT_STR("", names_of((struct weir_slice){0}));
    EXPECT_STR("", names_of(BYTES("\xc0")));
    EXPECT_STR("", names_of(BYTES("\x91\xa1"
                                  "a")));
    EXPECT_STR("", names_of(BYTES("\x80")));
    EXPECT_STR(" b", names_of(BYTES("\x82\xa1"
                                    "a\x01\xa1"
                                    "b\xa1"
                                    "1")));
    EXPECT_STR(" b", names_of(BYTES("\x82\x01\xa1"
                                    "1\xa1"
                                    "b\xa1"
                                    "1")));
    EXPECT_STR(" b", names_of(BYTES("\x83\xa7weir.id\xa1"
                                    "1\xa1"
                                    "b\xa1"
                                    "1"
                                    "\xa6WEIR.x\xa1"
                                    "1")));
    EXPECT_STR(" b", names_of(BYTES("\x82\xa1"
                                    "b\xa1"
                                    "1\xa1"
                                    "B\xa1"
                                    "2")));
    EXPECT_STR(" b", names_of(BYTES("\x83\xa1"
                                    "a\xa3"
                                    "1\r\n\xa1"
                                    "b\xa1"
                                    "1"
                                    "\xa3"
                                    "a b\xa1"
                                    "1")));
    EXPECT_STR(" b", names_of(BYTES("\x82\xa1"
                                    "b\xa1"
                                    "1\xa1"
                                    "c"))); /* cut */
    EXPECT_STR(" b", names_of(BYTES("\xdf\xff\xff\xff\xff\xa1"
                                    "b\xa1"
                                    "1")));
}

TEST(no_more_headers_are_read_than_a_job_has)
{
    struct weir_header got[WEIR_MAX_HEADERS];
    struct weir__buf buf = {0};

    weir__buf_append(&buf, "\xde\0\x14", 3);
    for (int i = 0; i < 20; i++) {
        char pair[8];

        (void)snprintf(pair, sizeof(pair), "\xa2%02d\xa1v", i); /* fits */
        weir__buf_append(&buf, pair, 5);
    }
    EXPECT_INT(WEIR_MAX_HEADERS,
               weir__headers_read(weir__buf_slice(&buf), got));
    expect_slice(BYTES("15"), got[15].name);
    weir__buf_fini(&buf);
}

TEST(a_list_of_headers_is_texts_and_not_too_many)
{
    struct weir_header got[2];
    size_t count = 7;

    EXPECT_INT(WEIR_OK,
               weir__headers_list((struct weir_slice){0}, got, 2, &count));
    EXPECT_INT(0, count);
    EXPECT_INT(WEIR_OK, weir__headers_list(BYTES("\x80"), got, 2, &count));
    EXPECT_INT(0, count);
    EXPECT_INT(WEIR_OK, weir__headers_list(BYTES("\x82\xa0\xa0\xa1"
                                                 "a\xa1 "),
                                           got, 2, &count));
    EXPECT_INT(2, count);
    expect_slice(BYTES(" "), got[1].value);
    EXPECT_INT(WEIR_EINVAL, weir__headers_list(BYTES("\x81\xa1"
                                                     "a\x01"),
                                               got, 2, &count));
    EXPECT_INT(WEIR_EINVAL, weir__headers_list(BYTES("\x90"), got, 2, &count));
    EXPECT_INT(WEIR_EINVAL, weir__headers_list(BYTES("\x81\xa1"
                                                     "a\xa1"
                                                     "1"),
                                               got, 0, &count));
}

/* --- what a job may be added with ----------------------------------------- */

static const char *fault(struct weir_slice name, struct weir_slice value)
{
    static struct weir_error err;
    const struct weir_header header = {name, value};
    bool is_good = weir__headers_check(&header, 1, &err) == WEIR_OK;

    EXPECT_TRUE(is_good == weir__header_is_sound(&header));
    return is_good ? "" : err.text;
}

TEST(a_header_is_a_token_and_visible_text)
{
    const char *name = "a name is letters, digits and !#$%&'*+-.^_`|~";
    const char *value = "a value is visible ASCII, with blanks only within";
    char text[WEIR_MAX_HEADER + 1];

    memset(text, 'x', sizeof(text));
    EXPECT_STR("", fault(BYTES("azAZ09!#$%&'*+-.^_`|~"), BYTES("! ~")));
    EXPECT_CONTAINS(name, fault(BYTES(""), BYTES("v")));
    EXPECT_CONTAINS(name, fault(BYTES("a:"), BYTES("v")));
    EXPECT_CONTAINS(name, fault(BYTES("a\0"), BYTES("v")));
    EXPECT_CONTAINS(name, fault(BYTES("a\r\n"), BYTES("v")));
    EXPECT_CONTAINS(name, fault(BYTES("\xc3\xa4"), BYTES("v")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES("")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES(" v")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES("v ")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES("v\nb: c")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES("v\t1")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES("v\0")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES("\x7f")));
    EXPECT_CONTAINS(value, fault(BYTES("a"), BYTES("\xc3\xa4")));
    EXPECT_CONTAINS("weir's own", fault(BYTES("Weir.id"), BYTES("v")));
    EXPECT_STR("", fault(BYTES("weirs"), BYTES("v")));
    EXPECT_STR("", fault(BYTES("a"), weir__slice_of(text, 255)));
    EXPECT_CONTAINS("257 bytes, 256 at most",
                    fault(BYTES("a"), weir__slice_of(text, 256)));
}

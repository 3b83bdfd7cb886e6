/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/origin.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

static struct weir_origin origin_of_order(void)
{
    return (struct weir_origin){
        .topic = BYTES("order.close"),
        .id = BYTES("42"),
        .token = UINT64_C(1) << 44,
        .died_ms = 1700000000000,
        .error = BYTES("gateway said no"),
    };
}

static void expect_slice(struct weir_slice wanted, struct weir_slice got)
{
    EXPECT_MEM(wanted.ptr, wanted.len, got.ptr, got.len);
}

static void expect_round_trip(const struct weir_origin *origin,
                              struct weir_slice headers)
{
    struct weir__buf buf = {0};
    struct weir_origin got;

    EXPECT_TRUE(weir__origin_write(&buf, origin, headers));
    EXPECT_TRUE(!buf.failed);
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&buf)));
    EXPECT_TRUE(weir__origin_read(weir__buf_slice(&buf), &got));
    expect_slice(origin->topic, got.topic);
    expect_slice(origin->id, got.id);
    EXPECT_INT(origin->token, got.token);
    EXPECT_INT(origin->died_ms, got.died_ms);
    expect_slice(origin->error, got.error);
    weir__buf_fini(&buf);
}

TEST(an_origin_reads_back_as_written)
{
    struct weir_origin origin = origin_of_order();

    expect_round_trip(&origin, (struct weir_slice){0});
}

TEST(headers_that_were_there_stay_behind_it)
{
    struct weir_origin origin = origin_of_order();
    struct weir__buf buf = {0};

    expect_round_trip(&origin, BYTES("\x81\xa1k\xa1v"));
    EXPECT_TRUE(weir__origin_write(&buf, &origin, BYTES("\x81\xa1k\xa1v")));
    EXPECT_MEM("\xa1k\xa1v", 4, buf.ptr + buf.len - 4, 4);
    weir__buf_fini(&buf);
}

TEST(an_error_text_is_cut_at_what_fits)
{
    char text[300];
    struct weir_origin origin = origin_of_order(), got;
    struct weir__buf buf = {0};

    memset(text, 'x', sizeof(text));
    origin.error = (struct weir_slice){(const uint8_t *)text, sizeof(text)};
    EXPECT_TRUE(weir__origin_write(&buf, &origin, (struct weir_slice){0}));
    EXPECT_TRUE(weir__origin_read(weir__buf_slice(&buf), &got));
    EXPECT_INT(255, got.error.len);
    weir__buf_fini(&buf);
}

TEST(what_is_no_origin_is_none)
{
    const struct weir_slice cases[] = {
        BYTES(""),
        BYTES("\xc0"),
        BYTES("\x80"),
        BYTES("\x81\xa1k\xa1v"),
        BYTES("\x81\xaaweir.topic\xa1t"),               /* no id */
        BYTES("\x82\xaaweir.topic\xa1t\xa7weir.id"),    /* cut */
        BYTES("\x82\xaaweir.topic\x01\xa7weir.id\x01"), /* wrong types */
        BYTES("\x82\xaaweir.topic\xa1t\xa7weir.id\xa3"
              "a\nb"), /* no id */
        BYTES("\x82\xaaweir.topic\xa3t\x1b[\xa7weir.id\xa1x"),
        BYTES("\xdf\xff\xff\xff\xff"),
    };
    struct weir_origin got;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        EXPECT_TRUE(!weir__origin_read(cases[i], &got));
}

TEST(headers_without_room_for_more_are_left_alone)
{
    struct weir_origin origin = origin_of_order();
    struct weir__buf buf = {0};

    EXPECT_TRUE(!weir__origin_write(&buf, &origin, BYTES("\xde\xff\xff")));
    EXPECT_INT(0, buf.len);
}

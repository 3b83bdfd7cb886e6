/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/attempts.h"

#include "adapters/msgpack/scan.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

#define ONE "\x94\x07\x02\xa1x\xa1w" /* 7 ms, failed, why, whose */

static size_t read_of(struct weir_slice array,
                      struct weir_attempt ret_attempts[WEIR_MAX_ATTEMPTS])
{
    size_t count;
    uint8_t *copy = exact_copy(array);

    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__slice_of(copy, array.len)));
    count = weir__attempts_read(weir__slice_of(copy, array.len), ret_attempts);
    weir__mem_free(copy);
    return count;
}

/* What an error of these bytes is read as. */
static void expect_cut(struct weir_slice wanted, struct weir_slice error)
{
    struct weir_attempt attempt = {.error = error}, got[WEIR_MAX_ATTEMPTS];
    struct weir__buf buf = {0};

    weir__attempts_write(&buf, &attempt, 1);
    EXPECT_INT(1, weir__attempts_read(weir__buf_slice(&buf), got));
    EXPECT_MEM(wanted.ptr, wanted.len, got[0].error.ptr, got[0].error.len);
    weir__buf_fini(&buf);
}

TEST(what_is_written_is_read_back)
{
    const struct weir_attempt attempts[] = {
        {WEIR_ATTEMPT_CRASH, 0, {0}, {0}},
        {WEIR_ATTEMPT_TIMEOUT, 9999999999999, BYTES("timeout"),
         BYTES("host-1-a")},
    };
    struct weir_attempt got[WEIR_MAX_ATTEMPTS];
    struct weir__buf buf = {0};

    weir__attempts_write(&buf, attempts, 2);
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&buf)));
    EXPECT_INT(2, weir__attempts_read(weir__buf_slice(&buf), got));
    for (size_t i = 0; i < 2; i++) {
        EXPECT_INT(attempts[i].outcome, got[i].outcome);
        EXPECT_INT(attempts[i].ended_ms, got[i].ended_ms);
        EXPECT_TRUE(weir__slice_equal(attempts[i].error, got[i].error));
        EXPECT_TRUE(weir__slice_equal(attempts[i].worker, got[i].worker));
    }
    weir__buf_fini(&buf);
}

TEST(the_last_ones_are_kept_and_take_two_kib_at_most)
{
    struct weir_attempt attempts[2 * WEIR_MAX_ATTEMPTS], got[WEIR_MAX_ATTEMPTS];
    struct weir__buf buf = {0};
    char text[1000];

    memset(text, 'x', sizeof(text));
    for (int64_t i = 0; i < 2 * WEIR_MAX_ATTEMPTS; i++)
        attempts[i] = (struct weir_attempt){
            .ended_ms = i,
            .error = weir__slice_of(text, sizeof(text)),
            .worker = weir__slice_of(text, sizeof(text)),
        };
    weir__attempts_write(&buf, attempts, 2 * WEIR_MAX_ATTEMPTS);
    EXPECT_TRUE(buf.len <= 2048);
    EXPECT_INT(WEIR_MAX_ATTEMPTS,
               weir__attempts_read(weir__buf_slice(&buf), got));
    EXPECT_INT(WEIR_MAX_ATTEMPTS, got[0].ended_ms);
    EXPECT_INT(200, got[0].error.len);
    EXPECT_INT(40, got[0].worker.len);
    weir__buf_fini(&buf);
}

TEST(a_text_is_cut_between_characters)
{
    char text[210];

    memset(text, 'x', sizeof(text));
    memcpy(text + 198, "\xe2\x82\xac", 3);
    expect_cut(weir__slice_of(text, 198), weir__slice_of(text, 210));
    expect_cut(weir__slice_of(text, 198), weir__slice_of(text, 201));
    memset(text, '\xff', sizeof(text));
    expect_cut(weir__slice_of(text, 200), weir__slice_of(text, 210));
}

TEST(what_is_no_attempt_is_left_out)
{
    struct weir_attempt got[WEIR_MAX_ATTEMPTS];

    EXPECT_INT(1, read_of(BYTES("\x91" ONE), got));
    EXPECT_INT(0, weir__attempts_read((struct weir_slice){0}, got));
    EXPECT_INT(0, read_of(BYTES("\xc0"), got));
    EXPECT_INT(0, read_of(BYTES("\x81\xc0\xc0"), got));
    EXPECT_INT(2, read_of(BYTES("\x93" ONE "\xc0" ONE), got));
    EXPECT_INT(0, read_of(BYTES("\x91\x93\x07\x02\xa1x"), got));
    EXPECT_INT(0, read_of(BYTES("\x91\x94\xff\x02\xa1x\xa1w"), got));
    EXPECT_INT(0, read_of(BYTES("\x91\x94\xcf\x00\x00\x09\x18\x4e\x72"
                                "\xa0\x00\x02\xa1x\xa1w"),
                          got)); /* one ms later */
    EXPECT_INT(0, read_of(BYTES("\x91\x94\x07\x04\xa1x\xa1w"), got));
    EXPECT_INT(0, read_of(BYTES("\x91\x94\x07\x02\x01\xa1w"), got));
    EXPECT_INT(0, read_of(BYTES("\x91\x94\x07\x02\xa1x\xc0"), got));
}

TEST(of_more_than_are_kept_the_last_ones_are_read)
{
    const struct weir_slice array =
        BYTES("\x99" ONE ONE ONE ONE ONE ONE ONE ONE "\x94\x08\x02\xa0\xa0");
    struct weir_attempt got[WEIR_MAX_ATTEMPTS];

    EXPECT_INT(WEIR_MAX_ATTEMPTS, weir__attempts_read(array, got));
    EXPECT_INT(8, got[WEIR_MAX_ATTEMPTS - 1].ended_ms);
    EXPECT_INT(7, got[0].ended_ms);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/record.h"

#include "adapters/msgpack/scan.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

static void expect_slice(struct weir_slice wanted, struct weir_slice got)
{
    EXPECT_MEM(wanted.ptr, wanted.len, got.ptr, got.len);
}

static int read_of(struct weir_slice bytes)
{
    struct weir__record record;

    return weir__record_read(bytes, &record);
}

static struct weir__record full_record(void)
{
    return (struct weir__record){
        .counters = {.attempt = 127,
                     .failures = 128,
                     .timeouts = 256,
                     .crashes = 65536,
                     .snoozes = UINT32_MAX},
        .retry = BYTES("15s 3m ..."),
        .url = BYTES("https://example.com/a/long/enough/path/for/str8"),
        .headers = BYTES("\x81\xa1k\xa1v"),
        .reason = BYTES("exhausted"),
        .error = BYTES("connection refused"),
        .ttl_ms = INT64_MAX,
        .attempts = BYTES("\x91\xa1x"),
        .body = BYTES("\x92\x01\xa1x"),
    };
}

static void expect_equal(const struct weir__record *wanted,
                         const struct weir__record *got)
{
    EXPECT_INT(wanted->counters.attempt, got->counters.attempt);
    EXPECT_INT(wanted->counters.failures, got->counters.failures);
    EXPECT_INT(wanted->counters.timeouts, got->counters.timeouts);
    EXPECT_INT(wanted->counters.crashes, got->counters.crashes);
    EXPECT_INT(wanted->counters.snoozes, got->counters.snoozes);
    expect_slice(wanted->retry, got->retry);
    expect_slice(wanted->url, got->url);
    expect_slice(wanted->headers, got->headers);
    expect_slice(wanted->reason, got->reason);
    expect_slice(wanted->error, got->error);
    EXPECT_INT(wanted->ttl_ms, got->ttl_ms);
    expect_slice(wanted->attempts, got->attempts);
    expect_slice(wanted->body, got->body);
}

static void expect_round_trip(const struct weir__record *record)
{
    struct weir__buf buf = {0};
    struct weir__record got;

    weir__record_write(&buf, record);
    EXPECT_TRUE(!buf.failed);
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&buf)));
    EXPECT_INT(WEIR_OK, weir__record_read(weir__buf_slice(&buf), &got));
    expect_equal(record, &got);
    weir__buf_fini(&buf);
}

TEST(a_plain_record_is_eight_bytes_and_the_body)
{
    struct weir__record record = {.counters = {1, 2, 3, 4, 5},
                                  .body = BYTES("\xa2hi")};
    struct weir__buf buf = {0};

    weir__record_write(&buf, &record);
    EXPECT_MEM("\x98\x01\x01\x02\x03\x04\x05\xc0\xa2hi", 11, buf.ptr, buf.len);
    weir__buf_fini(&buf);
}

TEST(an_empty_body_is_written_as_nil)
{
    struct weir__record record = {0};
    struct weir__buf buf = {0};

    weir__record_write(&buf, &record);
    EXPECT_MEM("\x98\x01\0\0\0\0\0\xc0\xc0", 9, buf.ptr, buf.len);
    weir__buf_fini(&buf);
}

TEST(what_is_written_is_read_back)
{
    struct weir__record full = full_record();
    struct weir__record record = {.body = BYTES("\xc0")};

    expect_round_trip(&full);
    expect_round_trip(&record);
    record.counters.snoozes = 127;
    expect_round_trip(&record);
    record.counters.attempt = 128;
    expect_round_trip(&record);
    record.ttl_ms = 1;
    expect_round_trip(&record);
    record.error = BYTES("x");
    expect_round_trip(&record);
}

TEST(a_record_cut_anywhere_is_refused)
{
    struct weir__record record = full_record();
    struct weir__buf buf = {0};

    weir__record_write(&buf, &record);
    for (size_t len = 0; len < buf.len; len++) {
        uint8_t *copy = exact_copy(weir__slice_of(buf.ptr, len));

        EXPECT_INT(WEIR_EMALFORMED, read_of(weir__slice_of(copy, len)));
        weir__mem_free(copy);
    }
    weir__buf_append(&buf, "\xc0", 1);
    EXPECT_INT(WEIR_EMALFORMED, read_of(weir__buf_slice(&buf)));
    weir__buf_fini(&buf);
}

TEST(a_refused_record_leaves_the_result_alone)
{
    struct weir__record record = {.ttl_ms = 42};

    EXPECT_INT(WEIR_EMALFORMED,
               weir__record_read((struct weir_slice){0}, &record));
    EXPECT_INT(WEIR_EMALFORMED,
               weir__record_read(BYTES("\x98\x01\0\0\0\0\0\xc0\xc1"), &record));
    EXPECT_INT(42, record.ttl_ms);
}

TEST(broken_records_are_refused)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
#define CASE(literal) {literal, sizeof(literal) - 1}
        CASE("\xc0"),                               /* no array */
        CASE("\x80"),                               /* a map */
        CASE("\x90"),                               /* no version */
        CASE("\x97\x01\0\0\0\0\0\xc0"),             /* no body */
        CASE("\x99\x01\0\0\0\0\0\xc0\xc0\xc0"),     /* one more */
        CASE("\x98\x00\0\0\0\0\0\xc0\xc0"),         /* version 0 */
        CASE("\x98\xff\0\0\0\0\0\xc0\xc0"),         /* version -1 */
        CASE("\x98\xa1"                             /* version "1" */
             "1\0\0\0\0\0\xc0\xc0"),                /* */
        CASE("\x98\x01\xff\0\0\0\0\xc0\xc0"),       /* attempt -1 */
        CASE("\x98\x01\0\xc0\0\0\0\xc0\xc0"),       /* failures nil */
        CASE("\x98\x01\0\0\0\0\xcf\0\0\0\1\0\0\0\0" /* snoozes 2^32 */
             "\xc0\xc0"),                           /* */
        CASE("\x98\x01\0\0\0\0\xcf\xff\0\0\0\0\0\0\0\xc0\xc0"),
        CASE("\x98\x01\0\0\0\0\0\x90\xc0"),                /* options array */
        CASE("\x98\x01\0\0\0\0\0\x81\xa3url\x01\xc0"),     /* url 1 */
        CASE("\x98\x01\0\0\0\0\0\x81\xa3url\xc0\xc0"),     /* url nil */
        CASE("\x98\x01\0\0\0\0\0\x81\xa6ttl_ms\xff\xc0"),  /* ttl -1 */
        CASE("\x98\x01\0\0\0\0\0\x81\xa6ttl_ms\xa1x\xc0"), /* ttl "x" */
        CASE("\x98\x01\0\0\0\0\0\x81\xa6ttl_ms"
             "\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xc0"),   /* ttl 2^64-1 */
        CASE("\x98\x01\0\0\0\0\0\x81\xa7headers\x90\xc0"),  /* an array */
        CASE("\x98\x01\0\0\0\0\0\xdf\xff\xff\xff\xff\xc0"), /* a bomb */
        CASE("\x98\x01\0\0\0\0\0\xc0\xdd\x0f\xff\xff\xff"), /* in the body */
#undef CASE
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        EXPECT_INT(WEIR_EMALFORMED,
                   read_of(weir__slice_of(cases[i].bytes, cases[i].len)));
}

TEST(a_newer_version_is_told_whatever_follows)
{
    EXPECT_INT(WEIR_ENEWER, read_of(BYTES("\x98\x02\0\0\0\0\0\xc0\xc0")));
    EXPECT_INT(WEIR_ENEWER, read_of(BYTES("\x9a\x02\xa1x")));
    EXPECT_INT(WEIR_ENEWER, read_of(BYTES("\x91\x02")));
    EXPECT_INT(WEIR_ENEWER, read_of(BYTES("\xdc\x00\x10\xcd\x01\x00\xc1")));
    EXPECT_INT(WEIR_ENEWER,
               read_of(BYTES("\x98\xcf\xff\xff\xff\xff\xff\xff\xff\xff")));
}

TEST(a_tick_has_a_version_of_its_own_and_its_schedule)
{
    const struct weir__record tick = {.cron = BYTES("when"),
                                      .body = BYTES("\x05")};
    struct weir__record record;
    struct weir__buf buf = {0};

    weir__record_write(&buf, &tick);
    expect_slice(BYTES("\x98\x02\0\0\0\0\0\x81\xa4"
                       "cron\xa4when\x05"),
                 weir__buf_slice(&buf));
    EXPECT_INT(WEIR_OK, weir__record_read(weir__buf_slice(&buf), &record));
    expect_slice(BYTES("when"), record.cron);
    buf.ptr[1] = 1; /* a job has none, whatever stands there */
    EXPECT_INT(WEIR_OK, weir__record_read(weir__buf_slice(&buf), &record));
    EXPECT_INT(0, record.cron.len);
    weir__buf_fini(&buf);
}

TEST(wider_encodings_than_needed_are_read)
{
    struct weir__record record;

    EXPECT_INT(WEIR_OK,
               weir__record_read(BYTES("\xdd\0\0\0\x08\xd3\0\0\0\0\0\0\0\x01"
                                       "\xcc\x07\xd1\0\x01\0\0\xce\0\0\0\x02"
                                       "\xde\0\x01\xd9\x03url\xda\0\x01u\x05"),
                                 &record));
    EXPECT_INT(7, record.counters.attempt);
    EXPECT_INT(1, record.counters.failures);
    EXPECT_INT(2, record.counters.snoozes);
    expect_slice(BYTES("u"), record.url);
    expect_slice(BYTES("\x05"), record.body);
}

TEST(unknown_options_are_ignored_and_the_first_of_equal_ones_counts)
{
    struct weir__record record;

    EXPECT_INT(WEIR_OK,
               weir__record_read(BYTES("\x98\x01\0\0\0\0\0\x85"
                                       "\x01\x02\xa3new\x92\xc0\x81\xc0\xc0"
                                       "\xa3url\xa1"
                                       "a\xa3url\xa1"
                                       "b\xa3urn\xa1"
                                       "c\xc3"),
                                 &record));
    expect_slice(BYTES("a"), record.url);
    expect_slice(BYTES("\xc3"), record.body);
}

TEST(attempts_that_are_no_array_are_none)
{
    struct weir__record record;

    EXPECT_INT(WEIR_OK, weir__record_read(BYTES("\x98\x01\0\0\0\0\0\x81\xa8"
                                                "attempts\x05\xc3"),
                                          &record));
    EXPECT_INT(0, record.attempts.len);
    expect_slice(BYTES("\xc3"), record.body);
}

TEST(the_body_alone_may_have_32_levels)
{
    uint8_t bytes[8 + 33] = {0x98, 1, 0, 0, 0, 0, 0, 0xc0};

    memset(bytes + 8, 0x91, 32);
    bytes[8 + 31] = 0xc0;
    EXPECT_INT(WEIR_OK, read_of(weir__slice_of(bytes, 8 + 32)));
    bytes[8 + 31] = 0x91;
    bytes[8 + 32] = 0xc0;
    EXPECT_INT(WEIR_EMALFORMED, read_of(weir__slice_of(bytes, 8 + 33)));
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"
#include "tests/harness/test.h"

static char texts[WEIR__SLOTS_MAX][160];

/* Ids and records of all lengths that ids can have. */
static void make_jobs(struct weir__pack_job jobs[WEIR__SLOTS_MAX])
{
    for (size_t i = 0; i < WEIR__SLOTS_MAX; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%0*zu", (int)(i % 128) + 1,
                       i);
        jobs[i].id = weir__slice_str(texts[i]);
        jobs[i].record = weir__slice_of(texts[i], i % 5);
    }
}

static void write_pack(struct weir__buf *buf, size_t count, bool has_ids)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX];

    make_jobs(jobs);
    weir__pack_write(buf, jobs, count, has_ids);
    EXPECT_TRUE(!buf->failed);
}

static void expect_back(size_t count, bool has_ids)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX];
    struct weir_slice ids[WEIR__SLOTS_MAX];
    struct weir__pack pack;
    struct weir__buf buf = {0};

    make_jobs(jobs);
    weir__pack_write(&buf, jobs, count, has_ids);
    EXPECT_INT(weir__pack_measure(jobs, count, has_ids).len, buf.len);
    EXPECT_INT(WEIR_OK, weir__pack_read(weir__buf_slice(&buf), &pack));
    EXPECT_INT(count, pack.count);
    EXPECT_INT(has_ids, pack.has_ids);
    EXPECT_INT(weir__pack_measure(jobs, count, has_ids).header_len,
               pack.header_len);
    if (has_ids)
        weir__pack_ids(&pack, ids);
    for (size_t i = 0; i < count; i++) {
        struct weir_slice record = weir__pack_record(&pack, i);

        EXPECT_MEM(jobs[i].record.ptr, jobs[i].record.len, record.ptr,
                   record.len);
        if (has_ids)
            EXPECT_TRUE(weir__slice_equal(jobs[i].id, ids[i]));
    }
    weir__buf_fini(&buf);
}

TEST(a_pack_of_any_size_reads_as_it_was_written)
{
    for (size_t count = 1; count <= WEIR__SLOTS_MAX; count++) {
        expect_back(count, true);
        expect_back(count, false);
    }
}

TEST(a_pack_has_the_documented_bytes)
{
    struct weir__pack_job jobs[2] = {
        {weir__slice_str("a"), weir__slice_str("one")},
        {weir__slice_str("bc"), weir__slice_str("x")}};
    static const uint8_t wanted[] =
        "W1\x01\x00\x01\x0e\x00\x00\x92\xa1"
        "a\xa2"
        "bc\x00\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00onex";
    struct weir__buf buf = {0};

    weir__pack_write(&buf, jobs, 2, true);
    EXPECT_MEM(wanted, sizeof(wanted) - 1, buf.ptr, buf.len);
    weir__buf_fini(&buf);
}

/* A copy in memory of exactly this size, so that a sanitizer sees a read
 * beyond it. */
static int read_copy(const uint8_t *bytes, size_t len, struct weir__pack *pack)
{
    uint8_t *copy = weir__mem_new(len);
    struct weir_slice ids[WEIR__SLOTS_MAX];
    volatile uint8_t sum = 0;
    int rc;

    EXPECT_TRUE(copy != NULL);
    if (len > 0)
        memcpy(copy, bytes, len);
    rc = weir__pack_read(weir__slice_of(copy, len), pack);
    if (rc == WEIR_OK) {
        if (pack->has_ids)
            weir__pack_ids(pack, ids);
        for (size_t i = 0; i < pack->count; i++) {
            struct weir_slice record = weir__pack_record(pack, i);

            for (size_t at = 0; at < record.len; at++)
                sum = (uint8_t)(sum + record.ptr[at]);
            for (size_t at = 0; pack->has_ids && at < ids[i].len; at++)
                sum = (uint8_t)(sum + ids[i].ptr[at]);
        }
    }
    weir__mem_free(copy);
    return rc;
}

TEST(a_pack_cut_off_anywhere_is_refused)
{
    struct weir__pack pack;

    for (int has_ids = 0; has_ids < 2; has_ids++) {
        struct weir__buf buf = {0};

        write_pack(&buf, 40, has_ids == 1);
        EXPECT_INT(WEIR_OK, read_copy(buf.ptr, buf.len, &pack));
        for (size_t len = 0; len < buf.len; len++)
            EXPECT_INT(WEIR_EMALFORMED, read_copy(buf.ptr, len, &pack));
        weir__buf_append(&buf, "", 1);
        EXPECT_INT(WEIR_EMALFORMED, read_copy(buf.ptr, buf.len, &pack));
        weir__buf_fini(&buf);
    }
}

TEST(random_changes_are_refused_or_read_within_bounds)
{
    uint64_t seed = 20260801;
    struct weir__pack pack;
    size_t refused = 0;

    for (int round = 0; round < 20000; round++) {
        struct weir__buf buf = {0};
        size_t changes = 1 + weir__random_next(&seed) % 4;

        write_pack(&buf, 1 + weir__random_next(&seed) % 40, round % 2 == 0);
        while (changes-- > 0) {
            size_t reach = weir__random_next(&seed) % 2 == 0 ? 16 : buf.len;

            buf.ptr[weir__random_next(&seed) % reach % buf.len] =
                (uint8_t)weir__random_next(&seed);
        }
        refused += read_copy(buf.ptr, buf.len, &pack) != WEIR_OK;
        weir__buf_fini(&buf);
    }
    EXPECT_TRUE(refused > 5000);
}

TEST(a_newer_layout_is_told_from_rubbish)
{
    static const uint8_t newer[] = "W2\0\0\0\0\0\0", rubbish[] = "X1\0\0\0\0\0";
    struct weir__pack pack;

    EXPECT_INT(WEIR_ENEWER, read_copy(newer, 8, &pack));
    EXPECT_INT(WEIR_EMALFORMED, read_copy(rubbish, 8, &pack));
}

static void expect_uint(uint64_t value, const char *wanted, size_t len)
{
    struct weir__buf buf = {0};

    weir__pack_uint(&buf, value);
    EXPECT_MEM(wanted, len, buf.ptr, buf.len);
    weir__buf_fini(&buf);
}

TEST(numbers_and_heads_are_valid_msgpack)
{
    struct weir__buf buf = {0};

    expect_uint(127, "\x7f", 1);
    expect_uint(128, "\xcd\x00\x80", 3);
    expect_uint(65535, "\xcd\xff\xff", 3);
    expect_uint(65536, "\xcf\x00\x00\x00\x00\x00\x01\x00\x00", 9);
    weir__pack_array(&buf, 15);
    weir__pack_array(&buf, 16);
    weir__pack_array(&buf, 65536);
    weir__pack_str(&buf, NULL, 0);
    EXPECT_MEM("\x9f\xdc\x00\x10\xdd\x00\x01\x00\x00\xa0", 10, buf.ptr,
               buf.len);
    weir__buf_fini(&buf);
}

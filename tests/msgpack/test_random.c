/* SPDX-License-Identifier: MIT */
/* Random bytes against msgpack-c: whatever it takes, weir's scan takes, and the
 * reverse. The inputs are too short to be nested deeper than 32. */
#include "adapters/msgpack/scan.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "adapters/msgpack/record.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

enum { RUNS = 200000, LEN_MAX = 24 };

/* WEIR_TEST_SEED repeats a run. */
static uint64_t seed_of_this_run(void)
{
    const char *given = getenv("WEIR_TEST_SEED");
    struct timespec now = {0};
    uint64_t seed;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* any number will do */
    seed = given != NULL
               ? strtoull(given, NULL, 10)
               : (uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec;
    printf("  seed %llu\n", (unsigned long long)seed);
    return seed | 1;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1d;
}

/* Half of the inputs are plain noise; the others prefer what makes long valid
 * values: small containers, small numbers, heads with a length. */
static size_t fill(uint8_t *bytes, uint64_t *state)
{
    size_t len = 1 + next_random(state) / 7 % LEN_MAX;
    bool is_noise = (next_random(state) >> 40 & 1) != 0;

    for (size_t i = 0; i < len; i++) {
        uint64_t random = next_random(state) >> 16;

        if (is_noise || random % 8 == 0)
            bytes[i] = (uint8_t)(random >> 8);
        else if (random % 8 < 3)
            bytes[i] = (uint8_t)(0x80 + (random >> 8) % 4 * 0x10 / 2 +
                                 (random >> 16) % 3);
        else if (random % 8 < 5)
            bytes[i] = (uint8_t)(0xc0 + (random >> 8) % 32);
        else
            bytes[i] = (uint8_t)((random >> 8) % 4);
    }
    return len;
}

/* What msgpack-c thinks of it; only for bytes that cannot make it allocate
 * much. */
static bool is_taken_by_msgpack_c(struct weir_slice bytes)
{
    msgpack_unpacked unpacked;
    size_t end = 0;
    msgpack_unpack_return result;

    msgpack_unpacked_init(&unpacked);
    result = msgpack_unpack_next(&unpacked, (const char *)bytes.ptr, bytes.len,
                                 &end);
    msgpack_unpacked_destroy(&unpacked);
    return result == MSGPACK_UNPACK_SUCCESS && end == bytes.len;
}

static bool may_be_a_bomb(struct weir_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.ptr[i] == 0xdd || bytes.ptr[i] == 0xdf)
            return true;
    return false;
}

TEST(check_agrees_with_msgpack_c_on_random_bytes)
{
    uint64_t state = seed_of_this_run();
    size_t taken = 0;

    for (int i = 0; i < RUNS; i++) {
        uint8_t noise[LEN_MAX];
        size_t len = fill(noise, &state);
        uint8_t *copy = exact_copy(weir__slice_of(noise, len));
        struct weir_slice bytes = weir__slice_of(copy, len);
        bool is_ok = weir__msgpack_check(bytes) == WEIR_OK;

        if (is_ok || !may_be_a_bomb(bytes))
            if (is_taken_by_msgpack_c(bytes) != is_ok)
                EXPECT_MEM("", 0, bytes.ptr, bytes.len);
        taken += is_ok ? 1 : 0;
        weir__mem_free(copy);
    }
    EXPECT_TRUE(taken > RUNS / 100); /* or it would prove little */
}

TEST(reading_unchecked_random_bytes_stays_inside_of_them)
{
    static const char *const paths[] = {"", "0", "1.0", "0.0.1", "\x01", "."};
    uint64_t state = seed_of_this_run();

    for (int i = 0; i < RUNS; i++) {
        uint8_t noise[LEN_MAX];
        size_t len = fill(noise, &state);
        uint8_t *copy = exact_copy(weir__slice_of(noise, len));
        struct weir_slice bytes = weir__slice_of(copy, len);
        struct weir_value value;

        EXPECT_TRUE(weir__msgpack_head(bytes, &value) <= len);
        for (size_t j = 0; j < sizeof(paths) / sizeof(paths[0]); j++) {
            weir__msgpack_find(bytes, paths[j], &value);
            if (value.type == WEIR_TYPE_STR || value.type == WEIR_TYPE_BIN ||
                value.type == WEIR_TYPE_EXT)
                EXPECT_TRUE(value.as.bytes.ptr >= copy &&
                            value.as.bytes.len <=
                                (size_t)(copy + len - value.as.bytes.ptr));
        }
        weir__mem_free(copy);
    }
}

TEST(reading_random_records_stays_inside_of_them)
{
    uint64_t state = seed_of_this_run();
    size_t taken = 0;

    for (int i = 0; i < RUNS; i++) {
        uint8_t noise[8 + LEN_MAX] = {0x98, 1, 0, 0, 0, 0, 0, 0xc0};
        size_t keep = next_random(&state) / 5 % 9;
        size_t len = keep + fill(noise + keep, &state);
        uint8_t *copy = exact_copy(weir__slice_of(noise, len));
        struct weir__record record;

        if (weir__record_read(weir__slice_of(copy, len), &record) == WEIR_OK) {
            EXPECT_TRUE(record.body.ptr + record.body.len == copy + len);
            EXPECT_INT(WEIR_OK, weir__msgpack_check(record.body));
            taken++;
        }
        weir__mem_free(copy);
    }
    EXPECT_TRUE(taken > RUNS / 1000);
}

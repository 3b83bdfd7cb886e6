/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/node.h"
#include "core/text.h"
#include "tests/harness/test.h"

static const int64_t NOON_MS = 1795000000000;

TEST(names_of_one_producer_grow_and_never_repeat)
{
    struct weir__seq_maker maker = {.producer = 77};
    char last[WEIR__SEQ_LEN] = {0}, next[WEIR__SEQ_LEN];

    for (int i = 0; i < 1000; i++) {
        weir__seq_next(&maker, NOON_MS + i / 300, next);
        EXPECT_TRUE(memcmp(last, next, sizeof(next)) < 0);
        memcpy(last, next, sizeof(next));
    }
}

TEST(names_do_not_go_back_with_the_clock)
{
    struct weir__seq_maker maker = {.producer = 1};
    char first[WEIR__SEQ_LEN], second[WEIR__SEQ_LEN];

    weir__seq_next(&maker, NOON_MS, first);
    weir__seq_next(&maker, NOON_MS - 3600000, second);
    EXPECT_TRUE(memcmp(first, second, sizeof(first)) < 0);
    weir__seq_next(&maker, -5, first);
    EXPECT_TRUE(memcmp(second, first, sizeof(first)) < 0);
}

TEST(names_of_two_producers_differ_at_the_same_moment)
{
    struct weir__seq_maker one = {.producer = 1}, other = {.producer = 2};
    char first[WEIR__SEQ_LEN], second[WEIR__SEQ_LEN];

    weir__seq_next(&one, NOON_MS, first);
    weir__seq_next(&other, NOON_MS, second);
    EXPECT_MEM(first, 8, second, 8);
    EXPECT_TRUE(memcmp(first, second, sizeof(first)) != 0);
}

static int read_bounds(const char *name, unsigned *ret_lo, unsigned *ret_hi)
{
    return weir__node_read(weir__slice_str(name), ret_lo, ret_hi);
}

TEST(a_node_is_taken_apart_into_its_slots)
{
    unsigned lo = 9, hi = 9;

    EXPECT_INT(WEIR_OK, read_bounds("abcdefghijkl0000", &lo, &hi));
    EXPECT_INT(0, lo);
    EXPECT_INT(0, hi);
    EXPECT_INT(WEIR_OK, read_bounds("abcdefghijkl80??", &lo, &hi));
    EXPECT_INT(128, lo);
    EXPECT_INT(255, hi);
}

TEST(what_is_no_node_is_refused)
{
    unsigned lo, hi;

    EXPECT_INT(WEIR_EMALFORMED, read_bounds("", &lo, &hi));
    EXPECT_INT(WEIR_EMALFORMED, read_bounds("abcdefghijkl000", &lo, &hi));
    EXPECT_INT(WEIR_EMALFORMED, read_bounds("abcdefghijkl00000", &lo, &hi));
    EXPECT_INT(WEIR_EMALFORMED, read_bounds("abcdefghijkl00/0", &lo, &hi));
    EXPECT_INT(WEIR_EMALFORMED, read_bounds("abcdefghijkl000@", &lo, &hi));
    EXPECT_INT(WEIR_EMALFORMED, read_bounds("abcdefghijkl0201", &lo, &hi));
}

TEST(a_made_id_says_where_its_job_was_put)
{
    struct weir__seq_maker maker = {.producer = 0xffffff};
    char seq[WEIR__SEQ_LEN], id[WEIR__MADE_ID_LEN + 1];
    const char *place;
    unsigned slot;

    weir__seq_next(&maker, NOON_MS, seq);
    for (unsigned i = 0; i < WEIR__SLOTS_MAX; i++) {
        weir__made_id(seq, i, id);
        EXPECT_TRUE(weir__made_id_read(weir__slice_str(id), &place, &slot));
        EXPECT_MEM(seq, sizeof(seq), place, sizeof(seq));
        EXPECT_INT(i, slot);
    }
}

TEST(made_ids_sort_by_slot)
{
    char one[WEIR__MADE_ID_LEN + 1], other[WEIR__MADE_ID_LEN + 1];

    weir__made_id("abcdefghijkl", 9, one);
    weir__made_id("abcdefghijkl", 16, other);
    EXPECT_STR("@abcdefghijkl09", one);
    EXPECT_TRUE(strcmp(one, other) < 0);
}

TEST(other_ids_are_no_places)
{
    static const char *const ids[] = {"",
                                      "@",
                                      "abcdefghijklm00",
                                      "@abcdefghijkl0",
                                      "@abcdefghijkl000",
                                      "@abcdefghijkl0g",
                                      "@abcdefghijkl0A",
                                      "@abcdefghijk.00"};
    const char *seq;
    unsigned slot;

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        EXPECT_TRUE(!weir__made_id_read(weir__slice_str(ids[i]), &seq, &slot));
}

TEST(names_of_ticks_are_told_by_their_letters)
{
    struct weir__seq_maker maker = {.producer = 0xffffff};
    char last[WEIR__SEQ_LEN] = {0}, next[WEIR__SEQ_LEN];

    for (uint32_t i = 0; i < 1000; i++) {
        weir__seq_next_tick(&maker, NOON_MS, next);
        EXPECT_TRUE(memcmp(last, next, sizeof(next)) < 0);
        EXPECT_MEM("zU", 2, next + 7, 2);
        EXPECT_TRUE(next[9] >= 'F');
        EXPECT_INT(NOON_MS + (int64_t)i, weir__seq_ms(next));
        maker.producer -= 1000;
        memcpy(last, next, sizeof(next));
    }
}

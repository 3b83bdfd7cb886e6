/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/plan.h"
#include "core/text.h"
#include "tests/harness/test.h"

/* Which jobs share a pack. */

enum { NOW_MS = 1000000000 };

static struct weir__items items;

static void forget(void)
{
    weir__items_fini(&items);
}

/* `count` jobs, the first due at `first_ms`, then one each `step_ms`. */
static void plan(size_t count, int64_t first_ms, int64_t step_ms,
                 size_t body_len, struct weir__planned_pack *ret_planned)
{
    static char body[4096];
    struct weir__record record = {.body = weir__slice_of(body, body_len)};

    weir__items_fini(&items);
    test_at_end(forget);
    for (size_t i = 0; i < count; i++) {
        struct weir__item *item =
            weir__items_append(&items, weir__slice_of("", 0), &record);

        EXPECT_TRUE(item != NULL);
        item->ms = first_ms + (int64_t)i * step_ms;
    }
    items.now_ms = NOW_MS;
    weir__planned_pack_plan(&items, 0, items.count, ret_planned);
}

static size_t planned_count(size_t count, int64_t first_ms, int64_t step_ms,
                            size_t body_len)
{
    struct weir__planned_pack planned;

    plan(count, first_ms, step_ms, body_len, &planned);
    EXPECT_TRUE(planned.is_mixed == (step_ms != 0 && planned.count > 1));
    return planned.count;
}

TEST(jobs_due_together_share_packs_of_256)
{
    EXPECT_INT(256, planned_count(300, 1000, 0, 10));
}

TEST(jobs_due_one_after_the_other_share_packs_of_64)
{
    EXPECT_INT(64, planned_count(300, 1000000, 1000, 10));
    EXPECT_INT(64, planned_count(300, 63 * 4, 1, 10));
}

/* The pack stays until its last job is gone. */
TEST(jobs_that_wait_for_different_long_times_share_packs_of_16)
{
    EXPECT_INT(16, planned_count(300, 1000, 1000, 10));
    EXPECT_INT(63, planned_count(300, 63 * 4 - 1, 1, 10));
}

/* It is fetched again for each of them. */
TEST(large_jobs_due_one_after_the_other_share_packs_of_16)
{
    EXPECT_INT(16, planned_count(300, 1000000, 1000, 2000));
}

TEST(no_job_is_more_than_49_days_behind_the_first_of_its_pack)
{
    EXPECT_INT(1, planned_count(3, 1000, INT64_C(1) << 32, 10));
    EXPECT_INT(2, planned_count(3, 1000, (INT64_C(1) << 32) - 1, 10));
}

static size_t planned_again(void)
{
    struct weir__planned_pack planned;

    weir__planned_pack_plan(&items, 0, items.count, &planned);
    return planned.count;
}

TEST(times_count_from_now)
{
    for (int64_t first = -5000; first <= 5000; first += 5000) {
        (void)planned_count(300, NOW_MS + first, 1, 10);
        for (size_t i = 0; i < items.count; i++)
            items.list[i].is_absolute = true;
        EXPECT_INT(first == 0 ? 16 : 64, planned_again());
    }
}

/* Whoever sends it on may be weir from before mixed packs. */
TEST(jobs_for_another_topic_are_never_in_a_mixed_pack)
{
    static char other;
    struct weir__planned_pack planned;

    plan(300, 1000000, 1000, 10, &planned);
    for (size_t i = 0; i < items.count; i++)
        items.list[i].away = (struct weir__delay_topic *)(void *)&other;
    weir__planned_pack_plan(&items, 0, items.count, &planned);
    EXPECT_INT(16, planned.count);
    EXPECT_TRUE(planned.is_scattered && !planned.is_mixed);
}

/* --- lanes ---------------------------------------------------------------- */

enum { URGENT = 1, HIGH, NORMAL, LOW };

static void begin(void)
{
    weir__items_fini(&items);
    test_at_end(forget);
    items.now_ms = NOW_MS;
}

static struct weir__item *append(const char *key, uint32_t priority, int64_t ms)
{
    struct weir__record record = {.key = weir__slice_str(key),
                                  .priority = priority};
    struct weir__item *item =
        weir__items_append(&items, weir__slice_of("", 0), &record);

    EXPECT_TRUE(item != NULL);
    item->ms = ms;
    return item;
}

static void append_some(size_t count, const char *key, uint32_t priority)
{
    while (count-- > 0)
        (void)append(key, priority, 1000);
}

/* How many jobs each pack has, in the order of their sizes; all of a pack of a
 * lane are due together. */
static const char *packs(void)
{
    static char text[256];
    struct weir__planned_pack planned;
    size_t counts[WEIR__SLOTS_MAX + 1] = {0}, len = 0;

    weir__items_sort(&items);
    for (size_t first = 0; first < items.count; first += planned.count) {
        weir__planned_pack_plan(&items, first, items.count, &planned);
        EXPECT_TRUE(items.list[first].lane_len == 0 || !planned.is_scattered);
        counts[planned.count]++;
    }
    text[0] = '\0';
    for (size_t count = WEIR__SLOTS_MAX; count > 0; count--)
        for (; counts[count] > 0 && len < sizeof(text); counts[count]--)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%zu",
                                    len == 0 ? "" : " ", count);
    return text;
}

TEST(jobs_of_one_lane_share_packs_of_256)
{
    begin();
    append_some(300, "k", 0);
    EXPECT_STR("256 44", packs());
}

TEST(jobs_of_one_lane_share_a_pack_whatever_comes_between)
{
    begin();
    for (int i = 0; i < 50; i++) {
        (void)append("a", 0, 1000);
        (void)append("b", 0, 1000);
        (void)append("", LOW, 1000);
        (void)append("", 0, 1000);
    }
    EXPECT_STR("50 50 50 50", packs());
}

TEST(jobs_of_two_lanes_share_no_pack)
{
    begin();
    append_some(5, "k", NORMAL);
    append_some(4, "k", HIGH);
    append_some(3, "", HIGH);
    append_some(2, "", 0);
    append_some(1, "kk", 0);
    append_some(2, "k", 0); /* which is normal */
    EXPECT_STR("7 4 3 2 1", packs());
}

TEST(lanes_of_one_hash_share_no_pack)
{
    begin();
    for (int i = 0; i < 3; i++) {
        append("a", 0, 1000)->lane_hash = 7;
        append("b", 0, 1000)->lane_hash = 7;
    }
    EXPECT_STR("1 1 1 1 1 1", packs());
}

TEST(jobs_of_one_lane_that_are_due_at_other_times_share_no_pack)
{
    begin();
    for (int i = 0; i < 10; i++)
        (void)append("k", 0, 1000 + i / 3);
    EXPECT_STR("3 3 3 1", packs());
}

TEST(jobs_of_one_lane_and_two_groups_share_no_pack)
{
    begin();
    for (int i = 0; i < 10; i++)
        append("k", 0, 1000)->group = i < 4;
    EXPECT_STR("6 4", packs());
}

TEST(jobs_of_a_lane_that_have_unique_keys_are_alone)
{
    begin();
    append_some(3, "k", 0);
    for (int i = 0; i < 3; i++) {
        struct weir__item *item = append("k", 0, 1000);

        item->key_at = item->lane_at;
        item->key_len = item->lane_len;
        item->group = 1;
    }
    EXPECT_STR("3 1 1 1", packs());
}

TEST(large_jobs_of_a_lane_share_smaller_packs)
{
    static char body[40000];
    struct weir__record record = {.key = weir__slice_str("k"),
                                  .body = weir__slice_of(body, sizeof(body))};
    struct weir__planned_pack planned;

    begin();
    for (int i = 0; i < 64; i++)
        EXPECT_TRUE(
            weir__items_append(&items, weir__slice_of("", 0), &record) != NULL);
    weir__planned_pack_plan(&items, 0, items.count, &planned);
    EXPECT_TRUE(planned.count > 1 && planned.count < 64);
}

/* Each turn of the lane fetches it again. */
TEST(jobs_of_a_lane_share_packs_of_16_or_of_16_kib)
{
    static char body[2000];
    struct weir__record record = {.key = weir__slice_str("k"),
                                  .body = weir__slice_of(body, sizeof(body))};

    begin();
    for (int i = 0; i < 40; i++)
        EXPECT_TRUE(
            weir__items_append(&items, weir__slice_of("", 0), &record) != NULL);
    EXPECT_STR("16 16 8", packs());
}

TEST(jobs_of_a_lane_stay_in_the_order_in_which_they_came)
{
    struct weir__item last = {0};

    begin();
    for (int i = 0; i < 300; i++)
        (void)append(i % 3 == 0 ? "a" : "b", 0, 1000);
    weir__items_sort(&items);
    for (size_t i = 0; i < items.count; i++) {
        const struct weir__item *item = &items.list[i];

        EXPECT_TRUE(item->lane_hash != last.lane_hash ||
                    item->index > last.index);
        last = *item;
    }
    EXPECT_STR("200 100", packs());
}

TEST(an_earlier_job_of_a_lane_comes_first)
{
    begin();
    for (int64_t ms = 5; ms > 0; ms--)
        (void)append("k", 0, 1000 * ms);
    weir__items_sort(&items);
    for (size_t i = 0; i < 5; i++)
        EXPECT_INT(1000 * ((int64_t)i + 1), items.list[i].ms);
}

TEST(a_pack_of_a_lane_has_ids_where_its_jobs_have)
{
    struct weir__record record = {.key = weir__slice_str("k")};
    struct weir__planned_pack planned;

    begin();
    append_some(3, "k", 0);
    weir__planned_pack_plan(&items, 0, items.count, &planned);
    EXPECT_TRUE(planned.count == 3 && !planned.has_ids);
    begin();
    for (int i = 0; i < 3; i++)
        EXPECT_TRUE(
            weir__items_append(&items, weir__slice_str("id"), &record) != NULL);
    weir__planned_pack_plan(&items, 0, items.count, &planned);
    EXPECT_TRUE(planned.count == 3 && planned.has_ids);
}

TEST(a_job_that_is_written_anew_goes_with_those_of_its_new_lane)
{
    struct weir__record record = {.key = weir__slice_str("b")};

    begin();
    append_some(3, "a", 0);
    append_some(3, "b", 0);
    EXPECT_TRUE(weir__items_rewrite(&items, &items.list[1], &record));
    EXPECT_STR("4 2", packs());
}

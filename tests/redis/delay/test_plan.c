/* SPDX-License-Identifier: MIT */
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

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/core/reactor_fixture.h"

/* Handlers of many jobs at once. */

static enum weir_verdict (*each)(struct weir_job *const *jobs, size_t count,
                                 enum weir_verdict *verdicts);
static char sizes[200]; /* of the batches, a blank behind each */
static int handler_of;  /* what `self` points to */
static struct weir_handle handles[8];
static int handle_count;

static enum weir_verdict handle_batch(void *self, struct weir_job *const *jobs,
                                      size_t count, enum weir_verdict *verdicts)
{
    size_t used = strlen(sizes);

    EXPECT_TRUE(self == &handler_of);
    (void)snprintf(sizes + used, sizeof(sizes) - used, "%zu ", count);
    for (size_t i = 0; i < count; i++) {
        struct weir_slice id = weir_job_id(jobs[i]);

        EXPECT_INT(WEIR_DONE, verdicts[i]);
        used = strlen(order);
        (void)snprintf(order + used, sizeof(order) - used, "%.*s ", (int)id.len,
                       (const char *)id.ptr);
    }
    return each == NULL ? WEIR_DONE : each(jobs, count, verdicts);
}

static void open_batches(uint32_t batch, uint32_t concurrency)
{
    struct weir__lane_options lane = lane_options("1s 1s");

    sizes[0] = '\0';
    order[0] = '\0';
    each = NULL;
    handle_count = 0;
    lane.run = NULL;
    lane.run_batch = handle_batch;
    lane.self = &handler_of;
    lane.options.batch = batch;
    lane.options.concurrency = concurrency;
    open_reactor(&lane);
}

static const char *state(const char *id)
{
    return mem_store_job(store, id)->state;
}

TEST(what_is_ready_goes_in_batches_of_at_most_so_many)
{
    open_batches(4, 256);
    add_many(10);
    (void)settle_down();
    EXPECT_STR("4 4 2 ", sizes);
    EXPECT_STR("j0 j1 j2 j3 j4 j5 j6 j7 j8 j9 ", order);
    EXPECT_STR("gone", state("j9"));
}

TEST(a_batch_of_one_is_one)
{
    open_batches(1, 256);
    add_many(2);
    (void)settle_down();
    EXPECT_STR("1 1 ", sizes);
}

TEST(a_batch_holds_jobs_of_one_group)
{
    static const char *const groups[] = {"a", "a", "b", "a", "a"};

    open_batches(8, 256);
    for (int i = 0; i < 5; i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "j%d", i);
        mem_store_add(store, id, 0, NULL, i == 4);
        mem_store_group(store, groups[i]);
    }
    (void)settle_down();
    EXPECT_STR("2 1 2 ", sizes);
}

static enum weir_verdict differ(struct weir_job *const *jobs, size_t count,
                                enum weir_verdict *verdicts)
{
    EXPECT_INT(4, count);
    verdicts[1] = weir_retry_after(jobs[1], 2500, "later");
    verdicts[2] = weir_fail(jobs[2], "never");
    verdicts[3] = (enum weir_verdict)77;
    return WEIR_EACH;
}

TEST(each_job_may_have_a_verdict_of_its_own)
{
    open_batches(4, 256);
    each = differ;
    add_many(4);
    (void)settle_down();
    EXPECT_STR("gone", state("j0"));
    EXPECT_INT(mem_store_now_ms(store) + 2500,
               mem_store_job(store, "j1")->due_ms);
    EXPECT_STR("never", mem_store_job(store, "j2")->error);
    EXPECT_STR("dead", state("j3")); /* 77 is no verdict */
}

static enum weir_verdict retry_all(struct weir_job *const *jobs, size_t count,
                                   enum weir_verdict *verdicts)
{
    (void)count;
    (void)verdicts;
    return weir_retry_after(jobs[0], 2500, "all of them");
}

TEST(one_verdict_is_for_all_with_its_delay_and_reason)
{
    open_batches(4, 256);
    each = retry_all;
    add_many(3);
    (void)settle_down();
    for (int i = 0; i < 3; i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "j%d", i);
        EXPECT_INT(mem_store_now_ms(store) + 2500,
                   mem_store_job(store, id)->due_ms);
        EXPECT_STR("all of them", mem_store_job(store, id)->error);
    }
}

static enum weir_verdict pend_all(struct weir_job *const *jobs, size_t count,
                                  enum weir_verdict *verdicts)
{
    (void)verdicts;
    for (size_t i = 0; i < count; i++)
        handles[handle_count++] = weir_job_handle(jobs[i]);
    return WEIR_PENDING;
}

TEST(a_batch_may_be_pending_and_is_no_larger_than_may_be)
{
    open_batches(4, 3);
    each = pend_all;
    add_many(4);
    (void)settle_down();
    EXPECT_STR("3 ", sizes); /* concurrency */
    EXPECT_STR("running", state("j0"));
    for (int i = 0; i < 3; i++)
        EXPECT_INT(WEIR_OK, weir_complete(handles[i], WEIR_DONE, 0, NULL));
    (void)settle_down();
    EXPECT_STR("3 1 ", sizes);
    EXPECT_STR("gone", state("j2"));
}

TEST(a_suspect_runs_alone)
{
    open_batches(4, 256);
    mem_store_add(store, "s0", 0, NULL, false);
    mem_store_suspect(store, 0);
    mem_store_add(store, "s1", 0, NULL, false);
    mem_store_suspect(store, 0);
    add_many(2);
    (void)settle_down();
    EXPECT_STR("gone", state("s1"));
    EXPECT_STR("1 2 1 ", sizes);
    EXPECT_STR("s0 j0 j1 s1 ", order);
}

TEST(a_job_that_is_too_late_is_not_in_its_batch)
{
    open_batches(4, 256);
    mem_store_add(store, "old", 0, NULL, false);
    mem_store_ttl(store, 100);
    mem_store_add(store, "young", 0, NULL, false);
    mem_store_advance(store, 1000);
    add_many(1);
    (void)settle_down();
    EXPECT_STR("young j0 ", order);
    EXPECT_STR("expired", mem_store_job(store, "old")->reason);
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* Jobs that runs add with their verdicts: how they go into calls. */

static void add_follows(struct weir__run *run, size_t count)
{
    const struct weir_slice here = {0};
    const struct weir_follow follow = {.delay_ms = 3600000};

    for (size_t i = 0; i < count; i++)
        EXPECT_INT(WEIR_OK, weir__follow_add(&run->follows, here, &follow,
                                             (struct weir_slice){0}));
}

/* Slots of the largest call that one of the topic's nodes asks for. */
static size_t largest(const struct weir__store_topic *base)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)base; /* its first member */
    size_t most = 0;

    for (const struct weir__claimed_node *node = topic->touched; node != NULL;
         node = node->next)
        if (node->verdicts + node->endings > most)
            most = node->verdicts + node->endings;
    return most;
}

TEST(a_node_whose_runs_add_many_jobs_is_settled_in_several_calls)
{
    struct host *host = host_open("w1");

    for (int i = 0; i < 256; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == 256);
    EXPECT_INT(256, host_claim(host, 1000, 60000));
    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);

        add_follows(run, run->slot % 2 == 0 ? WEIR__FOLLOWS_MAX : 0);
        run->outcome =
            run->slot % 3 == 0 ? WEIR__OUTCOME_RETRY : WEIR__OUTCOME_DONE;
        run->delay_ms = 3600000;
        host->store->ops->settle(host->topic, run);
    }
    EXPECT_TRUE(largest(host->topic) <= WEIR__SLOTS_PER_CALL);
    EXPECT_TRUE(largest(host->topic) > WEIR__SLOTS_PER_CALL - 67);
    host_await_settled(host);
    EXPECT_INT(256, host->settled);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(256 + 128 * WEIR__FOLLOWS_MAX, host->stats.added_total);
    EXPECT_INT(86, host->stats.retried_total);
    EXPECT_INT(170, host->stats.done_total);
    EXPECT_INT(86 + 128 * WEIR__FOLLOWS_MAX, host->stats.scheduled);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:lease"));
}

/* 16 runs with 63 jobs each fill a call, so the next verdict needs another. */
TEST(a_verdict_beyond_a_full_call_goes_into_another_one)
{
    enum { RUNS = 17, JOBS = WEIR__SLOTS_PER_CALL / (RUNS - 1) - 1 };
    struct host *host = host_open("w1");

    for (int i = 0; i < RUNS; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == RUNS);
    EXPECT_INT(RUNS, host_claim(host, RUNS, 60000));
    while (host->runs != NULL) {
        struct weir__run *run = host_take(host);

        add_follows(run, host->runs != NULL ? JOBS : 0);
        host_settle(host, run, WEIR__OUTCOME_DONE);
    }
    EXPECT_INT(WEIR__SLOTS_PER_CALL, largest(host->topic));
    host_await_settled(host);
    EXPECT_INT(RUNS, host->settled);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(RUNS, host->stats.done_total);
    EXPECT_INT((RUNS - 1) * JOBS, host->stats.scheduled);
}

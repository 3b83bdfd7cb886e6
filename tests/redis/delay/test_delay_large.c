/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* Verdicts that write back more than the connection takes at once: all of them
 * are told, none is refused, and nobody blames the server. */

enum { JOBS = 80 };

static uint8_t bytes[1000000];

/* One binary value. */
static struct weir_slice large_body(void)
{
    size_t len = sizeof(bytes) - 5;

    bytes[0] = 0xc6;
    bytes[2] = (uint8_t)(len >> 16);
    bytes[3] = (uint8_t)(len >> 8);
    bytes[4] = (uint8_t)len;
    return weir__slice_of(bytes, sizeof(bytes));
}

static void add_large(struct host *host)
{
    const struct weir__record record = {.body = large_body()};

    for (int i = 0; i < JOBS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "large-%d", i);
        host_add_record(host, id, &record, 0);
        AWAIT(host->added == i + 1);
    }
}

static void claim_some(struct host *host, size_t jobs)
{
    host->arrived = 0;
    while (host->arrived < jobs)
        (void)host_claim(host, 100, 60000);
}

static void expect_settled(struct host *host, size_t verdicts)
{
    host_await_settled(host);
    EXPECT_INT(verdicts, host->settled);
    EXPECT_INT(0, host->refused);
    EXPECT_TRUE(strstr(world_log, "did not keep") == NULL);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, host->stats.running);
}

TEST(large_jobs_are_retried_in_one_turn)
{
    struct host *host = host_open("w1");

    add_large(host);
    claim_some(host, JOBS);
    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        run->delay_ms = 1;
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    expect_settled(host, JOBS);
    EXPECT_INT(JOBS, host->stats.retried_total);
    claim_some(host, JOBS);
    EXPECT_INT(sizeof(bytes), host->runs->record.body.len);
}

TEST(large_jobs_die_in_one_turn)
{
    char dead[32];

    (void)snprintf(dead, sizeof(dead), "max_dead=%d", JOBS);
    struct host *host = host_open("w1");
    host_serve(host, dead);
    add_large(host);
    claim_some(host, JOBS);
    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        run->record.reason = weir__slice_str("failed");
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    expect_settled(host, JOBS);
    EXPECT_INT(JOBS, host->stats.dead);
}

TEST(the_runs_of_one_node_add_large_jobs)
{
    const struct weir_follow follow = {.delay_ms = 3600000,
                                       .body = large_body()};
    const struct weir_slice here = {0};

    struct host *host = host_open("w1");
    host_add_numbered(host, 0, JOBS, 0);
    AWAIT(host->added == JOBS);
    claim_some(host, JOBS);
    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        EXPECT_INT(WEIR_OK, weir__follow_add(&run->follows, here, &follow,
                                             (struct weir_slice){0}));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    expect_settled(host, JOBS);
    EXPECT_INT(JOBS, host->stats.done_total);
    EXPECT_INT(JOBS, host->stats.scheduled);
}

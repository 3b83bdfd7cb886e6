/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"

/* Events that the server does not take back, since they are larger than it
 * allows: they are dropped, and no other event. */

enum { MIB = 1024 * 1024 };

static uint8_t large[MIB - 40];

static void add_large(struct host *host, const char *group)
{
    const uint32_t len = sizeof(large) - 5;
    const struct weir__record record = {.body = {large, sizeof(large)}};
    const struct weir__new_job job = {.group = weir__slice_str(group),
                                      .record = &record};
    int added = host->added;

    large[0] = 0xc6; /* one binary value */
    for (int i = 1; i <= 4; i++)
        large[i] = (uint8_t)(len >> (32 - 8 * i));
    EXPECT_INT(WEIR_OK,
               host->store->ops->add(host->topic, &job, host_added, host));
    AWAIT(host->added == added + 1);
}

static void claim(struct host *host, size_t events)
{
    size_t count = 0;

    for (int i = 0; i < 100 && count < events; i++)
        count += host_claim(host, 300, 3600000);
    EXPECT_INT(events, count);
}

static void limit(int bytes)
{
    EXPECT_STR("OK", redis_text(proc,
                                "CONFIG SET proto-max-bulk-len %d "
                                "client-query-buffer-limit %d",
                                bytes, bytes));
}

TEST(an_event_that_the_server_does_not_take_back_is_dropped_alone)
{
    struct host *host = bounded_open("w1", &weir__options_default);

    event_add(host, "a", 1);
    add_large(host, "a");
    events_add(host, "a", 3, 3);
    event_add(host, "b", 4);
    limit(MIB);
    claim(host, 4);
    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        run->record.counters.attempt = 1;
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(4, host->settled);
    EXPECT_CONTAINS("an event is dropped", world_log);
    EXPECT_INT(1, bounded_count("failed"));
    EXPECT_INT(3, bounded_count("retried"));
    limit(64 * MIB);
    claim(host, 3);
    EXPECT_INT(1, host->runs->record.counters.attempt);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    bounded_walk();
}

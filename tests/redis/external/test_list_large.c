/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"

/* Entries of lists and streams whose verdict is larger than the server takes:
 * they alone die, with the reason, and are there when it takes more. */

enum { MIB = 1024 * 1024 };

static char text[MIB];

/* So many bytes less than 1 MiB. */
static const char *large_text(size_t less)
{
    memset(text, 'x', sizeof(text) - less);
    text[0] = text[sizeof(text) - less - 1] = '"';
    text[sizeof(text) - less] = '\0';
    return text;
}

static void limit(int bytes)
{
    EXPECT_STR("OK", redis_text(proc,
                                "CONFIG SET proto-max-bulk-len %d "
                                "client-query-buffer-limit %d",
                                bytes, bytes));
}

static void expect_one_dead(struct host *host, size_t verdicts)
{
    host_await_settled(host);
    EXPECT_INT(verdicts, host->settled);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.dead);
    EXPECT_INT(0, host->stats.running);
    EXPECT_INT(1, host_dead(host, 10));
    EXPECT_CONTAINS("proto-max-bulk-len", host->text[1]);
    EXPECT_STR("failed", host->text[2]);
    EXPECT_CONTAINS("a job dies", world_log);
}

/* The server takes more: the entry is as it was. */
static void expect_whole(struct host *host)
{
    limit(64 * MIB);
    EXPECT_INT(WEIR_OK, host_requeue(host, ""));
    EXPECT_INT(1, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->runs->record.body.len > MIB - 300);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

TEST(an_entry_that_cannot_go_to_another_topic_is_dead_alone)
{
    struct host *host = host_open_kind("w1", "list");

    host_serve(host, "on_retry=later");
    limit(MIB);
    EXPECT_INT(3, redis_int(proc, "RPUSH t 1 %s 2", large_text(60)));
    EXPECT_INT(3, host_claim(host, 10, 60000));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    expect_one_dead(host, 3);
    AWAIT(redis_int(proc, "ZCARD weir:{later}:wait") > 0 &&
          redis_int(proc, "EXISTS weir:{t}:relay") == 0);
    expect_whole(host);
}

TEST(an_entry_of_a_stream_whose_bytes_do_not_come_back_is_kept)
{
    struct host *host = host_open_kind("w1", "stream");

    host_serve(host, "after=delete");
    EXPECT_STR("5-1", redis_text(proc, "XADD t 5-1 a %s", large_text(1)));
    EXPECT_STR("5-2", redis_text(proc, "XADD t 5-2 body 1"));
    limit(MIB);
    EXPECT_INT(2, host_claim(host, 10, 60000));
    host_settle(host, host_take(host), WEIR__OUTCOME_DEAD);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    expect_one_dead(host, 2);
    EXPECT_INT(0, redis_int(proc, "XLEN t"));
    expect_whole(host);
}

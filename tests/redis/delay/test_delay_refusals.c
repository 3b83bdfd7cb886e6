/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* A server that is there and takes no writes: what is asked fails with its
 * sentence, which is logged once, and goes on when the server does. */

static int times_logged(const char *text)
{
    int count = 0;

    for (const char *at = strstr(world_log, text); at != NULL;
         at = strstr(at + 1, text))
        count++;
    return count;
}

static void ask_claim(struct host *host)
{
    /* time is the subject */
    const struct weir__claim claim = {.room = 1, .lease_ms = 1000};
    int before = host->claims;

    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    AWAIT(host->claims == before + 1);
}

static void expect_refusals(struct host *host, const char *code)
{
    char text[64];

    for (int i = 0; i < 3; i++) {
        host_add(host, "late", 0);
        AWAIT(host->failed == i + 1);
        EXPECT_INT(WEIR_ESERVER, host->last_code);
        ask_claim(host);
        EXPECT_INT(WEIR_ESERVER, host->claimed.code);
    }
    (void)snprintf(text, sizeof(text), ": %s ", code); /* fits */
    EXPECT_INT(1, times_logged(text));
    EXPECT_INT(1, times_logged("see weir doctor"));
}

static void expect_work(struct host *host)
{
    host_add(host, "late", 0);
    AWAIT(host->added == 1);
    AWAIT(host_claim(host, 10, 1000) == 1); /* time is the subject */
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

/* --- verdicts ------------------------------------------------------------ */

/* Whoever sees that a server takes writes again leaves the leases alone for
 * half of one. For the other worker that is longer than its verdicts need. */
enum { OTHER_MS = 20000 };

/* One of each kind of verdict, refused for three leases. Somebody else would
 * take their jobs all the while. */
static void hold_verdicts(struct host *host, struct host *other)
{
    static const enum weir__outcome outcomes[] = {
        WEIR__OUTCOME_DONE, WEIR__OUTCOME_RETRY, WEIR__OUTCOME_DEAD};
    int64_t start_ns = world_clock(NULL);

    for (int i = 0; i < 3; i++) {
        struct weir__run *run = host_take(host);

        run->delay_ms = 60000;
        run->record.reason = weir__slice_str("failed");
        host_settle(host, run, outcomes[i]);
    }
    while (world_clock(NULL) - start_ns < INT64_C(1500000000)) {
        EXPECT_INT(0, host_claim(other, 10, OTHER_MS));
        EXPECT_INT(0, host_claim(host, 10, 500)); /* time is the subject */
    }
    EXPECT_INT(3, host->store->ops->unsettled(host->topic));
}

static void expect_verdicts_once(struct host *host, struct host *other)
{
    while (host->store->ops->unsettled(host->topic) > 0)
        EXPECT_INT(0, host_claim(other, 10, OTHER_MS));
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, host_claim(other, 10, OTHER_MS));
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(1, host->stats.done_total);
    EXPECT_INT(1, host->stats.retried_total);
    EXPECT_INT(1, host->stats.failed_total);
    EXPECT_INT(0, host->stats.crashed_total);
}

static void claim_three(struct host *host)
{
    host_add_numbered(host, 0, 3, 0);
    AWAIT(host->added == 3);
    EXPECT_INT(3, host_claim(host, 10, 500)); /* time is the subject */
}

TEST(verdicts_that_lack_replicas_are_told_once_there_are_some)
{
    struct host *host = host_open("w1"), *other = host_open("w2");

    claim_three(host);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET min-replicas-to-write 1"));
    hold_verdicts(host, other);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET min-replicas-to-write 0"));
    expect_verdicts_once(host, other);
}

TEST(a_server_without_its_replicas_refuses_and_goes_on_with_them)
{
    struct host *host = host_open("w1");

    EXPECT_STR("OK", redis_text(proc, "CONFIG SET min-replicas-to-write 1"));
    expect_refusals(host, "NOREPLICAS");
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET min-replicas-to-write 0"));
    expect_work(host);
}

/* Its snapshot cannot take the place of a directory. */
static void have_snapshots_fail(void)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/taken.rdb", redis_dir(proc));
    EXPECT_INT(0, mkdir(path, 0700));
    EXPECT_STR("OK", redis_text(proc, "SET something here"));
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET save %s", "3600 1"));
    EXPECT_CONTAINS("started", redis_text(proc, "BGSAVE"));
    AWAIT(strstr(redis_text(proc, "INFO persistence"),
                 "rdb_last_bgsave_status:err") != NULL);
}

TEST(a_server_that_cannot_save_refuses_and_goes_on_when_it_can)
{
    const char *const args[] = {"--dbfilename", "taken.rdb", NULL};
    const struct redis_options options = {.args = args};
    (void)world_open(&options);
    struct host *host = host_open("w1");

    AWAIT(host->is_up);
    have_snapshots_fail();
    expect_refusals(host, "MISCONF");
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET save %s", ""));
    expect_work(host);
}

TEST(verdicts_are_told_once_a_server_can_save_again)
{
    const char *const args[] = {"--dbfilename", "taken.rdb", NULL};
    const struct redis_options options = {.args = args};
    (void)world_open(&options);
    struct host *host = host_open("w1"), *other = host_open("w2");

    claim_three(host);
    have_snapshots_fail();
    hold_verdicts(host, other);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET save %s", ""));
    expect_verdicts_once(host, other);
}

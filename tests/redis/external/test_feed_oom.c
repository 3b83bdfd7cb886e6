/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/redis/store/store_fixture.h"

/* Lists and streams when memory runs out, at each allocation in turn: no entry
 * is lost, none counts twice, and each request is answered or refused. */

enum { SWEEP = 60, LEASE_MS = 100 }; /* time is the subject */

static int requests, answers;

static void settle_all(struct host *host, int number)
{
    static const enum weir__outcome outcomes[] = {
        WEIR__OUTCOME_DONE, WEIR__OUTCOME_RETRY, WEIR__OUTCOME_DEAD,
        WEIR__OUTCOME_RETURN};

    while (host->runs != NULL)
        host_settle(host, host_take(host), outcomes[number++ % 4]);
}

static void push(bool is_stream)
{
    for (int i = 0; i < 4; i++)
        EXPECT_TRUE(redis_text(proc, is_stream ? "XADD t * body 7"
                                               : "RPUSH t 7") != NULL);
}

static void claim_and_settle(struct host *host, int number)
{
    struct weir__claim claim = {.room = 10, .lease_ms = LEASE_MS};
    int claims = host->claims;

    oom_after(number);
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    world_turns(3);
    host->store->ops->renew(host->topic, LEASE_MS);
    settle_all(host, number);
    world_turns(3);
    oom_off();
    AWAIT(host->claims > claims);
    settle_all(host, number);
    host_await_settled(host);
}

static uint64_t ended(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_stats(host));
    return host->stats.done_total + host->stats.failed_total +
           host->stats.retried_total;
}

/* A worker that starts sends on what others recorded two seconds ago. */
static void send_what_is_left(bool is_stream)
{
    struct host *other = host_open_kind("w2", is_stream ? "stream" : "list");

    EXPECT_INT(0, host_claim(other, 100, LEASE_MS));
    AWAIT(other->store->ops->unsettled(other->topic) == 0);
    host_close(other);
}

static void sweep(bool is_stream)
{
    struct host *host = host_open_kind("w1", is_stream ? "stream" : "list");
    uint64_t entries = 0;

    host_serve(host, "on_retry=later");
    for (int number = 0; number < SWEEP; number++) {
        push(is_stream);
        entries += 4;
        claim_and_settle(host, number);
    }
    while (ended(host) < entries) {
        (void)host_claim(host, 100, LEASE_MS);
        host_settle_all(host, WEIR__OUTCOME_DONE);
        host_await_settled(host);
    }
    while (host->stats.relaying > 0) {
        send_what_is_left(is_stream);
        EXPECT_INT(WEIR_OK, host_stats(host));
    }
    EXPECT_INT(entries, ended(host));
    EXPECT_INT(entries, host->stats.added_total);
    EXPECT_INT(host->stats.retried_total,
               atoll(redis_text(proc, "HGET weir:{later}:meta added")));
    EXPECT_INT(0, host->stats.running + host->stats.scheduled);
}

TEST(a_list_loses_nothing_when_memory_runs_out)
{
    sweep(false);
}

TEST(a_stream_loses_nothing_when_memory_runs_out)
{
    sweep(true);
}

/* --- requests ----------------------------------------------------------- */

static void on_added(int code, const char *id, void *arg)
{
    (void)code;
    (void)id;
    (void)arg;
    answers++;
}

static void on_count(int code, uint64_t count, void *arg)
{
    (void)code;
    (void)count;
    (void)arg;
    answers++;
}

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    (void)code;
    (void)arg;
    answers += job == NULL;
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)code;
    (void)stats;
    (void)arg;
    answers++;
}

TEST(each_request_is_answered_once_or_refused)
{
    static const uint8_t seven[] = {7};
    struct host *host = host_open_kind("w1", "list");
    const struct weir__store_ops *ops = host->store->ops;
    struct weir__record record = {.body = {seven, 1}};
    struct weir__new_job job = {.record = &record};

    for (int number = 0; number < 30; number++) {
        oom_after(number);
        requests += ops->add(host->topic, &job, on_added, NULL) == WEIR_OK;
        requests += ops->stats(host->topic, on_stats, NULL) == WEIR_OK;
        requests += ops->list(host->topic,
                              &(const struct weir__list){
                                  .state = WEIR_JOB_READY, .limit = 9},
                              on_shown, NULL) == WEIR_OK;
        requests += ops->requeue(host->topic, weir__slice_str(NULL), on_count,
                                 NULL) == WEIR_OK;
        requests +=
            ops->purge(host->topic, WEIR__PURGE_ALL, on_count, NULL) == WEIR_OK;
        world_turns(3);
        oom_off();
        AWAIT(answers == requests);
    }
    EXPECT_TRUE(requests > 30);
    world_turns(3);
    EXPECT_INT(requests, answers);
    EXPECT_TRUE(redis_int(proc, "EXISTS weir:{t}:meta") == 1);
}

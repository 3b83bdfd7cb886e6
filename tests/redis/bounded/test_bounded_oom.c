/* SPDX-License-Identifier: MIT */
#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/redis/bounded/bounded_fixture.h"

/* Bounded topics when memory runs out, at each allocation in turn: no event is
 * lost, none counts twice, and each request is answered or refused. */

enum { SWEEP = 60, LEASE_MS = 100 }; /* time is the subject */

static int requests, answers, added;

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    answers++;
    added += code == WEIR_OK;
}

static void on_count(int code, uint64_t count, void *arg)
{
    (void)code;
    (void)count;
    (void)arg;
    answers++;
}

static void on_listed(int code, const struct weir_job_info *job, void *arg)
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

static void add(struct host *host, int number)
{
    static const char *const groups[] = {"a", "b", "c"};
    static const uint8_t seven[] = {7};
    struct weir__record record = {.body = {seven, 1}};
    struct weir__new_job job = {.group = weir__slice_str(groups[number % 3]),
                                .record = &record};

    requests +=
        host->store->ops->add(host->topic, &job, on_added, NULL) == WEIR_OK;
}

static void settle_all(struct host *host, int number)
{
    static const enum weir__outcome outcomes[] = {
        WEIR__OUTCOME_DONE, WEIR__OUTCOME_RETRY, WEIR__OUTCOME_DEAD,
        WEIR__OUTCOME_RETURN};

    while (host->runs != NULL)
        host_settle(host, host_take(host), outcomes[number++ % 4]);
}

static void one_round(struct host *host, int number)
{
    struct weir__claim claim = {.room = 10, .lease_ms = LEASE_MS};
    int claims = host->claims;

    oom_after(number);
    for (int i = 0; i < 4; i++)
        add(host, number + i);
    world_turns(3);
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    world_turns(3);
    host->store->ops->renew(host->topic, LEASE_MS);
    settle_all(host, number);
    world_turns(3);
    oom_off();
    AWAIT(host->claims > claims && answers == requests);
    settle_all(host, number);
    host_await_settled(host);
    bounded_walk();
}

TEST(nothing_is_lost_when_memory_runs_out)
{
    struct weir__options options = weir__options_default;
    struct host *host;

    host = bounded_open("w1", &options);
    for (int number = 0; number < SWEEP; number++)
        one_round(host, number);
    EXPECT_TRUE(requests > SWEEP);
    EXPECT_INT(added, bounded_count("added"));
    while (bounded_count("waiting") + bounded_count("running") > 0) {
        (void)host_claim(host, 100, LEASE_MS);
        host_settle_all(host, WEIR__OUTCOME_DONE);
        host_await_settled(host);
    }
    EXPECT_INT(added, bounded_count("done") + bounded_count("failed"));
    bounded_walk();
}

TEST(each_request_is_answered_once_or_refused)
{
    struct weir__options options = weir__options_default;
    struct host *host;

    host = bounded_open("w1", &options);
    for (int number = 0; number < 20; number++) {
        const struct weir__store_ops *ops = host->store->ops;

        oom_after(number);
        for (int i = 0; i < 100; i++)
            add(host, i);
        requests += ops->stats(host->topic, on_stats, NULL) == WEIR_OK;
        requests += ops->list(host->topic,
                              &(const struct weir__list){
                                  .state = WEIR_JOB_READY, .limit = 50},
                              on_listed, NULL) == WEIR_OK;
        requests +=
            ops->purge(host->topic, WEIR__PURGE_ALL, on_count, NULL) == WEIR_OK;
        world_turns(3);
        oom_off();
        AWAIT(answers == requests);
    }
    EXPECT_TRUE(requests > 20);
    world_turns(3);
    EXPECT_INT(requests, answers);
}

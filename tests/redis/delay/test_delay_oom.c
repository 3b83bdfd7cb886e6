/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "adapters/redis/store/store.h"
#include "core/mem.h"
#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/redis/store/line_fixture.h"

/* The delay store when memory runs out, at each of its allocations in turn. */

TEST(opening_with_sentinels_survives_any_allocation_failure)
{
    static const struct weir__store_events events;
    struct weir__redis_url url;
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct weir__redis_options options = {
        .loop = loop, .url = &url, .worker = "w1", .events = &events};
    struct weir__store *store;
    int rc = WEIR_ENOMEM, failures = 0;

    EXPECT_INT(WEIR_OK,
               weir__redis_url_parse(
                   "redis+sentinel://127.0.0.1:1,127.0.0.1:2/n", &url, NULL));
    options.clock = world_clock;
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir__redis_open(&options, &store);
        oom_off();
        failures += rc == WEIR_ENOMEM;
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failures > 3);
    store->ops->close(store);
    ev_loop_destroy(loop);
}

TEST(opening_survives_any_allocation_failure)
{
    static const struct weir__store_events events;
    struct weir__redis_url url;
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct weir__redis_options options = {
        .loop = loop, .url = &url, .worker = "w1", .events = &events};
    static const char *const kinds[] = {"delay", "list",       "stream",
                                        "sync",  "concurrent", "bounded"};
    struct weir__store *store;
    int rc = WEIR_ENOMEM;

    EXPECT_INT(WEIR_OK, weir__redis_url_parse("unix:///tmp/none", &url, NULL));
    options.clock = world_clock;
    for (int n = 0; rc == WEIR_ENOMEM; n++) {
        oom_after(n);
        rc = weir__redis_open(&options, &store);
        oom_off();
    }
    EXPECT_INT(WEIR_OK, rc);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct weir__store_topic_options topic = {.name = weir__slice_str("t"),
                                                  .kind = kinds[i]};
        struct weir__store_topic *opened;

        rc = WEIR_ENOMEM;
        for (int n = 0; rc == WEIR_ENOMEM; n++) {
            oom_after(n);
            rc = store->ops->topic_open(store, &topic, &opened);
            oom_off();
        }
        EXPECT_INT(WEIR_OK, rc);
        EXPECT_STR(kinds[i], store->ops->kind_name(opened));
    }
    store->ops->close(store);
    ev_loop_destroy(loop);
}

static int answers, fine;

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    answers++;
    fine += code == WEIR_OK;
}

/* Adds a few jobs of both kinds with memory for `n` allocations, and flushes;
 * returns how many were taken. */
static int add_some(struct host *host, int n)
{
    static const struct weir__record record;
    int taken = 0;

    oom_after(n);
    for (int i = 0; i < 40; i++) {
        struct weir__new_job job = {.record = &record, .delay_ms = i % 3};

        taken +=
            host->store->ops->add(host->topic, &job, on_added, NULL) == WEIR_OK;
    }
    host->store->ops->flush(host->store);
    oom_off();
    return taken;
}

TEST(every_add_that_was_taken_is_answered_whatever_fails)
{
    int taken = 0;

    struct host *host = host_open("w1");
    host_add(host, "first", 0); /* from now on names can be made */
    AWAIT(host->added == 1);
    for (int n = 0; n < 40; n++) {
        taken += add_some(host, n);
        AWAIT(answers == taken);
    }
    EXPECT_TRUE(fine > 0 && fine < taken);
}

static uint64_t done_count(struct host *host)
{
    (void)host_claim(host, 100, 60000);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, host_stats(host));
    return host->stats.done_total;
}

TEST(jobs_survive_a_worker_without_memory)
{
    /* time is the subject */
    struct weir__claim claim = {.room = 100, .lease_ms = 50};

    struct host *host = host_open("w1");
    host_add_numbered(host, 0, 20, 0);
    AWAIT(host->added == 20);
    for (int n = 0; n < 30; n++) {
        int claims = host->claims;
        size_t before = host->arrived + host->lost;

        EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
        oom_after(n);
        host->store->ops->flush(host->store);
        world_turns(1);
        while (host->runs != NULL) {
            host->runs->delay_ms = 0;
            host_settle(host, host_take(host), WEIR__OUTCOME_RETRY);
        }
        host->store->ops->flush(host->store);
        oom_off();
        AWAIT(host->claims > claims);
        AWAIT(host->arrived + host->lost == before + host->claimed.count);
        host_settle_all(host, WEIR__OUTCOME_RETRY);
    }
    AWAIT(done_count(host) == 20);
    EXPECT_INT(0, host->stats.running + host->stats.ready);
}

/* Whoever waits for an idle topic would wait for ever. */
TEST(each_verdict_that_was_taken_is_answered_whatever_fails)
{
    struct host *host = host_open("w1");
    for (int n = 0; n < 8; n++) {
        host_add(host, NULL, 0);
        AWAIT(host->added == n + 1);
        while (host->runs == NULL)
            (void)host_claim(host, 1, 3600000);
        host_settle_all(host, WEIR__OUTCOME_DONE);
        oom_after(n);
        host->store->ops->flush(host->store);
        oom_off();
        AWAIT(host->settled == (size_t)n + 1);
        EXPECT_INT(0, host->store->ops->unsettled(host->topic));
    }
    EXPECT_TRUE(host->refused > 0);
    world_close();
}

/* Settles what was claimed, with 50 jobs more for each, with memory for `n`
 * allocations; returns how many verdicts were taken. */
static size_t settle_with_follows(struct host *host, int n)
{
    const struct weir_slice here = {0};
    const struct weir_follow follow = {.delay_ms = 3600000};

    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        for (int i = 0; i < 50; i++)
            EXPECT_INT(WEIR_OK, weir__follow_add(&run->follows, here, &follow,
                                                 (struct weir_slice){0}));
    oom_after(n);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host->store->ops->flush(host->store);
    oom_off();
    return host->store->ops->unsettled(host->topic);
}

/* In a topic of its own, whose lists are still to grow: how many are done. */
static uint64_t try_follows(struct host *host, int n)
{
    size_t settled = host->settled;
    char name[16];

    (void)snprintf(name, sizeof(name), "o%d", n);
    host_use(host, name);
    for (int i = 0; i < 100; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == 100 * (n + 1));
    EXPECT_INT(100, host_claim(host, 100, 3600000));
    settled += settle_with_follows(host, n);
    host_await_settled(host);
    EXPECT_INT(settled, host->settled);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(50 * host->stats.done_total, host->stats.scheduled);
    return host->stats.done_total;
}

TEST(jobs_and_what_they_add_come_together_whatever_fails)
{
    int failures = 0;

    struct host *host = host_open("w1");
    while (try_follows(host, failures) < 100)
        failures++;
    EXPECT_TRUE(failures > 10);
}

enum { BRINGERS = 10, OOM_TURNS = 6, SWEEP = 50 };

/* What was claimed is done or fails, each with a job for "one". In some turns
 * there is memory for n / 2 allocations, then for none or, where n is odd, for
 * all but one. Returns how many verdicts were taken. */
static size_t settle_with_others(struct host *host, int n)
{
    const struct weir_follow follow = {.delay_ms = 3600000};
    size_t unsettled;

    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        EXPECT_INT(WEIR_OK,
                   weir__follow_add(&run->follows, weir__slice_str("one"),
                                    &follow, (struct weir_slice){0}));
    if (n % 2 == 0)
        oom_after(n / 2);
    else
        oom_once_after(n / 2);
    for (int i = 0; host->runs != NULL; i++)
        host_settle(host, host_take(host),
                    i % 2 == 0 ? WEIR__OUTCOME_DONE : WEIR__OUTCOME_DEAD);
    unsettled = host->store->ops->unsettled(host->topic);
    world_turns(OOM_TURNS);
    oom_off();
    return unsettled;
}

static uint64_t relaying(struct host *host)
{
    struct patience patience = world_patience; /* of the caller's wait */

    EXPECT_INT(WEIR_OK, host_stats(host));
    world_patience = patience;
    world_turn();
    return host->stats.relaying;
}

/* Of its outbox; what is only staged vanishes. */
static long long count_packs(const char *topic)
{
    static const char counting[] =
        "local count = 0 "
        "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do "
        "  if redis.call('PTTL', key) == -1 then count = count + 1 end "
        "end return count";

    return redis_int(proc, "EVAL %s 0 weir:{%s}:o:*", counting, topic);
}

/* In a topic of its own. Adds what it settled to `done` and `failed`. */
static void try_others(struct host *host, int n, uint64_t *done,
                       uint64_t *failed)
{
    size_t settled = host->settled;
    char name[16];

    (void)snprintf(name, sizeof(name), "s%d", n);
    host_use(host, name);
    for (int i = 0; i < BRINGERS; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == BRINGERS * (n + 1));
    EXPECT_INT(BRINGERS, host_claim(host, BRINGERS, 3600000));
    settled += settle_with_others(host, n);
    host_await_settled(host);
    EXPECT_INT(settled, host->settled);
    AWAIT(relaying(host) == 0);
    EXPECT_INT(0, count_packs(name));
    *done += host->stats.done_total;
    *failed += host->stats.failed_total;
    EXPECT_INT(0, host->stats.dead);
    EXPECT_INT(*done + *failed, world_count("one", "added"));
    EXPECT_INT(*failed, world_count("graves", "added"));
}

TEST(jobs_for_other_topics_are_there_once_whatever_fails)
{
    uint64_t done = 0, failed = 0;
    struct weir__call_slots *slots;
    struct host *host = host_open_as(
        "w1", "delay", (const char *const[]){"on_dead=graves", NULL});

    for (int n = 0; n < 2 * SWEEP; n++)
        try_others(host, n, &done, &failed);
    EXPECT_TRUE(done > 0 && failed > 0);
    EXPECT_TRUE(done + failed < 2 * BRINGERS * SWEEP);
    EXPECT_INT(0, host->stats.running); /* in the end nothing failed */
    slots = &host->topic->store->call_slots;
    AWAIT(slots->free_count == slots->count);
}

TEST(a_start_is_answered_whatever_fails)
{
    struct host *host = host_open("w1");
    int failures = -1, starts;

    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    (void)redis_text(proc, "ZINCRBY weir:{t}:wait 0.0078125 %s", /* 1 / 128 */
                     redis_text(proc, "ZRANGE weir:{t}:wait 0 0"));
    EXPECT_INT(1, host_claim(host, 1, 60000));
    for (host->start_code = WEIR_ENOMEM; host->start_code == WEIR_ENOMEM;) {
        failures++;
        starts = host->starts;
        oom_after(failures);
        host->store->ops->start(host->topic, host->runs);
        host->store->ops->flush(host->store);
        oom_off();
        AWAIT(host->starts > starts);
    }
    EXPECT_INT(WEIR_OK, host->start_code);
    EXPECT_TRUE(failures > 0);
    host_settle_all(host, WEIR__OUTCOME_DONE);
}

/* --- jobs that are handed over -------------------------------------------- */

enum { HANDED = 40 };

/* What its connection for wake-ups had to tell has come. */
static void await_told(struct host *host)
{
    int wakes = host->wakes;

    AWAIT(redis_int(proc, "PUBLISH weir:wake:w1 t") == 1);
    AWAIT(host->wakes > wakes);
}

/* `host` has offered itself, and is about to be handed a job of `other`. */
static void hand_over(struct host *host, struct host *other)
{
    struct patience patience = patience_start(30.);
    int added = other->added + 1;

    AWAIT(host->is_up && other->is_up);
    host_add(other, NULL, 3600000); /* from now on names can be made */
    AWAIT(other->added == added);
    await_told(host);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    host_add(other, NULL, 0);
    other->store->ops->flush(other->store);
    while (redis_int(proc, "EXISTS weir:{t}:run") == 0) {
        EXPECT_TRUE(!patience_ended(&patience));
        ev_sleep(1e-3);
    }
}

/* It is done, and the worker claims in the same turn. */
static void finish_without_memory(struct host *host, int n)
{
    struct weir__claim claim = {
        .room = 10, .lease_ms = 60000, .takes_jobs = true};
    int claims = host->claims;

    host_settle_all(host, WEIR__OUTCOME_DONE);
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    oom_after(n);
    host->store->ops->flush(host->store);
    oom_off();
    AWAIT(host->claims > claims);
    host_await_settled(host);
}

/* Also what is under a lease that nobody keeps. */
static void work_off_all(struct host *host)
{
    AWAIT(host->is_up);
    (void)redis_text(proc, "EVAL %s 1 weir:{t}:lease",
                     "for _, token in ipairs(redis.call('ZRANGE', KEYS[1], 0, "
                     "-1)) do redis.call('ZADD', KEYS[1], 1, token) end");
    while (host_claim(host, 10, 60000) > 0) {
        host_settle_all(host, WEIR__OUTCOME_DONE);
        host_await_settled(host);
    }
}

TEST(a_job_that_is_handed_over_runs_or_comes_back_whatever_fails)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    int ran = 0, refused = 0;

    one->takes_jobs = true;
    for (int n = 0; n < HANDED; n++) {
        hand_over(one, other);
        oom_after(n);
        world_turns(OOM_TURNS);
        oom_off();
        AWAIT(other->added + other->failed == 2 * (n + 1));
        await_told(one);
        if (one->runs != NULL) {
            size_t before = one->refused;

            finish_without_memory(one, ran);
            refused += one->refused > before;
            ran++;
        }
        work_off_all(other);
    }
    EXPECT_TRUE(0 < refused && refused < ran && ran < HANDED);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:lease "
                                  "weir:{t}:held"));
    EXPECT_INT(WEIR_OK, host_stats(other));
    EXPECT_INT(HANDED, other->stats.done_total);
}

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/lane.h"
#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/lease_fixture.h"

/* Topics of different kinds in one store. */

static const char *const kinds[] = {"delay", "list",       "stream",
                                    "sync",  "concurrent", "bounded"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* When the first lease of the topic ends, ms of the server. */
static double first_end(const char *kind)
{
    const char *text = redis_text(
        proc, "EVAL %s 1 weir:{t}:%s",
        "return redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]",
        strcmp(kind, "concurrent") == 0 ? "alive" : "lease");

    EXPECT_TRUE(text != NULL);
    return strtod(text, NULL);
}

static void add_one(struct host *host, const char *kind, int number)
{
    static const uint8_t seven[] = {7};
    struct weir__record record = {.body = {seven, 1}};
    struct weir__new_job job = {.record = &record};

    if (strcmp(kind, "bounded") == 0)
        job.group = weir__slice_str("g");
    EXPECT_INT(WEIR_OK,
               host->store->ops->add(host->topic, &job, host_added, host));
    AWAIT(host->added == number);
}

/* A worker with one run of the kind out, under a long lease, and a keeper that
 * looks often. */
static struct host *open_with_run(const char *kind)
{
    struct weir__options long_lease = weir__options_default;
    struct host *host;

    long_lease.lease = LEASE_LONG_MS;
    (void)world_open(NULL);
    host = host_open_kind("w", kind);
    host_serve_with(host, &long_lease);
    EXPECT_INT(0, host_claim(host, 0, LEASE_SHORT_MS));
    add_one(host, kind, 1);
    while (host->runs == NULL)
        (void)host_claim(host, 1, LEASE_LONG_MS);
    return host;
}

/* A handler of the other kind holds the loop: it is not turned here. */
static void hold_loop(struct host *host, const char *of, const char *kind)
{
    static struct weir__options lane_options = {.timeout = 60000};
    static struct weir__lane lane = {.options = &lane_options};
    struct weir__store_topic_options options = {.name = weir__slice_str("x"),
                                                .kind = of};
    struct weir__run run = {.lane = &lane, .started_ns = world_clock(NULL)};
    struct weir__store_topic *topic;
    double end = first_end(kind);

    EXPECT_INT(WEIR_OK,
               host->store->ops->topic_open(host->store, &options, &topic));
    host_enter(host, topic, &run, 60000);
    while (first_end(kind) <= end)
        EXPECT_TRUE(end > ev_time() * 1000.);
    EXPECT_TRUE(!host_leave(host, &run));
}

TEST(leases_of_each_kind_outlive_a_handler_of_each_other_kind)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct host *host;

        if (strcmp(kinds[i], "sync") == 0)
            continue; /* what is taken has no lease */
        host = open_with_run(kinds[i]);
        for (size_t other = 0; other < KINDS; other++)
            hold_loop(host, kinds[other], kinds[i]);
        host_settle_all(host, WEIR__OUTCOME_DONE);
        AWAIT(host->store->ops->unsettled(host->topic) == 0);
        EXPECT_INT(0, host->refused);
        EXPECT_TRUE(strstr(world_log, "leases are gone") == NULL);
        world_close();
    }
}

/* As after a reload with a longer lease, or a call that takes jobs. */
TEST(a_lease_of_each_kind_that_was_made_longer_is_left_by_other_workers)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct host *host, *other;
        double soon_ms;

        if (strcmp(kinds[i], "sync") == 0 ||
            strcmp(kinds[i], "concurrent") == 0)
            continue; /* their workers ask by themselves */
        (void)world_open(NULL);
        host = host_open_kind("w", kinds[i]);
        other = host_open_kind("v", kinds[i]);
        add_one(host, kinds[i], 1);
        while (host->runs == NULL)
            (void)host_claim(host, 1, LEASE_LONG_MS / 60);
        soon_ms = ev_time() * 1000. + LEASE_LONG_MS / 2.;
        EXPECT_TRUE(first_end(kinds[i]) < soon_ms);
        host->store->ops->renew(host->topic, LEASE_LONG_MS);
        AWAIT(first_end(kinds[i]) > soon_ms);
        EXPECT_INT(0, host_claim(other, 1, LEASE_SHORT_MS));
        EXPECT_TRUE(first_end(kinds[i]) > soon_ms);
        world_close();
    }
}

/* --- a full server ------------------------------------------------------- */

static void set_full(bool is_full)
{
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory %d", is_full));
}

static void await_run(struct host *host)
{
    while (host->runs == NULL)
        (void)host_claim(host, 1, LEASE_LONG_MS);
}

TEST(leases_of_each_kind_are_renewed_on_a_full_server)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct host *host;

        if (strcmp(kinds[i], "sync") == 0)
            continue;
        host = open_with_run(kinds[i]);
        set_full(true);
        hold_loop(host, kinds[i], kinds[i]);
        world_close();
    }
}

TEST(a_full_server_gives_out_jobs_of_each_kind)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct host *host = open_with_run(kinds[i]);

        host_settle_all(host, WEIR__OUTCOME_DONE);
        add_one(host, kinds[i], 2);
        set_full(true);
        EXPECT_INT(WEIR_OK, host_pause(host, true));
        EXPECT_INT(WEIR_OK, host_pause(host, false));
        await_run(host);
        host_settle_all(host, WEIR__OUTCOME_DONE);
        AWAIT(host->store->ops->unsettled(host->topic) == 0);
        EXPECT_INT(0, host_claim(host, 1, LEASE_LONG_MS));
        EXPECT_TRUE(strstr(world_log, "OOM") == NULL);
        world_close();
    }
}

static void come_again(const char *kind, enum weir__outcome outcome)
{
    struct host *host = open_with_run(kind);

    add_one(host, kind, 2); /* one of its group, too */
    set_full(true);
    host_settle_all(host, outcome);
    while (host->arrived < 3) {
        (void)host_claim(host, 1, LEASE_LONG_MS);
        host_settle_all(host, WEIR__OUTCOME_DONE);
        EXPECT_TRUE(strstr(world_log, "OOM") == NULL);
    }
    world_close();
}

TEST(what_was_not_started_goes_back_on_a_full_server)
{
    for (size_t i = 0; i < KINDS; i++)
        come_again(kinds[i], WEIR__OUTCOME_RETURN);
}

/* Nobody but its worker has it. */
TEST(a_message_of_a_queue_is_retried_on_a_full_server)
{
    come_again("sync", WEIR__OUTCOME_RETRY);
    come_again("concurrent", WEIR__OUTCOME_RETRY);
}

TEST(a_suspect_of_each_kind_starts_on_a_full_server)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct host *host, *other;

        if (strcmp(kinds[i], "sync") == 0 ||
            strcmp(kinds[i], "concurrent") == 0)
            continue; /* these have none */
        host = open_with_run(kinds[i]);
        other = host_open_kind("other", kinds[i]);
        host_close(host);
        leases_pass();
        set_full(true);
        await_run(other);
        EXPECT_TRUE(other->runs->is_suspect);
        EXPECT_INT(WEIR_OK, host_start(other, other->runs));
        EXPECT_TRUE(strstr(world_log, "OOM") == NULL);
        world_close();
    }
}

TEST(a_worker_of_all_kinds_has_one_store)
{
    struct host *host = open_with_run("delay");
    const char *clients;
    int count = 0;

    for (size_t i = 1; i < KINDS; i++) {
        struct weir__store_topic_options options = {
            .name = weir__slice_str(kinds[i]),
            .kind = kinds[i],
            .served = &weir__options_default};
        struct weir__store_topic *topic;

        EXPECT_INT(WEIR_OK,
                   host->store->ops->topic_open(host->store, &options, &topic));
        EXPECT_STR(kinds[i], host->store->ops->kind_name(topic));
    }
    clients = redis_text(proc, "CLIENT LIST");
    while ((clients = strstr(clients, "name=w")) != NULL) {
        clients += strlen("name=w");
        count += *clients == ' ';
    }
    EXPECT_INT(2, count); /* commands and wake-ups */
    world_close();
}

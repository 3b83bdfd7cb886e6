/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/classic/private.h"
#include "adapters/redis/conn/private.h"
#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/lease.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/front_fixture.h"

/* MOVED as the answer to each sort of command: no job is lost, none runs
 * twice, and nothing is asked in a loop. */

enum { JOBS = 40, TRIES = 60 }; /* more commands than that are a loop */

/* Claim until `count` jobs came. */
static void claim_all(struct host *host, size_t count)
{
    size_t before = host->arrived;

    while (host->arrived - before < count)
        (void)host_claim(host, count, 60000);
    EXPECT_INT(count, host->arrived - before);
}

/* Add jobs, and have each run once; `words` at the first node are MOVED. */
static void work_through(const char *kind, const char *words)
{
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(words);
    host = host_open_kind("w1", kind);
    host_add_numbered(host, 0, JOBS, 0);
    AWAIT(host->added == JOBS);
    claim_all(host, JOBS);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, host->failed);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, redis_int(behind, "EXISTS weir:{t}:wait weir:{t}:run"));
    EXPECT_INT(1, front_heard(0, words) > 0);
    EXPECT_TRUE(front_heard(0, words) <= TRIES);
}

TEST(adds_follow)
{
    work_through("delay", weir__script_delay_add.sha1);
}

TEST(what_is_staged_for_an_add_follows)
{
    work_through("delay", "SET weir:{t}:p:");
}

TEST(claims_follow)
{
    work_through("delay", weir__script_delay_claim.sha1);
}

TEST(what_was_claimed_is_fetched_elsewhere)
{
    work_through("delay", "MGET");
}

TEST(verdicts_follow)
{
    work_through("delay", weir__script_delay_settle.sha1);
}

TEST(the_list_of_topics_follows)
{
    work_through("delay", "SADD weir:topics");
}

TEST(stored_options_follow)
{
    work_through("delay", "HMGET");
}

TEST(statistics_follow)
{
    work_through("delay", weir__script_delay_stats.sha1);
}

TEST(renewals_follow)
{
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(weir__script_delay_renew.sha1);
    host = host_open("w1");
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(0, host->claims);
    claim_all(host, 1);
    weir__leases_renew(host->topic, 60000);
    AWAIT(front_heard(1, weir__script_delay_renew.sha1) > 0);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, host->lost_token);
}

/* Large answers come by connections of their own. */
TEST(what_a_fetcher_is_refused_is_fetched_elsewhere)
{
    enum { MANY = 1500 };
    static uint8_t ran[MANY];
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved("MGET");
    host = host_open("w1");
    host_add_numbered(host, 0, MANY, 0);
    AWAIT(host->added == MANY);
    host_work_off(host, ran, MANY);
    for (size_t i = 0; i < MANY; i++)
        EXPECT_INT(1, ran[i]);
    EXPECT_TRUE(front_heard(0, "MGET") > 0);
    EXPECT_TRUE(front_heard(0, "MGET") <= TRIES);
}

/* --- other kinds ---------------------------------------------------------- */

static void bounded_through(const char *words)
{
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(words);
    host = bounded_open("w1", &weir__options_default);
    events_add(host, "a", 1, 3);
    events_add(host, "b", 4, 5);
    claim_all(host, 5);
    EXPECT_STR("a:1-3 b:4-5 ", events_text(host));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_TRUE(front_heard(0, words) > 0);
    EXPECT_TRUE(front_heard(0, words) <= TRIES);
}

TEST(events_of_groups_follow)
{
    bounded_through(weir__script_bounded_add.sha1);
    bounded_through(weir__script_bounded_claim.sha1);
    bounded_through(weir__script_bounded_settle.sha1);
}

/* By consumers, each with a connection of its own. */
static void messages_through(const char *kind, const char *words)
{
    static const char *const said[] = {"delay=0ms", "lease=60s", "consumers=4",
                                       NULL};
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(words);
    host = host_open_as("w1", kind, said);
    host_add_numbered(host, 0, 8, 0);
    AWAIT(host->added == 8);
    while (host->arrived < 8) {
        (void)host_claim(host, 8, 60000);
        host_settle_all(host, WEIR__OUTCOME_DONE);
    }
    AWAIT(redis_int(behind, "EXISTS weir:{t}:fifo weir:{t}:parked") == 0);
    EXPECT_INT(8, host->arrived);
    EXPECT_INT(0, host->refused);
    EXPECT_TRUE(front_heard(0, words) > 0);
    EXPECT_TRUE(front_heard(0, words) <= TRIES);
}

TEST(messages_of_queues_follow)
{
    messages_through("concurrent", weir__script_classic_push.sha1);
    messages_through("concurrent", weir__script_classic_pop.sha1);
    messages_through("concurrent", weir__script_classic_settle.sha1);
    messages_through("sync", weir__script_classic_lock.sha1);
    messages_through("sync", weir__script_classic_pop.sha1);
}

/* A consumer alone meets MOVED, and nobody else. */
TEST(consumers_find_their_queue_where_nobody_else_is_told)
{
    static const char *const said[] = {"delay=0ms", "lease=60s", NULL};
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(weir__script_classic_poll.sha1);
    host = host_open_as("w1", "concurrent", said);
    AWAIT(front_heard(1, weir__script_classic_poll.sha1) > 0);
    EXPECT_TRUE(front_heard(0, weir__script_classic_poll.sha1) <= TRIES);
    host_add(host, "a", 0);
    AWAIT(host_claim(host, 1, 60000) == 1);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

/* A verdict of theirs would be given up sooner than those of others. */
TEST(a_consumer_waits_for_its_node_as_long_as_the_commands_do)
{
    const struct weir__conn *conn;
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(weir__script_classic_poll.sha1);
    host = host_open_as("w1", "concurrent",
                        (const char *const[]){"delay=0ms", NULL});
    host_add(host, "a", 0);
    AWAIT(host_claim(host, 1, 60000) == 1);
    conn = weir__classic_topic_of(host->topic)->consumers[0]->conn;
    EXPECT_INT(WEIR__CLUSTER_WAIT_MS, conn->options.wait_ms);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

static void entries_through(const char *kind, const char *words)
{
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(words);
    host = host_open_kind("w1", kind);
    for (int i = 0; i < 3; i++)
        (void)redis_text(behind, strcmp(kind, "list") == 0 ? "RPUSH t 1"
                                                           : "XADD t * body 1");
    claim_all(host, 3);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, redis_int(behind, "EXISTS weir:{t}:run weir:{t}:lease"));
    EXPECT_TRUE(front_heard(0, words) > 0);
    EXPECT_TRUE(front_heard(0, words) <= TRIES);
}

TEST(entries_of_lists_and_streams_follow)
{
    entries_through("list", weir__script_external_claim_list.sha1);
    entries_through("list", weir__script_external_settle.sha1);
    entries_through("stream", weir__script_external_claim_stream.sha1);
    entries_through("stream", weir__script_external_settle.sha1);
}

/* A connection that only waits for an entry. */
static void wait_through(const char *kind, const char *words)
{
    struct host *host;

    fronts_prepare(NULL);
    fronts_run_moved(words);
    host = host_open_kind("w1", kind);
    EXPECT_INT(0, host_claim(host, 10, 60000));
    AWAIT(front_heard(1, words) > 0);
    (void)redis_text(behind, strcmp(kind, "list") == 0 ? "RPUSH t 1"
                                                       : "XADD t * body 1");
    AWAIT(host->wakes > 0 && host_claim(host, 10, 60000) == 1);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_TRUE(front_heard(0, words) > 0);
    EXPECT_TRUE(front_heard(0, words) <= TRIES);
}

TEST(who_waits_for_an_entry_waits_elsewhere)
{
    wait_through("list", "BLMOVE");
    wait_through("stream", "XREAD ");
}

/* --- durability ----------------------------------------------------------- */

/* A server and a replica that hears everything. */
static void prepare_pair(void)
{
    static const char *const args[] = {"--repl-diskless-sync-delay", "0", NULL};
    const struct redis_options options = {.tcp = true, .args = args};
    struct redis_proc *replica;

    fronts_prepare(&options);
    replica = redis_start(&options);
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF 127.0.0.1 %d",
                                redis_port(behind)));
    EXPECT_INT(1, redis_int(behind, "INCR last"));
    EXPECT_INT(1, redis_int(behind, "WAIT 1 0"));
}

static struct host *open_durable(void)
{
    return host_open_as("w1", "delay",
                        (const char *const[]){"durability=replica", NULL});
}

TEST(an_add_that_followed_is_confirmed_where_it_is)
{
    struct host *host;

    prepare_pair();
    fronts_run_moved(weir__script_delay_add.sha1);
    host = open_durable();
    host_add_numbered(host, 0, JOBS, 0);
    AWAIT(host->added + host->failed == JOBS);
    EXPECT_INT(JOBS, host->added);
    EXPECT_TRUE(front_heard(1, "WAIT") > 0);
}

TEST(an_add_is_confirmed_elsewhere_when_its_slot_moved_meanwhile)
{
    struct resp_rule rules[2] = {{.words = "HINCRBY weir:{t}:meta added 0"},
                                 {.words = "INFO server"}};
    struct host *host;

    prepare_pair();
    rules[0].bytes = front_moved();
    rules[1].bytes = "$23\r\nrun_id:aaaaaaaaaaaaaaaa\r\n";
    fronts_run(rules, 2, NULL, 0);
    host = open_durable();
    host_add(host, "a", 0);
    AWAIT(host->added + host->failed == 1);
    host_add(host, "b", 0);
    AWAIT(host->added + host->failed == 2);
    EXPECT_INT(2, host->added);
    EXPECT_INT(2, redis_int(behind, "ZCARD weir:{t}:wait"));
}

/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/redis/store/store.h"
#include "core/text.h"
#include "tests/redis/store/line_fixture.h"

/* A replica that has not heard of the last claims takes over: what it does not
 * know is above the tokens that it gives out, and who lives keeps its jobs. */

enum { LEASE_MS = 4000, GRACE_US = 2000000 }; /* time is the subject */

/* --- servers -------------------------------------------------------------- */

/* They take over one after the other. */
static const struct redis_options pair = {
    .tcp = true,
    .args = (const char *const[]){"--repl-diskless-sync-delay", "0", NULL}};

static struct redis_proc *replica_open(void)
{
    struct redis_options options = pair;
    static char port[4][16];
    static const char *args[4][6];
    static int count;
    struct redis_proc *replica;

    (void)snprintf(port[count], sizeof(port[count]), "%d", redis_port(proc));
    memcpy(args[count],
           (const char *const[]){"--replicaof", "127.0.0.1", port[count],
                                 "--repl-diskless-sync-delay", "0", NULL},
           sizeof(args[count]));
    options.args = args[count++];
    replica = redis_start(&options);
    while (strstr(redis_text(replica, "INFO replication"),
                  "master_link_status:up") == NULL)
        continue;
    return replica;
}

/* It hears of nothing that comes from now on. */
static void cut(struct redis_proc *replica)
{
    EXPECT_STR("OK", redis_text(proc, "SET last 1")); /* WAIT is for that */
    EXPECT_INT(1, redis_int(proc, "WAIT 1 0"));
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
}

/* At the server that took over. */
static void await_up(struct host *host)
{
    AWAIT(host->ups > 1 && host->is_up);
}

/* Whoever connects from now on gets there. */
static void promote(struct redis_proc *replica)
{
    redis_kill(proc, SIGKILL);
    EXPECT_INT(0, unlink(redis_socket(proc)));
    EXPECT_INT(0, link(redis_socket(replica), redis_socket(proc)));
    proc = replica;
}

/* The outage was longer than all leases. */
static void end_leases(const char *leases)
{
    (void)redis_text(
        proc, "EVAL %s 1 weir:{t}:%s",
        "for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
        "redis.call('ZADD', KEYS[1], 1, name) end",
        leases);
}

static long long server_ms(void)
{
    return redis_int(proc, "EVAL %s 0",
                     "local t = redis.call('TIME') "
                     "return t[1] * 1000 + math.floor(t[2] / 1000)");
}

static bool has_grace(void)
{
    return strchr(redis_text(proc, "HGET weir:{t}:meta server"), ' ') != NULL;
}

/* --- jobs ----------------------------------------------------------------- */

static void add_one(struct host *host, const char *kind)
{
    static const uint8_t seven[] = {7};
    static int groups;
    struct weir__record record = {.body = {seven, 1}};
    struct weir__new_job job = {.record = &record};
    int before = host->added;
    char group[16];

    (void)snprintf(group, sizeof(group), "g%d", groups++);
    if (strcmp(kind, "bounded") == 0)
        job.group = weir__slice_str(group);
    EXPECT_INT(WEIR_OK,
               host->store->ops->add(host->topic, &job, host_added, host));
    AWAIT(host->added == before + 1);
}

/* Returns the token. */
static uint64_t claim_one(struct host *host)
{
    size_t before = host->arrived;

    AWAIT(host_claim(host, 1, LEASE_MS) > 0 || host->arrived > before);
    return host->runs->token;
}

static void expect_tokens_above(const struct host *host, uint64_t token)
{
    for (const struct weir__run *run = host->runs; run != NULL; run = run->next)
        EXPECT_TRUE(run->token > token && run->token < UINT64_C(1) << 45);
}

/* Of four jobs one is out at a worker that dies, one at one that lives, and of
 * two claims only the old server has heard. */
static void fail_over(const char *kind)
{
    struct host *dead, *alive, *unheard, *after;
    struct redis_proc *replica;
    uint64_t last;

    (void)world_open(&pair);
    dead = host_open_kind("dead", kind);
    alive = host_open_kind("alive", kind);
    unheard = host_open_kind("unheard", kind);
    replica = replica_open();
    for (int i = 0; i < 4; i++)
        add_one(dead, kind);
    (void)claim_one(dead);
    (void)claim_one(alive);
    cut(replica);
    (void)claim_one(unheard);
    (void)claim_one(unheard);
    last = unheard->runs->next->token;
    EXPECT_TRUE(last > unheard->runs->token);
    promote(replica);
    end_leases("lease");
    after = host_open_kind("after", kind);
    AWAIT(host_claim(after, 10, LEASE_MS) > 0 || after->arrived == 2);
    EXPECT_INT(2, after->arrived);
    (void)host_claim(after, 10, LEASE_MS);
    EXPECT_INT(2, after->arrived);
    expect_tokens_above(after, last);
    EXPECT_TRUE(has_grace());
    EXPECT_TRUE(after->claimed.next_due_us > 0 &&
                after->claimed.next_due_us <= GRACE_US);
    await_up(alive);
    alive->store->ops->renew(alive->topic, 60000);
    AWAIT(host_claim(after, 10, LEASE_MS) > 0 || after->arrived == 3);
    EXPECT_TRUE(!has_grace());
    expect_tokens_above(after, last);
    host_settle_all(alive, WEIR__OUTCOME_DONE);
    host_await_settled(alive);
    EXPECT_INT(0, alive->refused);
    await_up(unheard);
    host_settle_all(unheard, WEIR__OUTCOME_DONE);
    host_await_settled(unheard);
    EXPECT_INT(2, unheard->refused);
    host_settle_all(after, WEIR__OUTCOME_DONE);
    host_await_settled(after);
    EXPECT_INT(0, after->refused);
    EXPECT_INT(WEIR_OK, host_stats(after));
    EXPECT_INT(4, after->stats.done_total);
    EXPECT_INT(0, after->stats.scheduled + after->stats.ready +
                      after->stats.running);
}

TEST(a_delay_topic_outlives_its_server)
{
    fail_over("delay");
}

TEST(a_bounded_topic_outlives_its_server)
{
    fail_over("bounded");
}

TEST(a_list_topic_outlives_its_server)
{
    fail_over("list");
}

TEST(a_stream_topic_outlives_its_server)
{
    fail_over("stream");
}

static struct host *open_concurrent(const char *worker)
{
    static const char *const options[] = {"delay=0ms", "consumers=1",
                                          /* time is the subject */
                                          "lease=4s", NULL};

    return host_open_as(worker, "concurrent", options);
}

TEST(a_concurrent_topic_outlives_its_server)
{
    struct host *alive, *unheard, *after;
    struct redis_proc *replica;
    uint64_t last;

    (void)world_open(&pair);
    alive = open_concurrent("alive");
    replica = replica_open();
    add_one(alive, "concurrent");
    (void)claim_one(alive);
    add_one(alive, "concurrent");
    cut(replica);
    unheard = open_concurrent("unheard");
    last = claim_one(unheard);
    promote(replica);
    end_leases("alive");
    after = open_concurrent("after");
    EXPECT_TRUE(claim_one(after) > last);
    await_up(alive);
    AWAIT(redis_int(proc, "ZCOUNT weir:{t}:alive (1 +inf") == 2);
    host_settle_all(alive, WEIR__OUTCOME_DONE);
    host_await_settled(alive);
    EXPECT_INT(0, alive->refused);
}

static struct host *open_sync(const char *worker)
{
    static const char *const options[] = {"delay=0ms", "consumers=1",
                                          /* time is the subject */
                                          "lease=1s", NULL};

    return host_open_as(worker, "sync", options);
}

/* Whoever had the lock is forgotten with its lease, nobody's message comes
 * back: it was done when it was taken. */
TEST(tokens_of_a_sync_topic_grow_over_a_failover)
{
    struct host *before, *unheard, *after;
    struct redis_proc *replica;
    uint64_t last;

    (void)world_open(&pair);
    before = open_sync("before");
    replica = replica_open();
    add_one(before, "sync");
    last = claim_one(before);
    host_settle_all(before, WEIR__OUTCOME_DONE);
    host_close(before);
    cut(replica);
    unheard = open_sync("unheard");
    add_one(unheard, "sync");
    EXPECT_TRUE(claim_one(unheard) > last);
    last = unheard->runs->token;
    host_settle_all(unheard, WEIR__OUTCOME_DONE);
    promote(replica);
    host_close(unheard);
    after = open_sync("after");
    add_one(after, "sync");
    EXPECT_TRUE(claim_one(after) > last);
    EXPECT_TRUE(after->runs->token < UINT64_C(1) << 45);
}

/* --- again and again ------------------------------------------------------ */

TEST(tokens_grow_over_two_failovers)
{
    struct redis_proc *replica;
    struct host *host;
    uint64_t last = 0;

    (void)world_open(&pair);
    for (int i = 0; i < 3; i++) {
        char name[] = {'w', (char)('0' + i), '\0'};

        host = host_open(name); /* knows nothing of the others' */
        add_one(host, "delay");
        EXPECT_TRUE(claim_one(host) > last);
        replica = replica_open();
        cut(replica);
        add_one(host, "delay");
        add_one(host, "delay");
        (void)claim_one(host);
        (void)claim_one(host);
        last = host->runs->next->next->token;
        EXPECT_TRUE(last > host->runs->token);
        promote(replica);
        end_leases("lease");
    }
}

TEST(tokens_grow_where_the_server_lost_everything_but_lives)
{
    struct host *host = host_open("w1"), *other = host_open("w2");
    long long first_ms;
    uint64_t last;

    add_one(host, "delay");
    last = claim_one(host);
    first_ms = server_ms();
    while (server_ms() <= first_ms + 1) /* its clock tells them apart */
        continue;
    EXPECT_STR("OK", redis_text(proc, "FLUSHALL"));
    add_one(host, "delay");
    EXPECT_TRUE(claim_one(other) > last);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(1, host->refused);
}

TEST(nobody_is_blamed_for_a_server_that_was_away_longer_than_a_lease)
{
    static const char *const args[] = {"--appendfsync", "everysec", NULL};
    static const struct redis_options aof = {.args = args, .appendonly = true};
    struct host *host, *other;
    uint64_t last;

    (void)world_open(&aof);
    host = host_open("w1");
    other = host_open("w2");
    add_one(host, "delay");
    add_one(host, "delay");
    last = claim_one(host);
    redis_kill(proc, SIGKILL);
    AWAIT(!host->is_up && !other->is_up);
    redis_restart(proc);
    end_leases("lease");
    AWAIT(host->is_up && other->is_up);
    EXPECT_TRUE(claim_one(other) > last);
    EXPECT_TRUE(has_grace());
    host->store->ops->renew(host->topic, 60000);
    AWAIT(host_claim(other, 10, LEASE_MS) == 0 && !has_grace());
    EXPECT_INT(1, other->arrived);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(0, host->stats.crashed_total);
}

/* A process that saw more is believed, though the server does not say who it
 * is. */
TEST(tokens_grow_above_what_a_worker_was_given)
{
    struct host *host;

    (void)world_open(NULL);
    EXPECT_STR("OK", redis_text(proc, "ACL SETUSER default -info"));
    host = host_open("w1");
    add_one(host, "delay");
    add_one(host, "delay");
    EXPECT_INT(1, claim_one(host));
    host->topic->last_token = 1000000;
    (void)claim_one(host);
    EXPECT_INT(1000001, host->runs->next->token);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(2, host->stats.running);
    EXPECT_INT(0, host->stats.scheduled + host->stats.ready);
}

/* --- who may not ask --------------------------------------------------- */

/* Of a replica, too: rights are not copied. */
static void forbid_identity(struct redis_proc *redis)
{
    EXPECT_STR("OK", redis_text(redis, "ACL SETUSER default -info -client "
                                       "+client|setname"));
}

/* Leases end when they are over. */
TEST(who_may_not_ask_who_the_server_is_begins_no_grace)
{
    struct host *alive, *after;
    struct redis_proc *replica;
    uint64_t last;

    (void)world_open(&pair);
    forbid_identity(proc);
    alive = host_open("alive");
    replica = replica_open();
    forbid_identity(replica);
    add_one(alive, "delay");
    last = claim_one(alive);
    cut(replica);
    promote(replica);
    end_leases("lease");
    after = host_open("after");
    EXPECT_TRUE(claim_one(after) > last);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:meta server"));
    await_up(alive);
    host_settle_all(alive, WEIR__OUTCOME_DONE);
    host_await_settled(alive);
    EXPECT_INT(1, alive->refused);
    EXPECT_INT(WEIR_OK, host_stats(after));
    EXPECT_INT(1, after->stats.crashed_total);
}

/* One that others began counts for all. */
TEST(who_may_not_ask_who_the_server_is_waits_for_the_end_of_a_grace)
{
    struct host *alive, *blind;
    struct redis_proc *replica;

    (void)world_open(&pair);
    alive = host_open("alive");
    replica = replica_open();
    add_one(alive, "delay");
    add_one(alive, "delay");
    (void)claim_one(alive);
    cut(replica);
    promote(replica);
    end_leases("lease");
    await_up(alive);
    (void)claim_one(alive); /* the grace begins */
    EXPECT_TRUE(has_grace());
    forbid_identity(proc);
    blind = host_open("blind");
    EXPECT_INT(0, host_claim(blind, 10, LEASE_MS));
    EXPECT_TRUE(blind->claimed.next_due_us > 0 &&
                blind->claimed.next_due_us <= GRACE_US);
    AWAIT(host_claim(blind, 10, LEASE_MS) > 0);
    EXPECT_INT(1, blind->arrived);
}

/* --- the connection ------------------------------------------------------- */

/* What a claim says of the server is true of one connection. */
TEST(a_claim_that_was_not_sent_does_not_go_to_another_server)
{
    struct host *host = host_open("w1");
    int claims;

    add_one(host, "delay");
    EXPECT_INT(0, host_claim(host, 0, LEASE_MS));
    claims = host->claims;
    redis_kill(proc, SIGKILL);
    AWAIT(!host->is_up);
    EXPECT_INT(0, host_claim(host, 1, LEASE_MS));
    EXPECT_INT(claims + 1, host->claims);
    EXPECT_INT(WEIR_ECONN, host->claimed.code);
}

TEST(claims_wait_for_the_renewals_of_others_behind_a_long_outage)
{
    static const char *const kinds[] = {"delay", "bounded", "list", "stream"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct host *host;

        (void)world_open(NULL);
        host = host_open_kind("w1", kinds[i]);
        add_one(host, kinds[i]);
        (void)claim_one(host);
        redis_kill(proc, SIGSTOP);
        world_hide_server(true);
        EXPECT_TRUE(redis_pid(proc) > 0);
        redis_kill(proc, SIGCONT);
        (void)redis_int(proc, "CLIENT KILL TYPE normal SKIPME yes");
        AWAIT(!host->is_up);
        host->topic->store->servers->down_ns -=
            INT64_C(1000000) * (LEASE_MS / 2);
        world_hide_server(false);
        AWAIT(host->is_up);
        EXPECT_INT(0, host_claim(host, 1, LEASE_MS));
        EXPECT_INT(WEIR_ESERVER, host->claimed.code);
        host->topic->claims_from_ns -= INT64_C(1000000) * (LEASE_MS / 2);
        EXPECT_INT(0, host_claim(host, 1, LEASE_MS));
        EXPECT_INT(WEIR_OK, host->claimed.code);
        world_close();
    }
}

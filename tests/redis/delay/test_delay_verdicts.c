/* SPDX-License-Identifier: MIT */
#include <signal.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/store/store.h"
#include "tests/redis/store/lease_fixture.h"

/* Verdicts that gather behind a call that is out: one leaves at once, the
 * others wait for the answer. */

static void claim_jobs(struct host *host, size_t jobs, int64_t lease_ms)
{
    host_add_numbered(host, 0, (int)jobs, 0);
    AWAIT(host->added == (int)jobs);
    EXPECT_INT(jobs, host_claim(host, jobs, lease_ms));
}

/* Each in a turn of its own, without waiting for answers. */
static void settle_in_turns(struct host *host)
{
    while (host->runs != NULL) {
        host_settle(host, host_take(host), WEIR__OUTCOME_DONE);
        host->store->ops->flush(host->store);
    }
}

TEST(verdicts_that_come_while_calls_are_out_share_one)
{
    struct host *host = host_open("w1");

    claim_jobs(host, 100, 60000);
    settle_in_turns(host);
    EXPECT_INT(100, host->store->ops->unsettled(host->topic));
    host_await_settled(host);
    EXPECT_INT(100, host->settled);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(2, redis_calls(proc, "zmscore"));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:run weir:{t}:lease"));
}

/* A server that reads them by parts leaves at the first answer that it cannot
 * give: it has the script, and all of them before it goes on. */
TEST(verdicts_leave_when_the_store_is_closed)
{
    struct host *host = host_open("w1"), *other = host_open("w2");

    claim_jobs(host, 4, 60000);
    host_settle(host, host_take(host), WEIR__OUTCOME_DONE);
    host_await_settled(host);
    redis_kill(proc, SIGSTOP);
    settle_in_turns(host);
    host_close(host);
    redis_kill(proc, SIGCONT);
    AWAIT(redis_int(proc, "EXISTS weir:{t}:lease") == 0);
    EXPECT_INT(WEIR_OK, host_stats(other));
    EXPECT_INT(4, other->stats.done_total);
}

TEST(leases_are_renewed_while_their_last_verdicts_gather)
{
    struct host *host = host_open("w1");
    long long scripts;

    claim_jobs(host, 3, 60000);
    scripts = redis_calls(proc, "evalsha");
    settle_in_turns(host);
    host->store->ops->renew(host->topic, 60000);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(scripts + 3, redis_calls(proc, "evalsha"));
}

/* It gives back what it finds under a lease that ended. */
static void claim_behind_verdicts(struct host *host)
{
    const struct weir__claim claim = {.room = 10, .lease_ms = 60000};
    int claims = host->claims;

    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    host->store->ops->flush(host->store);
    redis_kill(proc, SIGCONT);
    AWAIT(host->claims > claims);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(0, host->claimed.count);
}

TEST(verdicts_stay_ahead_of_a_claim_while_the_server_hangs)
{
    struct host *host = host_open("w1");

    claim_jobs(host, 3, 60000);
    leases_pass();
    redis_kill(proc, SIGSTOP);
    settle_in_turns(host);
    claim_behind_verdicts(host);
}

TEST(verdicts_stay_ahead_of_a_claim_while_the_server_is_away)
{
    const struct redis_options aof = {.appendonly = true};
    (void)world_open(&aof);
    struct host *host = host_open("w1");

    claim_jobs(host, 3, 60000);
    leases_pass();
    redis_kill(proc, SIGKILL);
    AWAIT(!host->is_up);
    settle_in_turns(host);
    redis_restart(proc);
    AWAIT(host->is_up);
    claim_behind_verdicts(host);
}

/* They wait for a connection as long as those that were sent. */
TEST(verdicts_are_given_up_at_once_when_the_server_is_gone)
{
    struct host *host = host_open("w1");
    struct weir__redis *base =
        (struct weir__redis *)host->store; /* its begin */
    size_t before;

    base->servers->commands->options.wait_ms = 1000;
    claim_jobs(host, 3, 60000);
    redis_kill(proc, SIGKILL);
    AWAIT(!host->is_up);
    settle_in_turns(host);
    before = host->settled;
    AWAIT(host->settled > before);
    world_turn();
    EXPECT_INT(0, host->store->ops->unsettled(host->topic));
    EXPECT_INT(3, host->refused);
}

/* Jobs "a" and "b" under the lease of a worker that died. */
static struct host *claim_suspects(void)
{
    struct host *first = host_open("first"), *host;

    host_add(first, "a", 0);
    host_add(first, "b", 0);
    AWAIT(first->added == 2);
    EXPECT_INT(2, host_claim(first, 10, 60000));
    host_close(first);
    leases_pass();
    host = host_open("w1");
    EXPECT_INT(2, host_claim(host, 10, 60000));
    return host;
}

/* When the next one starts, the one before is settled: if that worker dies now,
 * only what was running is to blame. */
TEST(a_suspect_that_ended_does_not_gather)
{
    struct host *host = claim_suspects(), *other;
    struct weir__run *one = host_take(host), *next = host_take(host);
    int starts;

    EXPECT_TRUE(one->is_suspect && next->is_suspect);
    EXPECT_INT(WEIR_OK, host_start(host, one));
    claim_jobs(host, 2, 60000);
    redis_kill(proc, SIGSTOP);
    settle_in_turns(host);
    host_settle(host, one, WEIR__OUTCOME_DONE);
    starts = host->starts;
    host->store->ops->start(host->topic, next);
    host->store->ops->flush(host->store);
    redis_kill(proc, SIGCONT);
    AWAIT(host->starts > starts);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:run"));
    host_close(host);
    leases_pass();
    other = host_open("w2");
    EXPECT_INT(1, host_claim(other, 10, 60000));
    EXPECT_INT(1, other->runs->blamed);
}

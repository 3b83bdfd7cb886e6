/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/delay/private.h"
#include "tests/redis/store/store_fixture.h"

/* The connections that only fetch, where they break or lead astray. */

static struct weir__delay *delay_of(struct host *host)
{
    return ((struct weir__delay_topic *)host->topic)->shared;
}

static bool has_fetchers(struct host *host)
{
    for (size_t i = 0; i < WEIR__FETCHERS; i++)
        if (delay_of(host)->store->servers->fetchers[i] == NULL ||
            !weir__conn_is_ready(delay_of(host)->store->servers->fetchers[i]))
            return false;
    return true;
}

static void cut(struct weir__conn *conn)
{
    if (conn != NULL && conn->context != NULL)
        EXPECT_INT(0, shutdown(conn->context->c.fd, SHUT_RDWR));
}

/* From now on who asks for the one server finds the other. */
static void stand_in(const struct redis_proc *one,
                     const struct redis_proc *other)
{
    char away[256];

    (void)snprintf(away, sizeof(away), "%s.away", redis_socket(one));
    EXPECT_INT(0, rename(redis_socket(one), away));
    EXPECT_INT(0, rename(redis_socket(other), redis_socket(one)));
}

static void claim_all(struct host *host, size_t jobs)
{
    size_t arrived = host->arrived;

    while (host_claim(host, 1024, 60000) > 0)
        continue;
    EXPECT_INT(jobs, host->arrived - arrived);
    EXPECT_INT(0, host->lost);
}

TEST(a_pack_is_gone_only_where_it_was_claimed)
{
    struct redis_proc *other = redis_start(NULL);
    struct host *host = host_open("w1");

    host_add_numbered(host, 0, 1024, 0);
    AWAIT(host->added == 1024);
    claim_all(host, 1024);
    AWAIT(has_fetchers(host));
    stand_in(proc, other);
    for (size_t i = 0; i < WEIR__FETCHERS; i++)
        cut(delay_of(host)->store->servers->fetchers[i]);
    AWAIT(!has_fetchers(host));
    AWAIT(has_fetchers(host));
    host_add_numbered(host, 1024, 3072, 0);
    AWAIT(host->added == 3072);
    claim_all(host, 2048);
}

TEST(fetches_follow_to_another_server)
{
    struct redis_proc *other = redis_start(NULL);
    struct host *host = host_open("w1");
    int ups = host->ups;

    host_add_numbered(host, 0, 1024, 0);
    AWAIT(host->added == 1024);
    claim_all(host, 1024);
    AWAIT(has_fetchers(host));
    stand_in(proc, other);
    cut(delay_of(host)->store->servers->commands);
    AWAIT(host->ups > ups);
    claim_all(host, 1024); /* they were said again */
    AWAIT(strstr(redis_text(other, "CLIENT LIST"), "name=w1:fetch") != NULL);
}

TEST(fetches_that_are_cut_all_the_time_lose_no_job)
{
    static uint8_t ran[20000];
    const int jobs = sizeof(ran);
    struct weir__claim claim = {.room = 1024, .lease_ms = 60000};

    struct host *host = host_open("w1");
    host_add_numbered(host, 0, jobs, 0);
    AWAIT(host->added == jobs);
    for (unsigned turn = 0; (int)(host->arrived + host->lost) < jobs; turn++) {
        int claims = host->claims, number;

        EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
        host->store->ops->flush(host->store);
        AWAIT(host->claims > claims);
        cut(delay_of(host)->store->servers->fetchers[turn % WEIR__FETCHERS]);
        while (host->runs != NULL) {
            struct weir__run *run = host_take(host);

            EXPECT_INT(1, sscanf(run_id(run), "job-%d", &number));
            ran[number]++;
            host_settle(host, run, WEIR__OUTCOME_DONE);
        }
    }
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->lost);
    EXPECT_INT(0, host->refused);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(jobs, host->stats.done_total);
    for (int i = 0; i < jobs; i++)
        EXPECT_INT(1, ran[i]);
}

/* --- together with a claim ---------------------------------------------- */

/* `one` sleeps, is woken by a job of `other`, and has sent its claim and the
 * fetch behind it. */
static void claim_woken(struct host *one, struct host *other)
{
    struct weir__claim claim = {.room = 10, .lease_ms = 60000};
    int wakes;

    AWAIT(one->wakes > 0);
    wakes = one->wakes;
    EXPECT_INT(0, host_claim(one, 10, 60000));
    host_add(other, "a", 0);
    AWAIT(one->wakes > wakes && other->added == 1);
    (void)redis_text(proc, "SCRIPT FLUSH");
    EXPECT_INT(WEIR_OK, one->store->ops->claim(one->topic, &claim));
    one->store->ops->flush(one->store);
}

TEST(a_claim_that_misses_its_script_fetches_afterwards)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    claim_woken(one, other);
    AWAIT(one->arrived == 1);
    host_settle_all(one, WEIR__OUTCOME_DONE);
    host_await_settled(one);
    EXPECT_INT(0, one->refused);
    EXPECT_INT(WEIR_OK, host_stats(one));
    EXPECT_INT(1, one->stats.done_total);
}

TEST(a_woken_worker_is_closed_before_its_answers_come)
{
    struct host *one = host_open("w1"), *other = host_open("w2");

    claim_woken(one, other);
    host_close(one);
    EXPECT_INT(1, host_claim(other, 10, 60000));
}

TEST(a_woken_worker_loses_its_connection_before_its_answers_come)
{
    struct host *one = host_open("w1"), *other = host_open("w2");
    int ups = one->ups, claims = one->claims;

    claim_woken(one, other);
    cut(delay_of(one)->store->servers->commands);
    AWAIT(one->ups > ups && one->claims > claims + 1);
    EXPECT_INT(WEIR_EUNKNOWN, one->claimed.code);
    EXPECT_INT(0, one->arrived + one->lost);
    EXPECT_INT(1, host_claim(one, 10, 60000));
}

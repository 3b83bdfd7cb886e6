/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/cluster/slot.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"
#include "tests/redis/store/spread_fixture.h"

/* One store, topics on several servers: what one server does is no matter to
 * topics of another one. */

/* Who has PREFIX:topics. */
static int listing_node(void)
{
    return cluster_owner(spread,
                         weir__cluster_slot(weir__slice_str("weir:topics")));
}

static void lack_replicas(int node, bool lacks)
{
    EXPECT_STR("OK",
               spread_text(node, "CONFIG SET min-replicas-to-write %d", lacks));
}

/* Ask for jobs until the answer is this one. */
static void claim_until(struct host *host, int code)
{
    double until = ev_time() + 20.;

    do {
        EXPECT_TRUE(ev_time() < until);
        (void)host_claim(host, 1, LEASE_LONG_MS);
    } while (host->claimed.code != code);
}

TEST(a_topic_is_worked_off_as_soon_as_its_own_server_takes_writes)
{
    struct host *host;
    const struct weir__store_topic *topic;
    int listing, own;

    spread_start(NULL);
    listing = listing_node();
    own = (listing + 1) % SPREAD_NODES;
    host = host_open("w1");
    topic = spread_open(host, own, 0);
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    lack_replicas(own, true);
    lack_replicas(listing, true);
    claim_until(host, WEIR_ESERVER);
    lack_replicas(own, false); /* the list's is no matter */
    claim_until(host, WEIR_OK);
    EXPECT_INT(1, host->arrived);
    EXPECT_INT(0, spread_int(own, "EXISTS weir:{%s}:probe", topic->name));
    lack_replicas(listing, false);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
}

/* That of the pack that the last id names; ids are made of packs' names. */
static int64_t named_ms(const struct host *host)
{
    EXPECT_TRUE(host->last_id[0] == '~');
    return weir__seq_ms(host->last_id + 1);
}

static int64_t add_named(struct host *host)
{
    int added = host->added;

    host_add(host, NULL, 0);
    AWAIT(host->added > added);
    return named_ms(host);
}

TEST(names_tell_the_time_of_the_server_and_do_not_go_back)
{
    enum { HOUR_MS = 3600000 };
    struct host *host;
    struct weir__store_topic *one, *other;
    int64_t before_ms, ahead_ms;

    spread_start(NULL);
    host = host_open("w1");
    one = spread_open(host, 0, 0);
    before_ms = add_named(host);
    other = spread_open(host, 1, 0);
    EXPECT_TRUE(add_named(host) - before_ms < HOUR_MS);
    other->place->server->ahead_ms += HOUR_MS; /* its clock is */
    ahead_ms = add_named(host);
    EXPECT_TRUE(ahead_ms - before_ms >= HOUR_MS);
    host->topic = one;
    EXPECT_TRUE(add_named(host) >= ahead_ms);
    EXPECT_TRUE(named_ms(host) - ahead_ms < HOUR_MS);
}

/* Who starts nothing more of what it holds. */
TEST(only_leases_of_a_server_that_is_there_are_called_renewed)
{
    struct host *host;
    struct weir__store_topic *one, *other;

    spread_start(NULL);
    host = host_open("w1");
    one = spread_open(host, 0, 0);
    other = spread_open(host, 1, 0);
    AWAIT(other->place->server->is_up);
    EXPECT_TRUE(host->store->ops->renew(one, LEASE_LONG_MS));
    EXPECT_TRUE(host->store->ops->renew(other, LEASE_LONG_MS));
    cluster_kill(spread, 1);
    AWAIT(!host->store->ops->renew(other, LEASE_LONG_MS));
    EXPECT_TRUE(host->store->ops->renew(one, LEASE_LONG_MS));
    host->topic = one;
    (void)add_named(host);
    EXPECT_INT(1, host_claim(host, 1, LEASE_LONG_MS));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
}

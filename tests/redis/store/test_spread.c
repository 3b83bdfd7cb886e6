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

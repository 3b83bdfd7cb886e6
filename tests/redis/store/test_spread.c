/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/store/cluster.h"
#include "core/text.h"
#include "tests/redis/store/lease_fixture.h"
#include "tests/redis/store/spread_fixture.h"

/* One store, topics on several servers: what one server does is no matter to
 * topics of another one. */

enum { HOUR_MS = 3600000 };

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

/* Ask for jobs until the answer is this one. After an error claims rest for
 * half of the lease. */
static void claim_until(struct host *host, int code)
{
    struct patience patience = patience_start(20.);

    do {
        EXPECT_TRUE(!patience_ended(&patience));
        (void)host_claim(host, 1, 20000);
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
    EXPECT_TRUE(host->last_id[0] == '@');
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

/* No replica hears of anything any more. */
static void cut_replicas(int node)
{
    EXPECT_STR("OK", spread_text(node, "ACL SETUSER default -psync -sync"));
    EXPECT_TRUE(spread_int(node, "CLIENT KILL TYPE replica") > 0);
}

/* A job of the topic at `from` dies into a topic at another node, whose name is
 * returned, and is acknowledged there. */
static const char *die_into(struct host *host, int from, int to)
{
    static char target[WEIR_MAX_TOPIC + 1];
    char option[WEIR_MAX_TOPIC + 16];
    const struct weir__store_topic *topic;

    cluster_topic(spread, to, 0, target);
    (void)snprintf(option, sizeof(option), "on_dead=%s", target); /* fits */
    host_serve(host, option);
    topic = spread_open(host, from, 0);
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    host_bury(host, 1);
    AWAIT(spread_int(to, "HEXISTS weir:{%s}:ids a", target) == 1);
    AWAIT(spread_int(from, "EXISTS weir:{%s}:relay", topic->name) == 0);
    return target;
}

TEST(jobs_that_went_to_a_topic_whose_server_dies_are_sent_again)
{
    static const struct cluster_options options = {.replicas = 1};
    enum { REPLICA = SPREAD_NODES + 1 }; /* of the second node */
    struct host *host;
    const char *target;

    spread_start(&options);
    host = host_open("w1");
    cut_replicas(1);
    target = die_into(host, 0, 1);
    cluster_kill(spread, 1);
    cluster_take_over(spread, REPLICA);
    AWAIT(spread_int(REPLICA, "HEXISTS weir:{%s}:ids a", target) == 1);
    EXPECT_STR("1", spread_text(REPLICA, "HGET weir:{%s}:meta added", target));
}

static void add_durable(struct host *host, const char *id, int node)
{
    host_add(host, id, 0);
    AWAIT(spread_int(node, "HEXISTS weir:{%s}:ids %s", host->topic->name, id) ==
          1);
}

/* Nobody is told "perhaps", and nothing is added twice. */
TEST(adds_are_confirmed_where_their_slot_goes)
{
    static const struct cluster_options options = {.replicas = 1};
    enum { REPLICA = SPREAD_NODES }; /* of the first node */
    struct host *host;
    uint16_t slot;

    spread_start(&options);
    host = host_open("w1");
    host_serve(host, "durability=replica");
    slot = spread_open(host, 0, 0)->place->slot;
    add_durable(host, "a", 0);
    AWAIT(host->added == 1);
    cluster_move_slot(spread, slot, 1); /* before it is sent */
    add_durable(host, "b", 1);
    AWAIT(host->added == 2);
    cluster_move_slot(spread, slot, 0);
    AWAIT(host->topic->place->server->is_up);
    add_durable(host, "c", 0);
    AWAIT(host->added == 3);
    cluster_kill(spread, REPLICA);
    add_durable(host, "d", 0); /* is not confirmed there */
    cluster_move_slot(spread, slot, 1);
    AWAIT(host->added == 4 || host->failed > 0);
    EXPECT_INT(0, host->failed);
    EXPECT_STR("4",
               spread_text(1, "HGET weir:{%s}:meta added", host->topic->name));
}

TEST(adds_are_confirmed_where_their_primary_hands_over)
{
    static const struct cluster_options options = {.replicas = 1};
    enum { REPLICA = SPREAD_NODES }; /* of the first node */
    struct host *host;

    spread_start(&options);
    host = host_open("w1");
    host_serve(host, "durability=replica");
    (void)spread_open(host, 0, 0);
    add_durable(host, "a", 0);
    AWAIT(host->added == 1);
    host_add(host, "b", 0);
    world_turn(); /* it may be on its way, or be done */
    cluster_fail_over(spread, REPLICA);
    host_add(host, "c", 0);
    AWAIT(host->added == 3 || host->failed > 0);
    EXPECT_INT(0, host->failed);
    EXPECT_STR("3", spread_text(REPLICA, "HGET weir:{%s}:meta added",
                                host->topic->name));
}

/* A program may end with the answer to its first job. */
TEST(a_job_is_answered_when_its_topic_is_listed)
{
    const struct weir__store_topic *topic;
    struct host *host;
    int listing;

    spread_start(NULL);
    listing = listing_node();
    EXPECT_TRUE(listing != 0); /* at the first one we are already */
    host = host_open("w1");
    topic = spread_open(host, 0, 0);
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(1, spread_int(listing, "SISMEMBER weir:topics %s", topic->name));
}

TEST(a_topic_that_is_paused_or_set_first_is_listed_when_it_is_answered)
{
    const struct weir__store_topic *topic;
    struct host *host;
    int listing;

    spread_start(NULL);
    listing = listing_node();
    EXPECT_TRUE(listing != 0); /* at the first one we are already */
    host = host_open("w1");
    topic = spread_open(host, 0, 0);
    EXPECT_INT(WEIR_OK, host_pause(host, true));
    EXPECT_INT(1, spread_int(listing, "SISMEMBER weir:topics %s", topic->name));
    host = host_open("w2");
    topic = spread_open(host, 0, 1);
    EXPECT_INT(WEIR_OK, host_set(host, "retry", "1s"));
    EXPECT_INT(1, spread_int(listing, "SISMEMBER weir:topics %s", topic->name));
}

TEST(a_topic_is_set_where_the_list_of_topics_is_away)
{
    struct host *host;

    spread_start(NULL);
    EXPECT_TRUE(listing_node() != 0);
    cluster_kill(spread, listing_node());
    host = host_open("w1");
    (void)spread_open(host, 0, 0);
    EXPECT_INT(WEIR_OK, host_set(host, "retry", "1s"));
    EXPECT_INT(WEIR_OK, host_pause(host, true));
}

TEST(a_job_is_taken_where_the_list_of_topics_is_away)
{
    struct host *host;

    spread_start(NULL);
    EXPECT_TRUE(listing_node() != 0);
    cluster_kill(spread, listing_node());
    host = host_open("w1");
    (void)spread_open(host, 0, 0);
    host_add(host, "a", 0);
    AWAIT(host->added == 1);
    EXPECT_INT(0, host->refused);
}

/* All keys of a claim are there, and `wait` is emptied before some of it goes
 * back. */
TEST(a_claim_does_not_end_in_the_middle_while_its_slot_is_open)
{
    struct weir__claim claim = {.room = 1, .lease_ms = LEASE_LONG_MS};
    const char *name;
    struct host *host;
    uint16_t slot;

    spread_start(NULL);
    host = host_open("w1");
    slot = spread_open(host, 0, 0)->place->slot;
    name = host->topic->name;
    for (int i = 0; i < 4; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == 4);
    EXPECT_INT(1, spread_int(0, "ZCARD weir:{%s}:wait", name));
    for (const char *const *key =
             (const char *const[]){
                 "HSET weir:{%s}:ids x y", "HSET weir:{%s}:held x y",
                 "HSET weir:{%s}:due x y", "ZADD weir:{%s}:run 1 x",
                 "ZADD weir:{%s}:idle 1 x", "ZADD weir:{%s}:lease 9e14 1",
                 NULL};
         *key != NULL; key++)
        EXPECT_INT(1, spread_int(0, *key, name));
    cluster_open_slot(spread, slot, 1);
    EXPECT_INT(WEIR_OK, host->store->ops->claim(host->topic, &claim));
    AWAIT(host->claims == 1 ||
          strstr(spread_text(0, "INFO errorstats"), "_TRYAGAIN") != NULL);
    cluster_move_keys(spread, slot, 1);
    cluster_close_slot(spread, slot, 1);
    AWAIT(host->claims == 1); /* it went to the old server */
    claim_until(host, WEIR_OK);
    (void)host_claim(host, 3, LEASE_LONG_MS);
    EXPECT_INT(4, host->arrived);
}

/* All keys of stats are there, and the one node that waits is split where some
 * of it is due. */
TEST(stats_lose_nothing_while_their_slot_is_open)
{
    struct patience patience = patience_start(60.);
    struct host *host;
    const char *name;
    uint16_t slot;

    spread_start(NULL);
    host = host_open("w1");
    slot = spread_open(host, 0, 0)->place->slot;
    name = host->topic->name;
    host_add(host, NULL, 0);
    host_add(host, NULL, HOUR_MS);
    AWAIT(host->added == 2);
    EXPECT_INT(1, spread_int(0, "ZCARD weir:{%s}:wait", name));
    EXPECT_INT(1, spread_int(0, "ZADD weir:{%s}:dead 1 x", name));
    EXPECT_INT(1, spread_int(0, "HSET weir:{%s}:relay x y", name));
    EXPECT_INT(1, spread_int(0, "HSET weir:{%s}:late x y", name));
    EXPECT_INT(1, spread_int(0, "ZADD weir:{%s}:lease 9e15 1", name));
    cluster_open_slot(spread, slot, 1);
    do {
        EXPECT_TRUE(!patience_ended(&patience));
        (void)host_stats(host);
    } while (host->stats_code == WEIR_OK && host->stats.ready == 0);
    EXPECT_INT(2, spread_int(0, "ZCARD weir:{%s}:wait", name));
    EXPECT_INT(1, host->stats.ready);
}

/* Of a topic where nothing is due: a job of somebody else's wakes the host,
 * who takes it and is idle again. */
static void wake_idle(struct host *host, struct host *other)
{
    int wakes = host->wakes;

    host_add(other, NULL, 0);
    AWAIT(host->wakes > wakes);
    AWAIT(host_claim(host, 1, LEASE_LONG_MS) == 1);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host_claim(host, 1, LEASE_LONG_MS));
}

TEST(who_is_idle_is_woken_whichever_node_has_the_slot_by_then)
{
    static const struct cluster_options options = {.replicas = 1};
    struct host *host, *other;
    uint16_t slot;

    spread_start(&options);
    host = host_open("w1");
    other = host_open("w2");
    slot = spread_open(host, 0, 0)->place->slot;
    (void)spread_open(other, 0, 0);
    other->store->ops->topic_listen(other->topic, NULL);
    EXPECT_INT(0, host_claim(host, 1, LEASE_LONG_MS));
    wake_idle(host, other);
    cluster_move_slot(spread, slot, 1);
    wake_idle(host, other); /* by the node that had it */
    wake_idle(host, other);
    /* A replica that lacks the last verdict gives its job out again. */
    (void)spread_text(1, "SET weir:{%s}:x 1", host->topic->name);
    EXPECT_INT(1, spread_int(1, "WAIT 1 60000"));
    cluster_kill(spread, 1);
    cluster_take_over(spread, SPREAD_NODES + 1);
    (void)host_stats(host);
    EXPECT_INT(0, host_claim(host, 1, LEASE_LONG_MS));
    wake_idle(host, other);
    EXPECT_INT(0, host->refused);
}

static void add_one(struct host *host)
{
    int added = host->added;

    host_add(host, NULL, 0);
    AWAIT(host->added > added);
}

/* Nobody tells a connection that waits at such a server. */
TEST(who_waits_at_a_server_that_stands_still_waits_at_the_one_that_took_over)
{
    static const char *const kinds[] = {"list", "stream", "sync", "concurrent"};
    static const struct cluster_options options = {.replicas = 1};
    struct weir__store_topic *topics[4];
    struct host *host;
    int wakes;

    spread_start(&options);
    host = host_open("w1");
    for (int i = 0; i < 4; i++) {
        topics[i] = spread_open_kind(host, kinds[i], 0, i);
        add_one(host);
        AWAIT(host_claim(host, 1, LEASE_LONG_MS) == 1);
        host_settle_all(host, WEIR__OUTCOME_DONE);
        host_await_settled(host);
        if (i < 2)
            EXPECT_INT(0, host_claim(host, 1, LEASE_LONG_MS));
    }
    cluster_pause(spread, 0);
    cluster_take_over(spread, SPREAD_NODES);
    (void)host_stats(host);
    for (int i = 0; i < 4; i++) {
        host->topic = topics[i];
        wakes = host->wakes;
        add_one(host);
        if (i < 2)
            AWAIT(host->wakes > wakes);
        AWAIT(host_claim(host, 1, LEASE_LONG_MS) == 1);
    }
    EXPECT_CONTAINS("its topic is at another server", world_log);
}

static bool has_clients(int node)
{
    return strstr(spread_text(node, "CLIENT LIST"), "name=w1") != NULL;
}

/* It stays while it owes an answer. */
static bool is_closed_as_spare(struct host *host, int node)
{
    weir__cluster_end_spare(host->topic->store);
    return !has_clients(node);
}

TEST(a_server_without_a_place_is_closed_and_opened_again_when_it_has_one)
{
    struct host *host;
    uint16_t slot;
    int own;

    spread_start(NULL);
    own = listing_node() == 1 ? 2 : 1; /* nor is it the address */
    slot = weir__cluster_slot(weir__slice_str("t"));
    if (cluster_owner(spread, slot) == own) /* that of the host's own topic */
        cluster_move_slot(spread, slot, 0);
    host = host_open("w1");
    slot = spread_open(host, own, 0)->place->slot;
    (void)add_named(host);
    EXPECT_TRUE(has_clients(own));
    weir__cluster_end_spare(host->topic->store);
    weir__cluster_end_spare(host->topic->store);
    (void)add_named(host);
    EXPECT_TRUE(has_clients(own));
    cluster_move_slot(spread, slot, 0);
    (void)add_named(host);
    weir__cluster_end_spare(host->topic->store);
    EXPECT_TRUE(has_clients(own));
    AWAIT(is_closed_as_spare(host, own));
    (void)add_named(host);
    cluster_move_slot(spread, slot, own);
    (void)add_named(host);
    EXPECT_TRUE(has_clients(own));
    EXPECT_INT(0, host->failed);
}

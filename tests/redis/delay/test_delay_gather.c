/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/delay/private.h"
#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* Adds that gather behind calls that are out: each is answered exactly once,
 * whatever happens meanwhile. */

enum { MOST = 20000, TOPICS = 1000 };

static uint8_t answers[MOST];
static int codes[20]; /* by -code */
static int answered;

static void on_added(int code, const char *id, void *arg)
{
    size_t number = (size_t)(uintptr_t)arg;

    (void)id;
    EXPECT_TRUE(number < MOST && code > -20);
    answers[number]++;
    codes[-code]++;
    answered++;
}

static int add_body(struct host *host, struct weir__store_topic *topic,
                    int number, struct weir_slice body)
{
    const struct weir__record record = {.body = body};
    char id[32];
    struct weir__new_job job = {.record = &record};

    (void)snprintf(id, sizeof(id), "job-%d", number);
    job.id = weir__slice_str(number % 3 == 0 ? "" : id);
    job.delay_ms = number % 7 == 0 ? 3600000 + number : 0;
    return host->store->ops->add(topic, &job, on_added,
                                 (void *)(uintptr_t)number);
}

static void add(struct host *host, struct weir__store_topic *topic, int number)
{
    static const uint8_t seven[] = {7};

    EXPECT_INT(WEIR_OK,
               add_body(host, topic, number, weir__slice_of(seven, 1)));
}

static void add_in_turns(struct host *host, int from, int to)
{
    for (int i = from; i < to; i++) {
        add(host, host->topic, i);
        if (i % 5 == 0)
            host->store->ops->flush(host->store);
    }
}

static void expect_once(int count)
{
    EXPECT_INT(count, answered);
    for (int i = 0; i < count; i++)
        EXPECT_INT(1, answers[i]);
}

static uint64_t stored(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_stats(host));
    return host->stats.added_total;
}

static struct host *open_one(void)
{
    struct host *host = host_open("w1");

    add(host, host->topic, 0); /* from now on limits are known */
    AWAIT(answered == 1);
    return host;
}

TEST(adds_that_gather_are_canceled_once)
{
    struct host *host = open_one();

    add_in_turns(host, 1, 3000);
    EXPECT_INT(1, answered);
    host_close(host);
    expect_once(3000);
    EXPECT_INT(2999, codes[-WEIR_ECANCELED]);
}

/* Of one list, and more than may be on its way at a time. */
static void add_many(struct host *host, int from, int to)
{
    for (int i = from; i < to; i++)
        add(host, host->topic, i);
}

TEST(adds_that_were_sent_in_part_are_canceled_once)
{
    struct host *host = open_one();

    add_many(host, 1, 10001);
    host->store->ops->flush(host->store);
    EXPECT_TRUE(((struct weir__delay_topic *)host->topic)->sending != NULL);
    host_close(host);
    expect_once(10001);
    EXPECT_INT(10000, codes[-WEIR_ECANCELED]);
}

TEST(adds_that_were_sent_in_part_are_all_sent)
{
    struct host *host = open_one();

    add_many(host, 1, 10001);
    AWAIT(answered == 10001);
    expect_once(10001);
    EXPECT_INT(10001, codes[0]);
    EXPECT_INT(10001, stored(host));
}

/* They wait for a connection as long as those that were sent. */
TEST(adds_that_gather_are_told_when_the_server_is_gone)
{
    struct host *host = open_one();
    struct weir__redis *base =
        (struct weir__redis *)host->store; /* its begin */

    base->servers->commands->options.wait_ms = 2000;
    redis_kill(proc, SIGSTOP);
    add_in_turns(host, 1, 100);
    redis_kill(proc, SIGKILL);
    AWAIT(!host->is_up);
    world_turn();
    EXPECT_TRUE(
        ((struct weir__delay_topic *)host->topic)->base.limits.is_asked);
    AWAIT(answered == 100);
    expect_once(100);
    EXPECT_INT(1, codes[0]);
}

TEST(adds_that_gather_outlive_a_restart)
{
    static const struct redis_options aof = {.appendonly = true};
    (void)world_open(&aof);
    struct host *host = open_one();

    add_in_turns(host, 1, 2000);
    world_turns(1);
    redis_kill(proc, SIGKILL);
    add_in_turns(host, 2000, 4000);
    world_turn();
    add_in_turns(host, 4000, 4100);
    redis_restart(proc);
    AWAIT(answered == 4100);
    expect_once(4100);
    EXPECT_INT(4100, codes[0]);
    EXPECT_INT(4100, stored(host));
}

TEST(adds_that_gather_outlive_scripts_that_are_flushed)
{
    struct host *host = open_one();

    for (int i = 1; i < 4000; i += 10) {
        EXPECT_STR("OK", redis_text(proc, "SCRIPT FLUSH"));
        add_in_turns(host, i, i + 10);
        world_turns(1);
    }
    AWAIT(answered == 4001);
    expect_once(4001);
    EXPECT_INT(4001, codes[0]);
    EXPECT_INT(4001, stored(host));
}

TEST(adds_that_gather_are_refused_by_a_full_server)
{
    struct host *host = open_one();

    add_in_turns(host, 1, 2000);
    (void)redis_text(proc, "CONFIG SET maxmemory 1");
    add_in_turns(host, 2000, 3000);
    AWAIT(answered == 3000);
    (void)redis_text(proc, "CONFIG SET maxmemory 0");
    expect_once(3000);
    EXPECT_TRUE(codes[-WEIR_ESERVER] > 0);
    EXPECT_INT(3000, codes[0] + codes[-WEIR_ESERVER]);
    EXPECT_INT(codes[0], stored(host));
}

/* --- large bodies --------------------------------------------------------- */

enum { MIB = 1024 * 1024, BODY = MIB };

/* As large as a body may be. */
static uint8_t body[BODY] = {0xc6, 0, 0x0f, 0xff, 0xfb};

/* Until it is full. Returns behind the last one that was taken. */
static int fill(struct host *host, int number)
{
    while (add_body(host, host->topic, number, weir__slice_of(body, BODY)) ==
           WEIR_OK)
        number++;
    return number;
}

static const struct weir__place *place_of(const struct host *host)
{
    return host->topic->place;
}

/* Of what is collected a part is written for the connection at a time, and all
 * of it together is bounded. */
TEST(large_bodies_leave_in_parts)
{
    struct host *host = open_one();
    int count = fill(host, 1);

    EXPECT_TRUE(count > 31 * MIB / BODY && count <= 33 * MIB / BODY);
    host->store->ops->flush(host->store);
    EXPECT_TRUE(weir__place_queued(place_of(host)) <= 6 * MIB);
    while (answered < count) {
        world_turns(1);
        EXPECT_TRUE(weir__place_queued(place_of(host)) <= 6 * MIB);
    }
    count = fill(host, count);
    EXPECT_TRUE(count > 60 * MIB / BODY);
    AWAIT(answered == count);
    expect_once(count);
    EXPECT_INT(count, codes[0]);
    EXPECT_INT(count, stored(host));
}

TEST(large_bodies_share_calls)
{
    struct host *host = open_one();
    const struct weir__conn *commands = host->topic->place->server->commands;

    for (int i = 0; i < 28; i++)
        EXPECT_INT(WEIR_OK, add_body(host, host->topic, 1 + 3 * i,
                                     weir__slice_of(body, 64 * 1024)));
    host->store->ops->flush(host->store);
    EXPECT_INT(1, commands->queued_calls);
    AWAIT(answered == 29);
    EXPECT_INT(29, stored(host));
}

TEST(large_bodies_are_canceled_once)
{
    struct host *host = open_one();
    int count = fill(host, 1);

    world_turn();
    host_close(host);
    expect_once(count);
    EXPECT_INT(count, codes[0] + codes[-WEIR_ECANCELED]);
    EXPECT_TRUE(codes[-WEIR_ECANCELED] > 0);
}

TEST(large_bodies_are_told_when_the_server_is_gone)
{
    struct host *host = open_one();
    struct weir__redis *base =
        (struct weir__redis *)host->store; /* its begin */
    int count;

    base->servers->commands->options.wait_ms = 2000;
    redis_kill(proc, SIGSTOP);
    count = fill(host, 1);
    host->store->ops->flush(host->store);
    redis_kill(proc, SIGKILL);
    AWAIT(!host->is_up);
    AWAIT(answered == count);
    expect_once(count);
    EXPECT_INT(1, codes[0]);
}

TEST(large_bodies_outlive_a_restart)
{
    static const struct redis_options aof = {.appendonly = true};
    (void)world_open(&aof);
    struct host *host = open_one();
    int count = fill(host, 1);

    world_turn();
    redis_kill(proc, SIGKILL);
    redis_restart(proc);
    AWAIT(answered == count);
    expect_once(count);
    EXPECT_INT(count, codes[0]);
    EXPECT_INT(count, stored(host));
}

/* Those that are refused leave room for others. */
static void expect_room(struct host *host, int count)
{
    int first = answered, ok = codes[0];

    EXPECT_INT(first + count, fill(host, first));
    AWAIT(answered == first + count);
    expect_once(first + count);
    EXPECT_INT(ok + count, codes[0]);
    EXPECT_INT(codes[0], stored(host));
}

TEST(large_bodies_are_refused_where_as_many_wait_as_may)
{
    struct host *host = open_one();
    int count;

    EXPECT_INT(WEIR_OK, host_set(host, "max_pending", "10"));
    count = fill(host, 1);
    AWAIT(answered == count);
    EXPECT_INT(10, codes[0]);
    EXPECT_INT(count - 10, codes[-WEIR_EFULL]);
    EXPECT_INT(WEIR_OK, host_set(host, "max_pending", "1000"));
    expect_room(host, count - 1);
}

TEST(large_bodies_are_refused_by_a_full_server)
{
    struct host *host = open_one();
    int count;

    (void)redis_text(proc, "CONFIG SET maxmemory 1");
    count = fill(host, 1);
    AWAIT(answered == count);
    EXPECT_INT(count - 1, codes[-WEIR_ESERVER]);
    (void)redis_text(proc, "CONFIG SET maxmemory 0");
    expect_room(host, count - 1);
}

/* --- many topics ---------------------------------------------------------- */

static struct weir__store_topic *topics[TOPICS];

static void open_topics(struct host *host, int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        struct weir__store_topic_options options = {0};

        (void)snprintf(name, sizeof(name), "g%d", i);
        options.name = weir__slice_str(name);
        EXPECT_INT(WEIR_OK, host->store->ops->topic_open(host->store, &options,
                                                         &topics[i]));
    }
}

static struct weir__conn *commands_of(struct host *host)
{
    struct weir__redis *base =
        (struct weir__redis *)host->store; /* its begin */

    return base->servers->commands;
}

/* In turns, each with a job of each of some topics. */
static void add_round(struct host *host, int from, int to, int count)
{
    for (int i = from; i < to; i++) {
        add(host, topics[i % count], i);
        if (i % count == count - 1)
            host->store->ops->flush(host->store);
    }
}

/* A few calls keep the server busy; what the others have to say is said in one
 * call each when there is room. */
TEST(topics_gather_while_the_server_has_enough_to_do)
{
    enum { COUNT = 50, WARM = 100, ALL = 5050 };
    struct host *host = open_one();
    struct weir__conn *commands = commands_of(host);
    uint64_t sent;

    open_topics(host, COUNT);
    add_round(host, 1, WARM, COUNT);
    AWAIT(answered == WARM);
    commands->answer_ns = 1; /* the server is near */
    sent = weir__conn_sent(commands);
    redis_kill(proc, SIGSTOP);
    add_round(host, WARM, ALL, COUNT);
    EXPECT_TRUE(weir__conn_is_busy(commands));
    EXPECT_TRUE(weir__conn_sent(commands) - sent < COUNT);
    redis_kill(proc, SIGCONT);
    AWAIT(answered == ALL);
    expect_once(ALL);
    EXPECT_INT(ALL, codes[0]);
    EXPECT_TRUE(weir__conn_sent(commands) - sent < 30 * COUNT);
    EXPECT_TRUE(!weir__conn_is_busy(commands));
}

/* It gathers by itself, and has nobody to leave room for. */
TEST(a_topic_that_alone_has_something_to_say_does_not_wait)
{
    enum { WARM = 2, ALL = 5002 };
    struct host *host = open_one();
    struct weir__conn *commands = commands_of(host);

    open_topics(host, 1);
    add_round(host, 1, WARM, 1);
    AWAIT(answered == WARM);
    commands->answer_ns = 1; /* the server is near */
    redis_kill(proc, SIGSTOP);
    for (int i = WARM; i < ALL; i++)
        add(host, topics[0], i);
    host->store->ops->flush(host->store);
    EXPECT_TRUE(weir__conn_is_busy(commands));
    add(host, topics[0], ALL);
    host->store->ops->flush(host->store);
    EXPECT_TRUE(!topics[0]->is_dirty);
    redis_kill(proc, SIGCONT);
    AWAIT(answered == ALL + 1);
    expect_once(ALL + 1);
}

/* Where an answer takes its time so many more calls are on their way. */
TEST(topics_do_not_wait_for_a_server_that_is_far)
{
    enum { COUNT = 50, WARM = 100, ALL = 150 };
    struct host *host = open_one();

    open_topics(host, COUNT);
    add_round(host, 1, WARM, COUNT);
    AWAIT(answered == WARM);
    commands_of(host)->answer_ns = 10 * 1000 * 1000;
    redis_kill(proc, SIGSTOP);
    add_round(host, WARM, ALL, COUNT);
    for (int i = 0; i < COUNT; i++)
        EXPECT_TRUE(!topics[i]->is_dirty);
    redis_kill(proc, SIGCONT);
    AWAIT(answered == ALL);
    expect_once(ALL);
}

TEST(adds_gather_in_many_topics)
{
    struct host *host = open_one();

    open_topics(host, TOPICS);
    for (int i = 1; i < 10001; i++) {
        add(host, topics[i % TOPICS], i);
        if (i % TOPICS == 0)
            host->store->ops->flush(host->store);
    }
    AWAIT(answered == 10001);
    expect_once(10001);
    EXPECT_INT(10001, codes[0]);
    EXPECT_INT(10000, redis_int(proc, "EVAL %s 0",
                                "local n = 0 for _, k in ipairs(redis.call("
                                "'KEYS', 'weir:{g*}:meta')) do n = n + "
                                "redis.call('HGET', k, 'added') end return n"));
}

/* Of one list. Returns how many calls it took. */
static uint64_t calls_for(struct host *host, int count)
{
    static const uint8_t seven[] = {7};
    const struct weir__record record = {.body = weir__slice_of(seven, 1)};
    uint64_t sent = weir__conn_sent(commands_of(host));
    int packs = count / WEIR__SLOTS_MAX, first = answered;

    for (int i = 0; i < count; i++) {
        char id[32];
        struct weir__new_job job = {.record = &record};

        (void)snprintf(id, sizeof(id), "one-%d", first + i);
        job.id = weir__slice_str(id);
        EXPECT_INT(WEIR_OK, host->store->ops->add(
                                host->topic, &job, on_added,
                                (void *)(uintptr_t)((first + i) % MOST)));
    }
    AWAIT(answered == first + count);
    return weir__conn_sent(commands_of(host)) - sent - (uint64_t)packs;
}

/* Of the last calls: what a slot of the fastest one took. */
static int64_t least_cost(const struct host *host)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)host->topic; /* its first member */
    int64_t least = topic->add_costs[0];

    for (size_t i = 1; i < WEIR__ADD_COSTS; i++)
        if (topic->add_costs[i] < least)
            least = topic->add_costs[i];
    return least;
}

static void say_costs(struct host *host, int64_t ns)
{
    struct weir__delay_topic *topic = (struct weir__delay_topic *)host->topic;

    for (size_t i = 0; i < WEIR__ADD_COSTS; i++)
        topic->add_costs[i] = ns;
}

/* The server goes through an index of ids from its first one on, and then
 * through none. */
TEST(calls_get_smaller_where_they_take_long)
{
    enum { SLOW_NS = 20000 };
    struct host *host = open_one();

    (void)calls_for(host, 1024); /* the first one loads the script */
    say_costs(host, 1);
    EXPECT_INT(1, calls_for(host, 1024));
    redis_text(proc, "DEL weir:{t}:ids");
    redis_text(proc, "CONFIG SET hash-max-ziplist-entries 100000");
    for (int i = 0; i < 100 && least_cost(host) < SLOW_NS; i++)
        (void)calls_for(host, 1024);
    EXPECT_TRUE(least_cost(host) >= SLOW_NS);
    EXPECT_INT(4, calls_for(host, 1024));
    redis_text(proc, "CONFIG SET hash-max-ziplist-entries 1");
    for (int i = 0; i < 1000 && least_cost(host) >= SLOW_NS / 4; i++)
        (void)calls_for(host, 1024);
    EXPECT_TRUE(least_cost(host) < SLOW_NS / 4);
}

/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/outbox.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/private.h"
#include "adapters/redis/delay/private.h"
#include "adapters/redis/store/relay.h"
#include "core/text.h"
#include "tests/redis/store/line_fixture.h"

/* Jobs of the topic "t" for the topic "one" while they lie in the outbox, and
 * what somebody else put there. */

static void follow_to(struct host *host, const char *topic)
{
    const struct weir_follow follow = {0};
    struct weir__run *run = host_take(host);

    EXPECT_INT(WEIR_OK, weir__follow_add(&run->follows, weir__slice_str(topic),
                                         &follow, (struct weir_slice){0}));
    host_settle(host, run, WEIR__OUTCOME_DONE);
}

/* Claim so many jobs, each of which adds one. */
static void work(struct host *host, size_t jobs)
{
    EXPECT_INT(jobs, host_claim(host, jobs, 60000));
    while (host->runs != NULL)
        follow_to(host, "one");
    host_await_settled(host);
}

static void add_jobs(struct host *host, int jobs)
{
    int before = host->added;

    for (int i = 0; i < jobs; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == before + jobs);
}

static uint64_t relaying(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_stats(host));
    return host->stats.relaying;
}

static long long count_there(void)
{
    return redis_int(proc, "ZCARD weir:{one}:wait");
}

/* "one" takes no job before `room` says how many may wait there. */
static void set_room(const char *room)
{
    (void)redis_text(proc, "HSET weir:{one}:meta kind delay max_pending %s",
                     room);
}

static void fill(void)
{
    set_room("1");
    (void)redis_text(proc, "HSET weir:{one}:meta added 1");
}

/* All that lies in the outbox is old, and the next claim looks for that. */
static void grow_old(struct host *host)
{
    host->topic->place->server->ahead_ms += 10000;
    weir__delay_topic_of(host->topic)->outbox.look_ns = 0;
}

static void look(struct host *host)
{
    grow_old(host);
    (void)host_claim(host, 0, 60000);
}

/* --- many ----------------------------------------------------------------- */

/* Of a later version: nobody sends or removes these. */
static const char plant[] =
    "for i = 1, tonumber(ARGV[1]) do "
    "  redis.call('HSET', KEYS[1], string.format('%012d', i), "
    "             cmsgpack.pack({ 2, 'one', 'delay', '!', 1, 1, 8, 'a0', '', "
    "                             '' })) "
    "end return 1";
static const char unplant[] =
    "for i = 1, tonumber(ARGV[1]) do "
    "  redis.call('HDEL', KEYS[1], string.format('%012d', i)) "
    "end return 1";

/* A claim that is not sent. */
static void claim_in_vain(struct host *host)
{
    EXPECT_INT(0, host_claim(host, 10, 60000));
    EXPECT_INT(WEIR_ESERVER, host->claimed.code);
}

TEST(ten_thousand_packs_stop_claims_until_there_are_fewer)
{
    struct host *host = host_open("w1");

    fill();
    add_jobs(host, 3);
    (void)redis_int(proc, "EVAL %s 1 weir:{t}:relay 9998", plant);
    work(host, 1); /* the 9,999th pack: on it goes */
    work(host, 1);
    EXPECT_INT(10000, relaying(host));
    for (int i = 0; i < 3; i++)
        claim_in_vain(host);
    EXPECT_INT(1, host->stats.ready);
    (void)redis_int(proc, "EVAL %s 1 weir:{t}:relay 1", unplant);
    claim_in_vain(host); /* it asks how many there are */
    work(host, 1);
    (void)redis_int(proc, "EVAL %s 1 weir:{t}:relay 9998", unplant);
    set_room("100");
    AWAIT(relaying(host) == 0);
    EXPECT_INT(3, count_there());
}

enum { TOPICS = 20 };

/* So many topics that are full, and for each a job in the outbox. */
static struct host *open_with_full_topics(void)
{
    struct host *host = host_open("w1");
    char name[16];

    add_jobs(host, TOPICS);
    EXPECT_INT(TOPICS, host_claim(host, TOPICS, 60000));
    for (int i = 0; i < TOPICS; i++) {
        (void)snprintf(name, sizeof(name), "full%d", i);
        (void)redis_text(
            proc, "HSET weir:{%s}:meta kind delay max_pending 1 added 1", name);
        follow_to(host, name);
    }
    host_await_settled(host);
    EXPECT_INT(TOPICS, relaying(host));
    return host;
}

/* Wherever it is among them. */
static void expect_each_in_turn(struct host *host, void (*turn)(struct host *))
{
    for (int i = TOPICS; i > 0; i--) {
        (void)redis_text(proc, "HSET weir:{full%d}:meta max_pending 9", i - 1);
        while (relaying(host) == (uint64_t)i)
            turn(host);
        EXPECT_INT(i - 1, relaying(host));
    }
}

static void wait(struct host *host)
{
    (void)host;
    world_turn();
}

TEST(many_full_topics_do_not_hold_up_one_that_has_room)
{
    expect_each_in_turn(open_with_full_topics(), wait);
}

TEST(old_jobs_for_many_full_topics_do_not_hold_up_those_for_others)
{
    struct host *other;

    host_close(open_with_full_topics());
    other = host_open("w2");
    expect_each_in_turn(other, look);
}

/* --- the line is cut ------------------------------------------------------ */

/* Has recorded a job for "one", and stands still; nobody heard of it yet. */
static void record_one(struct host *host)
{
    add_jobs(host, 1);
    EXPECT_INT(1, host_claim(host, 1, 60000));
    follow_to(host, "one");
    host->store->ops->flush(host->store);
    while (world_count("t", "settled") == 0)
        continue;
    (void)world_count("t", "settled"); /* the answer has left by now */
    redis_kill(proc, SIGSTOP);
}

/* What was sent is given up soon where no connection comes. */
static void lose_patience(struct host *host)
{
    host->topic->store->servers->commands->options.wait_ms = 20;
}

/* The server runs until the pack is staged in "one". The add has left when this
 * returns, and no server reads it. */
static void send_staged(struct host *host)
{
    const struct weir__relay *relay =
        weir__delay_topic_of(host->topic)->outbox.relays;
    void (*done)(struct weir__request *, int, const struct redisReply *) =
        relay->request.done;

    redis_kill(proc, SIGCONT);
    while (redis_int(proc, "EVAL %s 0",
                     "return #redis.call('KEYS', 'weir:{one}:p:*')") == 0)
        continue;
    redis_kill(proc, SIGSTOP);
    AWAIT(relay->request.done != done);
}

/* Its pack is gone by then: nothing but the call slot tells that it was. */
TEST(a_job_whose_add_to_the_other_topic_was_not_answered_is_there_once)
{
    struct host *host = host_open("w1"), *other = host_open("w2");

    lose_patience(host);
    host_use(other, "one");
    record_one(host);
    AWAIT(host->settled == 1); /* and stages the pack */
    send_staged(host);
    host_lose_answer(host, "one", "added", 0);
    EXPECT_INT(1, host_claim(other, 10, 60000));
    host_settle_all(other, WEIR__OUTCOME_DONE);
    host_await_settled(other);
    EXPECT_INT(0, redis_int(proc, "EVAL %s 0",
                            "return #redis.call('KEYS', 'weir:{one}:p:*')"));
    AWAIT(strstr(world_log, "t relay: connection lost") != NULL);
    world_hide_server(false);
    AWAIT(host->is_up);
    AWAIT(relaying(host) == 0);
    EXPECT_INT(1, world_count("one", "added"));
    EXPECT_INT(0, count_there());
}

static bool are_call_slots_free(const struct host *host)
{
    const struct weir__call_slots *slots = &host->topic->store->call_slots;

    return slots->count > 0 && slots->free_count == slots->count;
}

/* Else each such outage would use some for ever. */
TEST(a_verdict_that_was_not_answered_gives_its_call_slot_back_later)
{
    struct host *host = host_open("w1");

    lose_patience(host);
    add_jobs(host, 2);
    EXPECT_INT(2, host_claim(host, 2, 60000));
    host_settle(host, host_take(host), WEIR__OUTCOME_DONE);
    host_await_settled(host); /* the server has the script: no call is cut */
    follow_to(host, "one");
    redis_kill(proc, SIGSTOP);
    host_lose_answer(host, "t", "settled", 1);
    host_await_settled(host);
    EXPECT_INT(1, host->refused);
    EXPECT_TRUE(!are_call_slots_free(host));
    world_hide_server(false);
    AWAIT(are_call_slots_free(host));
    EXPECT_INT(0, relaying(host));
    EXPECT_INT(1, world_count("one", "added"));
    EXPECT_INT(2, host->settled);
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
}

TEST(a_verdict_of_a_list_that_is_refused_gives_its_call_slot_back)
{
    struct host *host =
        host_open_as("w1", "list", (const char *const[]){"on_retry=one", NULL});

    EXPECT_INT(1, redis_int(proc, "RPUSH t 1"));
    EXPECT_INT(1, host_claim(host, 1, 60000));
    (void)redis_text(proc, "SET weir:{t}:relay x");
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_CONTAINS("WRONGTYPE", world_log);
    EXPECT_TRUE(are_call_slots_free(host));
}

/* --- written by somebody else --------------------------------------------- */

/* Of these names the time is long past. Values are written in Lua; an entry is
 * 1, target, kind, call slot, number, jobs, header length, when, slots to leave
 * out, second pack. */
static const struct {
    const char *name, *value;
} foreign[] = {
    {"short", "'x'"},
    {"no name at a", "'x'"},
    {"000000000001", "'x'"},
    {"000000000002", "''"},
    {"000000000003", "string.rep('\\255', 40)"},
    {"000000000004", "p(1)"},
    {"000000000005", "p({1, 'one', 'delay'})"},
    {"000000000006", "p({{}, {}, {}, {}, {}, {}, {}, {}, {}, {}})"},
    {"000000000007", "p({1, 'a blank', 'delay', '!a', 1, 1, 8, 'a1', '', ''})"},
    {"000000000008", "p({1, 'one', 'delay', 'a', 1, 1, 8, 'a1', '', ''})"},
    {"000000000009", "p({1, 'one', 'delay', '!a', 1e15, 1, 8, 'a1', '', ''})"},
    {"00000000000A", "p({1, 'one', 'delay', '!a', 1, 0, 8, 'a1', '', ''})"},
    {"00000000000B", "p({1, 'one', 'delay', '!a', 1, 257, 8, 'a1', '', ''})"},
    {"00000000000C", "p({1, 'one', 'delay', '!a', 1, 1, 2^40, 'a1', '', ''})"},
    {"00000000000D", "p({1, 'one', 'delay', '!a', 1, 2, 8, 'a1', '\\7', ''})"},
    {"00000000000E", "p({1, 'one', 'delay', '!a', 1, 1, 8, 'a1', '\\0', ''})"},
    {"00000000000F", "p({1, 'one', 'delay', '!a', 1, 1, 8, 'a1', '', '!'})"},
    {"zzzzzzzzzzzz", "'x'"}, /* of a time to come */
};

enum { FOREIGN = sizeof(foreign) / sizeof(foreign[0]) };

static void put(const char *name, const char *value)
{
    char script[256];

    (void)snprintf(script, sizeof(script),
                   "local p = cmsgpack.pack "
                   "return redis.call('HSET', KEYS[1], ARGV[1], %s)",
                   value);
    EXPECT_INT(1, redis_int(proc, "EVAL %s 1 weir:{t}:relay %s", script, name));
}

enum { LOOKS = 40 };

/* Look until nothing is left but so many entries. */
static void await_left(struct host *host, uint64_t left)
{
    for (int i = 0; i < LOOKS && relaying(host) > left; i++)
        look(host);
    EXPECT_INT(left, relaying(host));
}

TEST(what_is_no_entry_of_an_outbox_is_removed_and_the_others_go)
{
    struct host *host = host_open("w1"), *other = host_open("w2");
    char *line;

    fill();
    add_jobs(host, 1);
    work(host, 1);
    host_close(host); /* its entry is anybody's now */
    for (size_t i = 0; i < FOREIGN; i++)
        put(foreign[i].name, foreign[i].value);
    set_room("100");
    await_left(other, 0);
    EXPECT_INT(1, count_there());
    line = strstr(world_log, "of its outbox");
    EXPECT_TRUE(line != NULL);
    EXPECT_CONTAINS("t: 18 entries of its outbox were not written by weir and "
                    "are removed",
                    world_log);
    EXPECT_TRUE(strstr(line + 1, "of its outbox") == NULL);
}

/* As an entry says, but no such pack. */
static void put_sound(const char *name, const char *call_slot)
{
    char value[128];

    (void)snprintf(value, sizeof(value),
                   "p({1, 'one', 'delay', '%s', 1, 1, 12, 'a1', '', "
                   "''})",
                   call_slot);
    put(name, value);
}

TEST(an_entry_whose_pack_is_none_goes_and_the_others_do_not_wait)
{
    struct host *host = host_open("w1"), *other = host_open("w2");

    fill();
    add_jobs(host, 1);
    work(host, 1);
    host_close(host);
    put_sound("000000000001", "!a"); /* without a pack */
    put_sound("000000000002", "!b");
    (void)redis_text(proc, "SET weir:{t}:o:000000000002 garbage");
    put_sound("000000000003", "!c");
    (void)redis_text(proc, "RPUSH weir:{t}:o:000000000003 list");
    set_room("100");
    await_left(other, 1);
    EXPECT_INT(1, count_there());
    EXPECT_CONTAINS("one does not take a pack that is broken", world_log);
    EXPECT_CONTAINS("t relay: WRONGTYPE", world_log);
    EXPECT_INT(1, redis_int(proc, "HEXISTS weir:{t}:relay 000000000003"));
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:o:000000000002"));
}

static uint64_t lost(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_stats(host));
    return host->stats.lost_total;
}

/* Two verdicts brought one job each, which "one" does not take. */
static struct host *record_two(void)
{
    struct host *host = host_open("w1");

    fill();
    add_jobs(host, 2);
    work(host, 1);
    work(host, 1);
    EXPECT_INT(2, relaying(host));
    EXPECT_INT(1, redis_int(proc, "COPY weir:{t}:relay weir:{t}:copy"));
    host_close(host); /* the entries are anybody's now */
    return host_open("w2");
}

TEST(a_job_whose_pack_in_the_outbox_was_lost_is_counted_and_logged)
{
    struct host *host = record_two();

    EXPECT_INT(1, redis_int(proc, "EVAL %s 0",
                            "return redis.call('DEL', "
                            "redis.call('KEYS', 'weir:{t}:o:*')[1])"));
    set_room("100");
    await_left(host, 0);
    EXPECT_INT(1, count_there());
    EXPECT_INT(1, lost(host));
    EXPECT_INT(2, host->stats.done_total);
    EXPECT_INT(0, host->stats.running);
    EXPECT_INT(0, host->stats.scheduled + host->stats.ready);
    EXPECT_CONTAINS("t: 1 jobs for other topics are lost, their packs in the "
                    "outbox are gone: one",
                    world_log);
}

/* A worker dies between the two deletions. */
TEST(an_entry_whose_jobs_are_there_goes_without_a_loss)
{
    struct host *host = record_two();

    set_room("100");
    await_left(host, 0);
    EXPECT_INT(2, count_there());
    EXPECT_STR("OK", redis_text(proc, "RENAME weir:{t}:copy weir:{t}:relay"));
    await_left(host, 0);
    EXPECT_INT(2, count_there());
    EXPECT_INT(0, lost(host));
}

/* The verdict is refused as a whole: nothing of the job is lost. */
TEST(an_outbox_of_another_type_refuses_verdicts_and_keeps_their_jobs)
{
    struct host *host = host_open("w1");

    add_jobs(host, 1);
    (void)redis_text(proc, "SET weir:{t}:relay x");
    work(host, 1);
    EXPECT_CONTAINS("WRONGTYPE", world_log);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:run"));
    EXPECT_INT(0, count_there());
}

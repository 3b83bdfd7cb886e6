/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis/scripts/lane_fixture.h"

/* Times that were stored while the server's clock was ahead. A test moves the
 * stored times by an hour and not the clock. */

enum { HOUR_MS = 3600000 };

/* All members of this zset of the topic are an hour later from here on. */
static void put_ahead(const char *key)
{
    (void)redis_text(script_proc, "EVAL %s 0 %s %d",
                     "local key = 'weir:{t}:' .. ARGV[1] "
                     "for _, name in ipairs(redis.call('ZRANGE', key, 0, -1)) "
                     "do redis.call('ZINCRBY', key, ARGV[2], name) end "
                     "return 'OK'",
                     key, HOUR_MS);
}

/* For how many ms the lease lasts that ends last. */
static long long left_ms(const char *key)
{
    return redis_int(
        script_proc, "EVAL %s 0 %s",
        "local time = redis.call('TIME') "
        "local last = redis.call('ZRANGE', 'weir:{t}:' .. ARGV[1], -1, -1, "
        "'WITHSCORES') "
        "return last[2] - time[1] * 1000 - math.floor(time[2] / 1000)",
        key);
}

/* --- leases --------------------------------------------------------------- */

TEST(a_lease_that_was_taken_while_the_clock_was_ahead_ends_its_length_from_now)
{
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "5000"));
    put_ahead("lease");
    EXPECT_STR("", script_claim("9", "5000"));
    EXPECT_TRUE(left_ms("lease") <= 5000);
    EXPECT_TRUE(left_ms("lease") > 3000);
}

TEST(a_lease_of_an_hour_is_left_to_a_worker_whose_leases_are_shorter)
{
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "3600000"));
    EXPECT_STR("", script_claim("9", "300"));
    EXPECT_TRUE(left_ms("lease") > HOUR_MS - 60000);
}

TEST(a_lease_that_is_a_second_ahead_stays)
{
    const char *score = "ZSCORE weir:{t}:lease 1";
    char before[32];

    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "5000"));
    (void)redis_text(script_proc, "ZINCRBY weir:{t}:lease 900 1");
    (void)snprintf(before, sizeof(before), "%s", script_text(score));
    EXPECT_STR("", script_claim("9", "5000"));
    EXPECT_STR(before, script_text(score));
}

TEST(a_lease_that_is_ahead_is_found_behind_one_that_is_not)
{
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "5000"));
    put_ahead("lease");
    (void)script_add('b', "1", "r0");
    EXPECT_STR("b0000+0", script_claim("9", "5000"));
    for (int i = 0; i < 100000 && left_ms("lease") > 5000; i++)
        EXPECT_STR("", script_claim("9", "5000")); /* each 8th ms looks */
    EXPECT_TRUE(left_ms("lease") <= 5000);
}

TEST(where_nothing_tells_the_length_of_a_lease_the_longest_one_is_taken)
{
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "5000"));
    put_ahead("lease");
    put_ahead("lease");
    (void)script_text("DEL weir:{t}:held");
    EXPECT_STR("", script_claim("9", "5000"));
    EXPECT_TRUE(left_ms("lease") <= HOUR_MS);
    EXPECT_TRUE(left_ms("lease") > HOUR_MS - 60000);
}

/* The claim has this lease from now on. */
static void renew(const char *lease_ms)
{
    const char *const args[] = {lease_ms, script_token, NULL};

    EXPECT_STR("", script_run(&weir__script_delay_renew, "lease held", args));
}

TEST(a_lease_that_was_renewed_for_longer_is_left_to_its_worker)
{
    static const char *const lengths[] = {"300", "5000", "65536", "3600000"};

    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "300"));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        renew(lengths[i]);
    EXPECT_STR("", script_claim("9", "300"));
    EXPECT_TRUE(left_ms("lease") > HOUR_MS - 60000);
}

TEST(a_lease_that_was_renewed_for_less_ends_its_length_from_now)
{
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "3600000"));
    renew("60000");
    put_ahead("lease");
    EXPECT_STR("", script_claim("9", "300"));
    EXPECT_TRUE(left_ms("lease") <= 60000);
}

TEST(a_renewal_leaves_alone_what_is_none_of_weirs)
{
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "5000"));
    (void)redis_text(script_proc, "HSET weir:{t}:held 1 foreign");
    renew("60000");
    EXPECT_STR("foreign", script_text("HGET weir:{t}:held 1"));
    (void)script_text("DEL weir:{t}:held");
    renew("60000");
    script_poison("held");
    renew("60000");
    EXPECT_TRUE(left_ms("lease") > 30000);
}

/* --- leases of other kinds ------------------------------------------------ */

static void claim_list(const char *lease_ms)
{
    const char *const args[] = {"list", "10", lease_ms, "0", "",
                                "",     "",   "",       "",  NULL};

    (void)script_run(&weir__script_external_claim_list,
                     "meta wait run lease held past auto list", args);
}

TEST(a_lease_of_a_list_that_was_renewed_for_longer_is_left_to_its_worker)
{
    const char *args[] = {"600000", "", "c", "", NULL};

    (void)redis_text(script_proc, "HSET weir:{t}:meta kind list key %s", "");
    (void)script_text("RPUSH weir:{t}:list a");
    claim_list("300");
    args[3] = script_text("ZRANGE weir:{t}:lease 0 0");
    EXPECT_STR("", script_run(&weir__script_external_renew,
                              "lease run list meta", args));
    claim_list("300");
    EXPECT_TRUE(left_ms("lease") > 500000);
}

static void poll_concurrent(void)
{
    const char *const args[] = {"concurrent", "w2", "300", "-1", "", NULL};

    (void)script_run(&weir__script_classic_poll,
                     "fifo parked alive meta ids idle", args);
}

static void pop_and_park(const char *lease_ms)
{
    const char *const args[] = {"c1", "w1", lease_ms, "park",
                                "0",  "0",  "",       NULL};

    (void)script_text("HSET weir:{t}:meta kind concurrent");
    (void)script_text("RPUSH weir:{t}:fifo m");
    (void)script_run(&weir__script_classic_pop,
                     "fifo parked alive meta idle lock", args);
}

TEST(a_lease_of_a_message_is_left_to_its_worker_before_that_polls)
{
    pop_and_park("600000");
    poll_concurrent();
    EXPECT_TRUE(left_ms("alive") > 500000);
}

TEST(a_message_that_is_parked_later_is_left_to_its_worker)
{
    static const char *const args[] = {"c1", "600000", "m", NULL};

    (void)script_text("HSET weir:{t}:meta kind concurrent");
    EXPECT_STR(
        "1", script_run(&weir__script_classic_park, "parked alive meta", args));
    poll_concurrent();
    EXPECT_TRUE(left_ms("alive") > 500000);
}

TEST(a_lease_of_a_message_that_was_renewed_for_longer_is_left_to_its_worker)
{
    static const char *const args[] = {"600000", "c1", "1", NULL};

    pop_and_park("300");
    EXPECT_STR("", script_run(&weir__script_classic_renew, "alive meta", args));
    poll_concurrent();
    EXPECT_TRUE(left_ms("alive") > 500000);
}

static const char *lock(const char *consumer, const char *lease_ms)
{
    const char *const args[] = {consumer, consumer, lease_ms, NULL};

    return script_run(&weir__script_classic_lock, "lock lockers meta", args);
}

TEST(a_lock_that_was_taken_for_longer_is_left_to_its_consumer)
{
    EXPECT_STR("1", lock("c1", "600000"));
    (void)lock("c2", "300");
    EXPECT_TRUE(redis_int(script_proc, "PTTL weir:{t}:lock") > 500000);
}

/* --- messages of queues --------------------------------------------------- */

static void push_message(const char *delay_ms)
{
    const char *const args[] = {"t", "sync", delay_ms, "", "record", "1", NULL};

    (void)script_run(&weir__script_classic_push, "fifo ids meta options idle",
                     args);
}

/* All messages were added an hour later from here on. */
static void put_messages_ahead(void)
{
    (void)redis_text(
        script_proc, "EVAL %s 1 weir:{t}:fifo %d",
        "for i = 1, redis.call('LLEN', KEYS[1]) do "
        "  local message = redis.call('LPOP', KEYS[1]) "
        "  local due, _, added = struct.unpack('>I8BI8', message, 3) "
        "  redis.call('RPUSH', KEYS[1], message:sub(1, 2) .. "
        "    struct.pack('>I8BI8', due + ARGV[1], 207, added + ARGV[1]) .. "
        "    message:sub(20)) end "
        "return 'OK'",
        HOUR_MS);
}

/* Of a reply { time in us, ..., message }: ms until the message is due. */
static long long reply_wait_ms(void)
{
    const redisReply *last = script_reply->element[script_reply->elements - 1];
    const char *at = memchr(last->str, 207, last->len);
    long long due_ms = 0;

    EXPECT_TRUE(at != NULL);
    for (int i = 1; i <= 8; i++)
        due_ms = due_ms * 256 + (uint8_t)at[i];
    return due_ms - script_reply->element[0]->integer / 1000;
}

static long long popped_wait_ms(const char *todo)
{
    const char *const args[] = {"c1", "w1", "300", todo, "0", "0", "", NULL};

    (void)script_run(&weir__script_classic_pop,
                     "fifo parked alive meta idle lock", args);
    return reply_wait_ms();
}

static long long peeked_wait_ms(void)
{
    static const char *const args[] = {"w1", "0", NULL};

    (void)script_run(&weir__script_classic_peek, "fifo idle", args);
    return reply_wait_ms();
}

TEST(a_message_that_came_while_the_clock_was_ahead_is_due_its_delay_from_now)
{
    static const char *const todo[] = {"park", "done", "none"};
    long long wait_ms;

    for (size_t i = 0; i < sizeof(todo) / sizeof(todo[0]); i++) {
        push_message("0");
        push_message("60000");
        put_messages_ahead();
        EXPECT_TRUE(popped_wait_ms(todo[i]) <= 0);
        wait_ms = popped_wait_ms(todo[i]);
        EXPECT_TRUE(wait_ms > 0 && wait_ms <= 60000);
    }
    EXPECT_STR("1", script_text("HLEN weir:{t}:parked")); /* c1 has one */
}

TEST(a_head_that_came_while_the_clock_was_ahead_waits_its_delay_once)
{
    long long first_ms;

    push_message("60000");
    put_messages_ahead();
    first_ms = peeked_wait_ms();
    EXPECT_TRUE(first_ms > 0 && first_ms <= 60000);
    while (peeked_wait_ms() == first_ms) /* until a ms has passed */
        ;
    EXPECT_TRUE(peeked_wait_ms() < first_ms);
    EXPECT_TRUE(popped_wait_ms("done") < first_ms);
}

TEST(a_message_is_due_its_own_delay_later_whatever_the_topics_is_by_now)
{
    push_message("3600000");
    (void)script_text("HSET weir:{t}:options delay 0ms");
    EXPECT_TRUE(peeked_wait_ms() > HOUR_MS - 60000);
    EXPECT_TRUE(popped_wait_ms("park") > HOUR_MS - 60000);
}

TEST(a_retry_while_the_clock_was_ahead_is_due_its_delay_from_now)
{
    static const char *const args[] = {"t", "",    "retry", "60000",
                                       "x", "rec", NULL};
    long long wait_ms;

    (void)script_run(&weir__script_classic_settle,
                     "fifo parked alive meta options idle", args);
    put_messages_ahead();
    wait_ms = popped_wait_ms("none");
    EXPECT_TRUE(wait_ms > 0 && wait_ms <= 60000);
}

TEST(a_message_that_came_while_the_clock_was_ahead_counts_as_ready)
{
    push_message("0");
    put_messages_ahead();
    script_begin(&weir__script_classic_stats, "fifo parked meta alive");
    EXPECT_CONTAINS("ready 1 ", script_call());
}

#define FAR "\x7f\xff\xff\xff\xff\xff\xff\xff"

TEST(a_message_that_none_can_read_is_left_as_it_is)
{
    static const char *const odd[] = {
        "garbage", "\x94\xcf" FAR, "\x94\xcf" FAR "\xce" FAR,
        "\x94\xce" FAR "\xcf" FAR, "\x94\xcf\1\1\1\1\1\1\1\1\xcf" FAR};
    const char *const args[] = {"c1", "w1", "300", "none", "0", "0", "", NULL};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        (void)redis_text(script_proc, "RPUSH weir:{t}:fifo %s", odd[i]);
        (void)script_run(&weir__script_classic_pop,
                         "fifo parked alive meta idle lock", args);
        EXPECT_STR(odd[i], script_reply->element[2]->str);
    }
}

TEST(a_lease_of_a_group_that_was_renewed_for_longer_is_left_to_its_worker)
{
    static const char *const claim[] = {"t", "bounded", "1", "300", "",
                                        "0", "4",       "",  "",    NULL};
    static const char *const renewal[] = {"600000", "g", "5", NULL};

    (void)script_text("HSET weir:{t}:meta kind bounded running 1 claimed 5");
    (void)redis_text(script_proc, "EVAL %s 0",
                     "local key, state = 'weir:{t}:out', '5 0 0 0 300' "
                     "redis.call('HSET', key, 'g', state) return 'OK'");
    (void)script_text("RPUSH weir:{t}:l:g e");
    (void)script_text("ZADD weir:{t}:lease 9999999999999 g");
    EXPECT_STR("",
               script_run(&weir__script_bounded_renew, "lease out", renewal));
    (void)script_run(&weir__script_bounded_claim,
                     "rot hot lease out meta idle options ttl", claim);
    EXPECT_TRUE(left_ms("lease") > 500000);
}

/* --- lanes ---------------------------------------------------------------- */

TEST(a_due_job_with_a_key_does_not_wait_for_a_turn_of_a_clock_that_was_ahead)
{
    EXPECT_STR("1", lane_add(1, "l2r0 a"));
    put_ahead("turns");
    EXPECT_STR("", lane_claim("9", ""));
    EXPECT_INT(0, lane_next_us);
    EXPECT_STR("1", lane_claim("9", ""));
}

TEST(a_job_with_a_key_that_is_due_later_keeps_its_turn)
{
    long long turn_ms;

    EXPECT_STR("1", lane_add(1, "l2r3600000 a"));
    turn_ms = lane_turn_ms("2a");
    EXPECT_STR("", lane_claim("9", ""));
    EXPECT_INT(turn_ms, lane_turn_ms("2a"));
    EXPECT_TRUE(lane_next_us > 0);
}

TEST(many_keys_have_their_turns_again_claim_by_claim)
{
    char when[32];
    int claims = 0, got = 0;

    for (int i = 1; i <= 200; i++) {
        (void)snprintf(when, sizeof(when), "l2r0 k%d", i);
        EXPECT_STR("1", lane_add(i, when));
    }
    put_ahead("turns");
    while (got < 200 && claims++ < 40) {
        (void)lane_claim("50", "");
        got += lane_claimed_count;
        EXPECT_TRUE(lane_next_us == 0 || got == 200);
    }
    EXPECT_INT(200, got);
}

TEST(a_key_that_was_blocked_while_the_clock_was_ahead_goes_on)
{
    EXPECT_STR("1", lane_add(1, "l2r0 a"));
    EXPECT_STR("1", lane_add(2, "l2r0 a"));
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    put_ahead("turns");
    (void)script_text("DEL weir:{t}:on:a");
    EXPECT_STR("", lane_claim("9", "|||1|"));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
}

/* --- unique keys ---------------------------------------------------------- */

/* For how many ms the key "k" is held. */
static long long held_ms(void)
{
    return redis_int(script_proc, "EVAL %s 0",
                     "local time = redis.call('TIME') "
                     "local entry = redis.call('HGET', 'weir:{t}:unique', 'k') "
                     "return entry:sub(16, 31) - time[1] * 1000 - "
                     "math.floor(time[2] / 1000)");
}

TEST(a_key_that_was_taken_while_the_clock_was_ahead_is_held_for_its_time)
{
    EXPECT_STR("1", lane_add_under(1, "r0", "k", "reject 60000"));
    (void)redis_text(
        script_proc, "EVAL %s 0 %d",
        "local key = 'weir:{t}:unique' "
        "local entry = redis.call('HGET', key, 'k') "
        "entry = entry:gsub('(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)', function(ms) "
        "return string.format('%09d%07d', (ms + ARGV[1]) / 1e7, "
        "(ms + ARGV[1]) % 1e7) end) "
        "redis.call('HSET', key, 'k', entry) return 'OK'",
        HOUR_MS);
    EXPECT_TRUE(held_ms() > HOUR_MS);
    EXPECT_STR("0 0 512 j1", lane_add_under(2, "r0", "k", "reject 60000"));
    EXPECT_TRUE(held_ms() <= 60000);
    EXPECT_TRUE(held_ms() > 30000);
}

TEST(a_key_whose_holder_was_replaced_while_the_clock_was_ahead_is_held_as_long)
{
    EXPECT_STR("1", lane_add_under(1, "r0", "k", "replace 60000"));
    EXPECT_STR("1", lane_add_under(2, "r0", "k", "replace 60000"));
    EXPECT_STR("2", lane_claim("9", ""));
    (void)redis_text(
        script_proc, "EVAL %s 0 %d",
        "local key, at = 'weir:{t}:unique', 0 "
        "local entry = redis.call('HGET', key, 'k') "
        "entry = entry:gsub('(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)', function(ms) "
        "at = at + 1 "
        "if at == 2 then return ms end " /* of the first holder */
        "return string.format('%09d%07d', (ms + ARGV[1]) / 1e7, "
        "(ms + ARGV[1]) % 1e7) end) "
        "redis.call('HSET', key, 'k', entry) return 'OK'",
        HOUR_MS);
    EXPECT_TRUE(held_ms() > HOUR_MS);
    EXPECT_STR("0 0 512 j2", lane_add_under(3, "r0", "k", "replace 60000"));
    EXPECT_TRUE(held_ms() <= 60000);
    EXPECT_TRUE(held_ms() > 30000);
}

/* --- dead jobs ------------------------------------------------------------ */

TEST(jobs_that_died_while_the_clock_was_ahead_are_forgotten_with_the_others)
{
    static const char *const words[] = {"", "10", NULL};

    (void)script_add('a', "x", "r0");
    (void)script_claim("9", "5000");
    script_settle_begin();
    script_settle_node("a0000", NULL, 0);
    script_settle_end(0, "x", "r");
    (void)script_settle('a', 0, "10");
    put_ahead("dead");
    (void)script_run(&weir__script_delay_forget, "ids meta dead rec", words);
    EXPECT_INT(1, script_reply->element[0]->integer);
}

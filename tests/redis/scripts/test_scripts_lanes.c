/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "tests/redis/scripts/lane_fixture.h"

/* Jobs with a key or a priority: a form "l2r0 k" is normal, with the key k. */

static long long count_of(const char *command, const char *key)
{
    return redis_int(script_proc, "EVAL %s 0 %s %s",
                     "return redis.call(ARGV[1], 'weir:{t}:' .. ARGV[2])",
                     command, key);
}

static bool exists(const char *key)
{
    return count_of("EXISTS", key) == 1;
}

/* What is not there, or not where it should be, of all lanes; "" else. */
static const char *odd_lanes(void)
{
    return redis_text(
        script_proc, "EVAL %s 0",
        "local p, odd = 'weir:{t}:', '' "
        "local all = redis.call('ZRANGE', p .. 'wait', 0, -1, 'WITHSCORES') "
        "for i = 1, #all, 2 do if tonumber(all[i + 1]) >= 3 * 2 ^ 44 then "
        "local lane = redis.call('HGET', p .. 'of', all[i]:sub(1, 12)) "
        "if not (lane and redis.call('ZSCORE', p .. 'lane:' .. lane, all[i]) "
        "and redis.call('ZSCORE', p .. 'turns', lane)) "
        "then odd = odd .. all[i] end end end return odd");
}

static void pass_a_ms(void)
{
    for (long long from = lane_now_ms(); lane_now_ms() == from;)
        continue;
}

/* One a millisecond. */
static void add_all(const char *const *whens, int first)
{
    for (; *whens != NULL; whens++) {
        EXPECT_STR("1", lane_add(first++, *whens));
        pass_a_ms();
    }
}

/* --- turns ---------------------------------------------------------------- */

static void add_lanes(int first, int count, bool have_keys)
{
    char when[32];

    for (int i = 0; i < count; i++) {
        (void)snprintf(when, sizeof(when), have_keys ? "l2r0 k%d" : "l1r0 ", i);
        EXPECT_STR("1", lane_add(first + i, when));
    }
    pass_a_ms();
}

TEST(a_claim_brings_what_a_short_call_has_and_says_that_there_is_more)
{
    static const int counts[] = {86, 86, 86, 42};

    add_lanes(1, 300, true);
    for (size_t i = 0; i < 4; i++) {
        (void)lane_claim("1000", "");
        EXPECT_INT(counts[i], lane_claimed_count);
        EXPECT_TRUE((lane_next_us == 0) == (i < 3));
    }
    add_lanes(301, 300, false);
    (void)lane_claim("1000", "");
    EXPECT_INT(256, lane_claimed_count);
    EXPECT_INT(0, lane_next_us);
    (void)lane_claim("1000", "");
    EXPECT_INT(44, lane_claimed_count);
}

TEST(keys_take_turns_over_claims)
{
    static const char *const whens[] = {"l2r0 a", "l2r0 a", "l2r0 a", "l2r0 b",
                                        "l2r0 b", "l2r0 c", NULL};

    add_all(whens, 1);
    EXPECT_STR("1", lane_claim("1", ""));
    pass_a_ms();
    EXPECT_STR("4", lane_claim("1", ""));
    pass_a_ms();
    EXPECT_STR("6", lane_claim("1", ""));
    pass_a_ms();
    EXPECT_STR("2", lane_claim("1", ""));
    pass_a_ms();
    EXPECT_STR("5", lane_claim("1", ""));
    EXPECT_STR("3", lane_claim("1", ""));
    EXPECT_INT(-1, lane_next_us > 100000000 ? -1 : lane_next_us);
    EXPECT_STR("", odd_lanes());
    EXPECT_TRUE(!exists("turns") && !exists("lane:2a"));
}

TEST(keys_take_turns_in_one_claim)
{
    static const char *const whens[] = {"l2r0 a", "l2r0 a", "l2r0 a", "l2r0 b",
                                        "l2r0 b", "l2r0 b", NULL};

    add_all(whens, 1);
    pass_a_ms();
    EXPECT_STR("1 4 2 5 3 6", lane_claim("10", ""));
}

TEST(jobs_of_a_key_start_in_the_order_of_their_due_times)
{
    EXPECT_STR("1", lane_add(1, "l2a3 k"));
    EXPECT_STR("1", lane_add(2, "l2a2 k"));
    pass_a_ms();
    EXPECT_STR("1", lane_add(3, "l2r0 k"));
    EXPECT_STR("1 2", lane_claim("2", "")); /* the past counts as now */
    EXPECT_STR("3", lane_claim("2", ""));
}

TEST(urgent_jobs_come_first_and_low_ones_last)
{
    static const char *const whens[] = {"l3r0 ", "l2r0 k", "r0",
                                        "l1r0 ", "l0r0 x", NULL};

    add_all(whens, 1);
    pass_a_ms();
    EXPECT_STR("5 4 2 3 1", lane_claim("9", "||||60000"));
}

TEST(what_waits_long_comes_before_what_is_urgent)
{
    EXPECT_STR("1", lane_add(1, "l3r0 "));
    for (int i = 0; i < 4; i++)
        pass_a_ms();
    EXPECT_STR("1", lane_add(2, "l0r0 "));
    EXPECT_STR("1", lane_claim("1", "||||1"));
    EXPECT_STR("2", lane_claim("1", "||||1"));
}

TEST(jobs_without_a_lane_go_on_beside_lanes)
{
    static const char *const whens[] = {"r0", "l2r0 k", "r60000", "l2r60000 k",
                                        NULL};
    long long from = lane_now_ms();

    add_all(whens, 1);
    pass_a_ms();
    (void)lane_claim("9", "");
    EXPECT_INT(2, lane_claimed_count);
    lane_expect_told(lane_due_ms(3), from, 60000);
    EXPECT_INT(2, script_stat("waiting"));
}

TEST(a_job_that_is_due_later_is_told)
{
    long long from = lane_now_ms();

    EXPECT_STR("1", lane_add(1, "l2r7200000 k"));
    EXPECT_STR("", lane_claim("9", ""));
    lane_expect_told(lane_due_ms(1), from, 7200000);
    EXPECT_STR("1", lane_add(2, "l2r3600000 k"));
    EXPECT_STR("", lane_claim("9", ""));
    lane_expect_told(lane_due_ms(2), from, 3600000);
}

TEST(more_lanes_than_room_all_have_their_turn)
{
    char when[16];

    for (int i = 1; i <= 40; i++) {
        (void)snprintf(when, sizeof(when), "l%dr0 k%d", i % 4, i);
        EXPECT_STR("1", lane_add(i, when));
    }
    for (int left = 40; left > 0; left -= lane_claimed_count) {
        (void)lane_claim("3", "");
        EXPECT_TRUE(lane_claimed_count == (left < 3 ? left : 3));
        EXPECT_INT(0, left > 3 ? lane_next_us : 0);
    }
    EXPECT_TRUE(!exists("turns"));
}

TEST(no_room_takes_nothing_and_tells_when_there_is_more)
{
    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    EXPECT_STR("", lane_claim("0", "|||1|"));
    EXPECT_INT(0, lane_next_us);
    EXPECT_STR("1", lane_claim("1", "|||1|"));
}

TEST(a_paused_topic_gives_no_job_of_a_lane)
{
    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    (void)script_text("HSET weir:{t}:meta paused 1");
    EXPECT_STR("", lane_claim("1", ""));
    EXPECT_INT(-1, lane_next_us);
    (void)script_text("HDEL weir:{t}:meta paused");
    EXPECT_STR("1", lane_claim("1", ""));
}

TEST(an_id_that_exists_enters_no_lane)
{
    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    EXPECT_STR("0 0 0 ", lane_add(1, "l0r0 other"));
    EXPECT_TRUE(!exists("lane:0other"));
    EXPECT_STR("1", lane_claim("9", ""));
}

TEST(what_is_no_lane_is_refused)
{
    static const char *const odd[] = {"l4r0 k", "l2x0 k", "l2r0",
                                      "l2r k",  "lr0 k",  "l2r12345678901234 k",
                                      "l",      NULL};
    char key[2100];

    for (size_t i = 0; odd[i] != NULL; i++)
        EXPECT_STR("0 0 -3 ", lane_add(1, odd[i]));
    memset(key, 'k', sizeof(key));
    (void)snprintf(key, sizeof(key), "l2r0 ");
    key[5] = 'k';
    key[5 + 2049] = '\0';
    EXPECT_STR("0 0 -3 ", lane_add(1, key));
    key[5 + 2048] = '\0';
    EXPECT_STR("1", lane_add(1, key));
}

TEST(a_staged_pack_may_be_of_a_lane)
{
    EXPECT_STR("1", script_add('a', "x", "l1r0 k"));
    EXPECT_STR("2", script_add('b', "y z", "l1r0 k"));
    EXPECT_STR("0 0 -3", script_add('c', "y z", "l4r0 k"));
    EXPECT_STR("", odd_lanes());
    EXPECT_INT(2, count_of("ZCARD", "lane:1k"));
    EXPECT_STR("a0000+0 b0001+0", script_claim("9", "9000"));
}

/* --- key_parallel --------------------------------------------------------- */

static const char *two_of_k[] = {"l2r0 k", "l2r0 k", NULL};

TEST(no_more_jobs_of_a_key_run_than_may_over_all_workers)
{
    static const char *const whens[] = {"l2r0 k", "l0r0 k", "l3r0 k",
                                        "l2r0 k", "l2r0 x", NULL};

    add_all(whens, 1);
    EXPECT_STR("2 1 5", lane_claim("9", "|||2|"));
    EXPECT_STR("", lane_claim_as(
                       (struct lane_claim){"w2", "9", "600000", "|||2|", ""}));
    EXPECT_INT(2, count_of("ZCARD", "on:k"));
    EXPECT_STR("1", lane_settle(2, "done"));
    EXPECT_STR("4", lane_claim("9", "|||2|"));
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("1", lane_settle(4, "done"));
    EXPECT_STR("3", lane_claim("9", "|||2|"));
    EXPECT_STR("1", lane_settle(3, "done"));
    EXPECT_TRUE(!exists("on:k"));
}

TEST(a_dead_job_frees_its_key)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("", lane_claim("9", "|||1|"));
    EXPECT_STR("1", lane_settle(1, "dead"));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
}

TEST(who_waits_for_a_key_is_woken_when_it_is_free)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("1", "|||1|"));
    EXPECT_STR("", lane_claim_as(
                       (struct lane_claim){"w2", "1", "600000", "|||1|", ""}));
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 0",
                            "local at = redis.call('ZSCORE', 'weir:{t}:idle', "
                            "'w2') return at and 1 or 0"));
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("2", lane_claim("1", "|||1|"));
}

TEST(a_lease_that_ends_frees_its_key)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("", lane_claim("9", "|||1|"));
    lane_expire(lane_held[1].token);
    EXPECT_STR("1+1", lane_claim("9", "|||1|"));
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
}

TEST(a_running_job_that_is_deleted_frees_its_key)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("", lane_claim("9", "|||1|"));
    EXPECT_STR("running", lane_slot("delete", 1, ""));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
    EXPECT_STR("0 0 0", lane_settle(1, "done"));
}

TEST(a_running_job_that_is_purged_frees_its_key)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("", lane_claim("9", "|||1|"));
    EXPECT_STR("1", lane_purge((const int[]){1}, 1));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
}

TEST(a_job_that_is_given_back_frees_its_key_and_keeps_its_place)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("", lane_claim("9", "|||1|"));
    EXPECT_STR("0", lane_settle(1, "back"));
    EXPECT_STR("", odd_lanes());
    EXPECT_TRUE(!exists("on:k"));
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_INT(1, script_stat("waiting"));
    EXPECT_INT(1, script_stat("running"));
}

/* An older worker does not tell that somebody runs no more. */
TEST(a_key_whose_job_ended_unseen_is_looked_at_again)
{
    long long from = lane_now_ms();

    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("", lane_claim("9", "|||1|"));
    lane_expect_told(lane_turn_ms("2k"), from, 1000);
    EXPECT_STR("1", lane_settle_as(1, "done", "0"));
    lane_pass_ms(-3600000);
    EXPECT_STR("", lane_claim("9", "|||1|"));
    lane_pass_ms(3600000 + 1001);
    EXPECT_STR("2", lane_claim("9", "|||1|"));
    EXPECT_INT(1, count_of("ZCARD", "on:k"));
}

TEST(what_an_older_worker_gives_back_runs_again)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("1", ""));
    EXPECT_STR("0", lane_settle_as(1, "back", "0"));
    (void)lane_claim("9", "");
    EXPECT_INT(2, lane_claimed_count);
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("1", lane_settle(2, "done"));
    EXPECT_TRUE(!exists("of") && !exists("wait") && !exists("run"));
}

/* --- key_rate ------------------------------------------------------------- */

TEST(a_key_has_its_own_tokens)
{
    static const char *const whens[] = {"l2r0 a", "l2r0 a", "l2r0 a", "l2r0 b",
                                        "l0r0 a", "l2r0 ",  NULL};

    add_all(whens, 1);
    pass_a_ms();
    (void)lane_claim("9", "||1/h burst 2||60000");
    EXPECT_INT(4, lane_claimed_count); /* two of a, one of b, one of none */
    EXPECT_INT(5, lane_claimed[0]);
    EXPECT_INT(2, count_of("HLEN", "rates"));
    EXPECT_STR("", lane_claim("9", "||1/h burst 2||60000"));
    lane_pass_ms(3600000);
    (void)lane_claim("9", "||1/h burst 2||60000");
    EXPECT_INT(1, lane_claimed_count);
}

TEST(when_a_key_has_its_next_token_is_told)
{
    long long full, time_us;

    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("9", "||1/h||"));
    lane_pass_ms(5001);
    EXPECT_STR("", lane_claim("9", "||1/4s||")); /* raised, from now on */
    full = atoll(script_text("HGET weir:{t}:rates k"));
    EXPECT_STR("", lane_claim("9", "||1/4s||"));
    time_us = lane_reply->element[0]->integer;
    EXPECT_TRUE(time_us + lane_next_us >= full);
    EXPECT_TRUE(time_us + lane_next_us < full + 1000);
    lane_pass_ms(lane_next_us / 1000 + 1);
    EXPECT_STR("2", lane_claim("9", "||1/10s||"));
}

TEST(a_key_that_waits_for_a_token_keeps_no_other_waiting)
{
    static const char *const whens[] = {"l0r0 a", "l0r0 a", "l3r0 b", "r0",
                                        NULL};

    add_all(whens, 1);
    (void)lane_claim("9", "||1/h||");
    EXPECT_INT(3, lane_claimed_count);
    EXPECT_STR("", lane_claim("9", "||1/h||"));
    EXPECT_TRUE(lane_next_us > 3590000000 || lane_next_us <= 600001000);
}

/* --- what is stale -------------------------------------------------------- */

TEST(a_deleted_job_is_passed_over)
{
    add_all(two_of_k, 1);
    EXPECT_STR("ready", lane_slot("delete", 1, ""));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
    EXPECT_TRUE(!exists("turns") && !exists("lane:2k"));
    EXPECT_INT(1, count_of("HLEN", "of"));
}

TEST(an_urgent_job_comes_first_behind_one_that_was_deleted)
{
    static const char *const whens[] = {"l0r0 a", "l2r0 c", "l0r0 b", NULL};

    add_all(whens, 1);
    EXPECT_STR("ready", lane_slot("delete", 1, ""));
    EXPECT_STR("3", lane_claim("1", ""));
}

TEST(a_purged_job_is_passed_over)
{
    add_all(two_of_k, 1);
    EXPECT_STR("2", lane_purge((const int[]){1, 2}, 2));
    EXPECT_TRUE(!exists("of") && !exists("wait"));
    EXPECT_STR("", lane_claim("9", ""));
    EXPECT_INT(-1, lane_next_us);
    EXPECT_TRUE(!exists("turns") && !exists("lane:2k"));
}

TEST(a_job_that_another_one_replaced_is_passed_over)
{
    EXPECT_STR("1", lane_add_under(1, "l2r0 k", "u", "replace until-start"));
    EXPECT_STR("1", lane_add_under(2, "l0r0 x", "u", "replace until-start"));
    EXPECT_STR("0 0 512 j2",
               lane_add_under(3, "l0r0 x", "u", "reject until-done"));
    EXPECT_INT(1, count_of("HLEN", "of"));
    EXPECT_STR("2", lane_claim("9", ""));
    EXPECT_TRUE(!exists("turns"));
}

TEST(a_job_may_be_put_off_and_brought_forward)
{
    long long from = lane_now_ms();

    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    EXPECT_STR("ready", lane_slot("reschedule", 1, "r60000"));
    EXPECT_STR("", odd_lanes());
    EXPECT_STR("", lane_claim("9", ""));
    lane_expect_told(lane_due_ms(1), from, 60000);
    EXPECT_STR("scheduled", lane_slot("reschedule", 1, "r30000"));
    EXPECT_STR("", lane_claim("9", ""));
    lane_expect_told(lane_due_ms(1), from, 30000);
    EXPECT_STR("scheduled", lane_slot("reschedule", 1, "r0"));
    EXPECT_STR("1", lane_claim("9", ""));
}

TEST(thousands_of_stale_entries_keep_nothing_back_for_ever)
{
    int claims = 0;

    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    EXPECT_INT(2000, redis_int(script_proc, "EVAL %s 0",
                               "local n = 0 for i = 1, 2000 do "
                               "n = n + redis.call('ZADD', "
                               "'weir:{t}:lane:2k', 1, "
                               "string.format('%012d0000', 100000 + i)) end "
                               "return n"));
    do {
        (void)lane_claim("1", "|||1|");
        EXPECT_TRUE(lane_claimed_count == 1 || lane_next_us == 0);
    } while (lane_claimed_count == 0 && ++claims < 1000);
    EXPECT_INT(1, lane_claimed[0]);
    EXPECT_TRUE(!exists("turns"));
}

/* --- what runs again ------------------------------------------------------ */

TEST(a_retry_waits_in_its_lane)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1", lane_claim("1", "|||1|"));
    EXPECT_STR("1", lane_settle(1, "l2r0 k"));
    EXPECT_STR("", odd_lanes());
    EXPECT_INT(2, count_of("HLEN", "of"));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
    EXPECT_STR("1", lane_settle(2, "l0a2000000000000 other"));
    EXPECT_INT(1, count_of("ZCARD", "lane:0other"));
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_INT(1, script_stat("waiting"));
}

TEST(a_suspect_of_a_lane_keeps_its_fraction)
{
    EXPECT_STR("1", lane_add(1, "l1r0 k"));
    EXPECT_STR("1", lane_claim("9", ""));
    lane_expire(lane_token);
    EXPECT_STR("", lane_claim("0", ""));
    EXPECT_STR("ready", lane_slot("reschedule", 1, "r0"));
    EXPECT_STR("1+1", lane_claim("9", ""));
    EXPECT_STR("0", lane_settle(1, "back"));
    EXPECT_STR("1+1", lane_claim("9", ""));
    EXPECT_INT(1, script_stat("crashed"));
}

static const char *claim_suspects(const char *how)
{
    return lane_claim_as((struct lane_claim){"w1", "9", "600000", "", how});
}

TEST(a_suspect_of_a_lane_comes_alone_or_not_at_all)
{
    EXPECT_STR("1", lane_add(1, "l0r0 a"));
    EXPECT_STR("1", lane_claim("9", ""));
    lane_expire(lane_token);
    EXPECT_STR("", lane_claim("0", ""));
    EXPECT_STR("1", lane_add(2, "l2r0 b"));
    EXPECT_STR("1", lane_add(3, "r0"));
    pass_a_ms();
    (void)claim_suspects("none");
    EXPECT_INT(2, lane_claimed_count);
    EXPECT_TRUE(lane_claimed[0] != 1 && lane_claimed[1] != 1);
    EXPECT_STR("1", lane_add(4, "l2r0 b"));
    EXPECT_STR("1+1", claim_suspects("alone"));
    EXPECT_STR("4", claim_suspects("alone"));
}

TEST(who_may_have_no_suspect_sees_beyond_many_of_them)
{
    add_lanes(1, 200, true);
    for (int i = 0; i < 3; i++) {
        (void)lane_claim("1000", "");
        lane_expire(lane_token);
    }
    while (script_stat("ready") < 200) /* two claims expire in a call */
        EXPECT_STR("", lane_claim("0", ""));
    pass_a_ms();
    EXPECT_STR("1", lane_add(201, "l2r0 other"));
    pass_a_ms();
    EXPECT_STR("201", lane_claim_as((struct lane_claim){"w1", "1000", "600000",
                                                        "", "none"}));
}

TEST(a_key_of_bytes_and_blanks_is_one)
{
    EXPECT_STR("1", lane_add(1, "l2r0 a b %s \xc3\xa9 "));
    EXPECT_STR("1", lane_add(2, "l2r0 a b %s \xc3\xa9 "));
    EXPECT_STR("", odd_lanes());
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("2", lane_claim("9", "|||1|"));
}

/* --- what stays ----------------------------------------------------------- */

static void expect_nothing_stays(void)
{
    EXPECT_STR("1", lane_drop());
    EXPECT_STR("", script_text("KEYS *"));
}

TEST(a_topic_that_is_dropped_leaves_no_lane)
{
    static const char *const whens[] = {"l2r0 k", "l2r0 k", "l0r0 ", NULL};

    add_all(whens, 1);
    EXPECT_STR("3 1", lane_claim("9", "||5/h|1|"));
    EXPECT_STR("-1", lane_drop());
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("1", lane_settle(3, "done"));
    EXPECT_INT(2, redis_int(script_proc, "DEL weir:{t}:wait %s",
                            "weir:{t}:p:000000000002")); /* by hand */
    expect_nothing_stays();
}

TEST(a_topic_that_is_dropped_leaves_nobody_who_ran_unseen)
{
    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    EXPECT_STR("1", lane_claim("9", "|||1|"));
    EXPECT_STR("1", lane_settle_as(1, "done", "0"));
    expect_nothing_stays();
}

TEST(what_a_lane_needs_goes_when_its_jobs_are_done)
{
    add_all(two_of_k, 1);
    EXPECT_STR("1 2", lane_claim("9", "||1000/s|2|"));
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("1", lane_settle(2, "done"));
    for (int i = 0; i < 100 && exists("rates"); i++) {
        lane_pass_ms(1000);
        EXPECT_STR("", lane_claim("9", "||1000/s|2|"));
    }
    EXPECT_TRUE(!exists("rates") && !exists("of") && !exists("turns"));
    EXPECT_TRUE(!exists("on:k") && !exists("lane:2k"));
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/redis/scripts/lane_fixture.h"

/* Packs that hold several jobs of one lane. Limits as a claim is told them:
 * rate|parallel|key_rate|key_parallel|ageing. */

static void pass_a_ms(void)
{
    for (long long from = lane_now_ms(); lane_now_ms() == from;)
        continue;
}

static void add_pack(int first, int count, const char *when)
{
    char added[16];

    (void)snprintf(added, sizeof(added), "%d", count);
    EXPECT_STR(added, lane_add_pack(first, count, when));
    pass_a_ms();
}

static void add(int job, const char *when)
{
    EXPECT_STR("1", lane_add(job, when));
    pass_a_ms();
}

static bool exists(const char *key)
{
    return redis_int(script_proc, "EXISTS weir:{t}:%s", key) == 1;
}

static size_t claimed_nodes(void)
{
    return (lane_reply->elements - 5) / 2;
}

/* What waits in a lane is in it, and that has a turn; what runs of a key that
 * has places has them. "" where all is so. */
static const char *odd(void)
{
    return redis_text(
        script_proc, "EVAL %s 0",
        "local p, odd, on, there = 'weir:{t}:', '', 0, 0 "
        "local all = redis.call('ZRANGE', p .. 'wait', 0, -1, 'WITHSCORES') "
        "for i = 1, #all, 2 do "
        "  local lane = redis.call('HGET', p .. 'of', all[i]:sub(1, 12)) "
        "  if (tonumber(all[i + 1]) >= 3 * 2 ^ 44) ~= not not lane then "
        "    odd = odd .. ' lane ' .. all[i] "
        "  elseif lane and not (redis.call('ZSCORE', p .. 'lane:' .. lane, "
        "    all[i]) and redis.call('ZSCORE', p .. 'turns', lane)) then "
        "    odd = odd .. ' turn ' .. all[i] end end "
        "for _, key in ipairs(redis.call('KEYS', p .. 'on:*')) do "
        "  for _, node in ipairs(redis.call('ZRANGE', key, 0, -1)) do "
        "    on = on + 1 "
        "    if not redis.call('ZSCORE', p .. 'run', node) then "
        "      odd = odd .. ' runs not ' .. node end end end "
        "for _, node in ipairs(redis.call('ZRANGE', p .. 'run', 0, -1)) do "
        "  local lane = redis.call('HGET', p .. 'of', node:sub(1, 12)) "
        "  if lane and #lane > 1 then there = there + 1 end end "
        "if on > 0 and on ~= there then odd = odd .. ' places ' end "
        "return odd");
}

static void expect_stats(int ready, int waiting, int running)
{
    EXPECT_STR("", odd());
    pass_a_ms();
    EXPECT_INT(ready, script_stat("ready"));
    EXPECT_INT(1, script_stat("exact"));
    EXPECT_INT(waiting, script_stat("waiting"));
    EXPECT_INT(running, script_stat("running"));
}

static void settle_all(int first, int last, const char *verdict)
{
    for (int job = first; job <= last; job++)
        EXPECT_STR("1", lane_settle(job, verdict));
}

/* All jobs are done. A claim removes what is stale of lanes and rates. */
static void expect_nothing_stays(void)
{
    expect_stats(0, 0, 0);
    for (int i = 0; i < 100 && exists("rates"); i++) {
        lane_pass_ms(3600000);
        EXPECT_STR("", lane_claim("9", "||1000/s||"));
    }
    EXPECT_TRUE(!exists("of") && !exists("wait") && !exists("run"));
    EXPECT_STR("1", lane_drop());
    EXPECT_STR("", script_text("KEYS *"));
}

/* --- turns ---------------------------------------------------------------- */

TEST(a_pack_of_a_key_comes_whole_in_one_node)
{
    add_pack(1, 20, "l2r0 k");
    expect_stats(20, 20, 0);
    (void)lane_claim("20", "");
    EXPECT_INT(20, lane_claimed_count);
    EXPECT_INT(1, claimed_nodes());
    expect_stats(0, 0, 20);
    settle_all(1, 19, "done");
    EXPECT_TRUE(exists("of"));
    settle_all(20, 20, "done");
    expect_nothing_stays();
}

TEST(a_claim_brings_as_much_of_a_pack_as_it_has_room_for)
{
    add_pack(1, 8, "l2r0 k");
    EXPECT_STR("1 2 3 4 5", lane_claim("5", ""));
    EXPECT_INT(2, claimed_nodes());
    EXPECT_INT(0, lane_next_us);
    expect_stats(3, 3, 5);
    EXPECT_STR("6", lane_claim("1", ""));
    expect_stats(2, 2, 6);
    EXPECT_STR("7 8", lane_claim("9", ""));
    EXPECT_TRUE(!exists("turns") && !exists("lane:2k"));
    settle_all(1, 8, "done");
    expect_nothing_stays();
}

TEST(keys_with_packs_share_the_room)
{
    add_pack(1, 8, "l2r0 a");
    add_pack(11, 8, "l2r0 b");
    EXPECT_STR("1 2 3 4 11 12 13 14", lane_claim("8", ""));
    expect_stats(8, 8, 8);
    EXPECT_STR("5 6 7 8 15 16 17 18", lane_claim("8", ""));
    settle_all(1, 8, "done");
    settle_all(11, 18, "done");
    expect_nothing_stays();
}

TEST(a_pack_owes_to_single_jobs_of_another_key_what_it_was_given)
{
    add_pack(1, 8, "l2r0 a");
    for (int job = 9; job <= 12; job++)
        add(job, "l2r0 b");
    EXPECT_STR("1 2 9 10", lane_claim("4", ""));
    expect_stats(8, 8, 4);
    EXPECT_STR("3 4 11 12", lane_claim("4", ""));
    EXPECT_STR("5 6 7 8", lane_claim("9", ""));
    EXPECT_INT(1, claimed_nodes());
}

TEST(a_pack_among_single_jobs_of_several_keys_takes_its_share)
{
    add_pack(1, 8, "l2r0 a");
    add(11, "l2r0 b");
    add(12, "l2r0 c");
    EXPECT_STR("1 2 11 12 3 4 5 6 7", lane_claim("9", ""));
    EXPECT_STR("8", lane_claim("9", ""));
}

TEST(each_of_many_keys_with_packs_comes_once_before_one_comes_twice)
{
    char when[32];
    int left = 600;

    for (int i = 0; i < 300; i++) {
        (void)snprintf(when, sizeof(when), "l2r0 k%d", i);
        EXPECT_STR("2", lane_add_pack(1 + 2 * i, 2, when));
    }
    pass_a_ms();
    for (int from = 0; from < 3; from++) {
        (void)lane_claim("80", "");
        EXPECT_INT(80, lane_claimed_count);
        for (int i = 0; i < lane_claimed_count; i++)
            EXPECT_INT(1, lane_claimed[i] % 2); /* the first of each pack */
        left -= lane_claimed_count;
    }
    expect_stats(360, 360, 240);
    for (int claims = 0; left > 0 && claims < 20; claims++) {
        (void)lane_claim("80", "");
        left -= lane_claimed_count;
    }
    EXPECT_INT(0, left);
    EXPECT_TRUE(!exists("turns"));
    expect_stats(0, 0, 600);
}

TEST(packs_of_priorities_come_whole_in_the_order_of_their_due_times)
{
    add_pack(1, 4, "l1r0 ");
    add_pack(11, 4, "l1r0 ");
    add_pack(21, 4, "l1r0 ");
    EXPECT_STR("1 2 3 4 11 12 13 14 21", lane_claim("9", ""));
    EXPECT_INT(3, claimed_nodes());
    expect_stats(3, 3, 9);
    EXPECT_STR("22 23 24", lane_claim("9", ""));
    EXPECT_INT(2, claimed_nodes());
    settle_all(1, 4, "done");
    settle_all(11, 14, "done");
    settle_all(21, 24, "done");
    expect_nothing_stays();
}

TEST(packs_of_all_priorities_come_in_their_order_beside_plain_ones)
{
    add_pack(1, 3, "l3r0 ");
    EXPECT_STR("3", script_add('p', "x y z", "r0"));
    pass_a_ms();
    add_pack(11, 3, "l2r0 k");
    add_pack(21, 3, "l0r0 k");
    (void)lane_claim("12", "||||60000");
    EXPECT_STR("0000000000210002", lane_reply->element[5]->str);
    EXPECT_INT(12, script_stat("running"));
    EXPECT_INT(4, claimed_nodes());
    EXPECT_STR("pppppppppppp0002", lane_reply->element[7]->str);
    EXPECT_STR("0000000000010002", lane_reply->element[11]->str);
}

TEST(what_is_left_of_a_pack_keeps_its_place_before_what_came_later)
{
    add_pack(1, 8, "l2r0 k");
    add(11, "l2r0 k");
    EXPECT_STR("1 2 3", lane_claim("3", ""));
    EXPECT_STR("4 5 6", lane_claim("3", ""));
    EXPECT_STR("7 8 11", lane_claim("3", ""));
}

/* --- bounds --------------------------------------------------------------- */

TEST(places_of_a_key_count_jobs_and_not_nodes)
{
    add_pack(1, 8, "l2r0 k");
    EXPECT_STR("1 2 3", lane_claim("9", "|||3|"));
    EXPECT_INT(2, redis_int(script_proc, "ZCARD weir:{t}:on:k"));
    EXPECT_STR("", lane_claim("9", "|||3|"));
    expect_stats(5, 5, 3);
    EXPECT_STR("1", lane_settle(2, "done"));
    EXPECT_STR("4", lane_claim("9", "|||3|"));
    EXPECT_STR("", lane_claim("9", "|||3|"));
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_STR("1", lane_settle(4, "dead"));
    EXPECT_STR("5 6", lane_claim("9", "|||3|"));
    expect_stats(2, 2, 3);
    settle_all(3, 3, "done");
    settle_all(5, 6, "done");
    EXPECT_STR("7 8", lane_claim("9", "|||3|"));
    settle_all(7, 8, "done");
    EXPECT_TRUE(!exists("on:k") && !exists("of"));
}

TEST(places_are_shared_by_packs_of_all_priorities_of_a_key)
{
    add_pack(1, 4, "l2r0 k");
    add_pack(11, 4, "l0r0 k");
    add_pack(21, 4, "l3r0 x");
    EXPECT_STR("11 12 13 14 1 21 22 23 24", lane_claim("99", "|||5|60000"));
    settle_all(11, 12, "done");
    EXPECT_STR("2 3", lane_claim("99", "|||5|60000"));
    expect_stats(1, 1, 9);
}

TEST(one_place_makes_the_jobs_of_a_pack_run_one_by_one)
{
    add_pack(1, 5, "l2r0 k");
    for (int job = 1; job <= 5; job++) {
        (void)lane_claim("9", "|||1|");
        EXPECT_INT(1, lane_claimed_count);
        EXPECT_INT(job, lane_claimed[0]);
        EXPECT_STR("", lane_claim("9", "|||1|"));
        EXPECT_STR("1", lane_settle(job, "done"));
    }
    expect_nothing_stays();
}

TEST(tokens_of_a_key_count_jobs_and_not_nodes)
{
    add_pack(1, 8, "l2r0 k");
    EXPECT_STR("1 2 3", lane_claim("9", "||1/h burst 3||"));
    EXPECT_STR("", lane_claim("9", "||1/h burst 3||"));
    lane_pass_ms(3600000);
    EXPECT_STR("4", lane_claim("9", "||1/h burst 3||"));
    lane_pass_ms(2 * 3600000);
    EXPECT_STR("5 6", lane_claim("9", "||1/h burst 3||"));
    expect_stats(2, 2, 6);
    lane_pass_ms(9 * 3600000);
    EXPECT_STR("7 8", lane_claim("9", "||1/h burst 3||"));
    settle_all(1, 8, "done");
    expect_nothing_stays();
}

TEST(the_narrower_one_of_places_and_tokens_bounds_a_pack)
{
    add_pack(1, 8, "l2r0 k");
    EXPECT_STR("1 2", lane_claim("9", "||1/h burst 5|2|"));
    settle_all(1, 2, "done");
    EXPECT_STR("3 4", lane_claim("9", "||1/h burst 5|2|"));
    settle_all(3, 4, "done");
    EXPECT_STR("5", lane_claim("9", "||1/h burst 5|2|"));
    settle_all(5, 5, "done");
    EXPECT_STR("", lane_claim("9", "||1/h burst 5|2|"));
    expect_stats(3, 3, 0);
}

TEST(bounds_of_the_topic_count_the_jobs_of_packs_of_keys)
{
    add_pack(1, 8, "l2r0 k");
    EXPECT_STR("1 2 3", lane_claim("9", "|3|||"));
    EXPECT_STR("", lane_claim("9", "|3|||"));
    settle_all(1, 1, "done");
    EXPECT_STR("4", lane_claim("9", "|3|||"));
    settle_all(2, 4, "done");
    EXPECT_STR("5 6", lane_claim("9", "1/h burst 2||||"));
    EXPECT_STR("", lane_claim("9", "1/h burst 2||||"));
    expect_stats(2, 2, 2);
}

/* --- a part --------------------------------------------------------------- */

TEST(a_part_of_a_node_that_is_done_leaves_the_rest_running)
{
    add_pack(1, 6, "l2r0 k");
    EXPECT_STR("1 2 3 4 5 6", lane_claim("9", "|||9|"));
    EXPECT_STR("1", lane_settle(2, "done"));
    EXPECT_STR("1", lane_settle(5, "done"));
    EXPECT_STR("0 0 1", lane_settle(2, "done"));
    EXPECT_TRUE(lane_runs(1) && !lane_runs(2) && lane_runs(6));
    expect_stats(0, 0, 4);
    settle_all(3, 4, "done");
    settle_all(1, 1, "done");
    settle_all(6, 6, "done");
    expect_nothing_stays();
}

TEST(a_part_that_is_given_back_waits_and_frees_as_many_places)
{
    add_pack(1, 8, "l2r0 k");
    EXPECT_STR("1 2 3 4", lane_claim("9", "|||4|"));
    EXPECT_STR("", lane_claim("9", "|||4|"));
    EXPECT_STR("0", lane_settle(2, "back"));
    EXPECT_STR("0", lane_settle(3, "back"));
    expect_stats(6, 6, 2);
    EXPECT_STR("2 3", lane_claim("9", "|||4|"));
    EXPECT_STR("", lane_claim("9", "|||4|"));
    settle_all(1, 4, "done");
    EXPECT_STR("5 6 7 8", lane_claim("9", "|||4|"));
    settle_all(5, 8, "done");
    expect_nothing_stays();
}

TEST(a_part_that_is_retried_waits_in_its_lane)
{
    add_pack(1, 4, "l2r0 k");
    EXPECT_STR("1 2 3 4", lane_claim("9", "|||4|"));
    EXPECT_STR("1", lane_settle(2, "l2r0 k"));
    EXPECT_STR("1", lane_settle(3, "l0r3600000 other"));
    EXPECT_INT(3, redis_int(script_proc, "HLEN weir:{t}:of"));
    expect_stats(1, 2, 2);
    EXPECT_STR("2", lane_claim("9", "|||4|"));
    settle_all(1, 2, "done");
    settle_all(4, 4, "done");
    EXPECT_STR("scheduled", lane_slot("reschedule", 3, "r0"));
    EXPECT_STR("3", lane_claim("9", "|||4|"));
    settle_all(3, 3, "done");
    expect_nothing_stays();
}

/* --- leases that end ------------------------------------------------------ */

TEST(jobs_of_a_pack_whose_lease_ended_come_one_by_one)
{
    add_pack(1, 4, "l2r0 k");
    EXPECT_STR("1 2 3 4", lane_claim("9", ""));
    EXPECT_STR("1", lane_settle(2, "done"));
    lane_expire(lane_token);
    EXPECT_STR("", lane_claim("0", ""));
    expect_stats(3, 3, 0);
    EXPECT_INT(3, script_stat("crashed"));
    EXPECT_STR("1+1 3+1 4+1", lane_claim("9", ""));
    EXPECT_INT(3, claimed_nodes());
    EXPECT_STR("0", lane_settle(3, "back"));
    EXPECT_STR("3+1", lane_claim("9", ""));
    settle_all(1, 1, "done");
    settle_all(3, 4, "done");
    expect_nothing_stays();
}

TEST(suspects_that_a_claim_leaves_of_a_node_stay_suspects_and_due)
{
    long long due;

    add_pack(1, 4, "l2r0 k");
    due = lane_due_ms(1);
    EXPECT_STR("1 2 3 4", lane_claim("9", ""));
    EXPECT_STR("1", lane_settle(3, "done"));
    lane_expire(lane_token);
    EXPECT_STR("1+1", lane_claim("1", ""));
    EXPECT_INT(due, lane_due_ms(2));
    EXPECT_INT(due, lane_due_ms(4));
    EXPECT_STR("2+1 4+1", lane_claim("9", ""));
    EXPECT_INT(due, lane_held[4].due);
    lane_expire(lane_token);
    EXPECT_STR("2+1", lane_claim("1", "")); /* it had not started */
    EXPECT_STR("4+1", lane_claim("1", ""));
    expect_stats(0, 0, 3);
    EXPECT_INT(3, script_stat("crashed"));
}

TEST(what_goes_back_of_a_part_is_due_as_it_was)
{
    long long due;

    add_pack(1, 8, "l2r0 k");
    due = lane_due_ms(1);
    EXPECT_STR("1 2 3", lane_claim("3", ""));
    EXPECT_INT(due, lane_due_ms(4));
    EXPECT_INT(due, lane_due_ms(8));
    EXPECT_STR("0", lane_settle(1, "back"));
    EXPECT_INT(due, lane_due_ms(1));
    EXPECT_STR("ready", lane_slot("delete", 6, ""));
    EXPECT_INT(due, lane_due_ms(5));
    EXPECT_STR("1 4 5 7 8", lane_claim("9", ""));
}

TEST(a_lease_that_ends_frees_the_places_of_all_jobs_of_its_nodes)
{
    add_pack(1, 6, "l2r0 k");
    EXPECT_STR("1 2 3", lane_claim("9", "|||3|"));
    EXPECT_STR("", lane_claim("9", "|||3|"));
    lane_expire(lane_held[1].token);
    EXPECT_STR("1+1 2+1 3+1", lane_claim("9", "|||3|"));
    expect_stats(3, 3, 3);
    settle_all(1, 3, "done");
    EXPECT_STR("4 5 6", lane_claim("9", "|||3|"));
    settle_all(4, 6, "done");
    expect_nothing_stays();
}

static const char *claim_suspects(const char *how)
{
    return lane_claim_as(
        (struct lane_claim){"w1", "9", "600000", "|||3|", how});
}

TEST(suspects_of_a_pack_come_alone_or_not_at_all)
{
    add_pack(1, 3, "l2r0 a");
    EXPECT_STR("1 2 3", lane_claim("9", "|||3|"));
    lane_expire(lane_token);
    EXPECT_STR("", lane_claim("0", ""));
    add_pack(11, 2, "l2r0 b");
    EXPECT_STR("11 12", claim_suspects("none"));
    expect_stats(3, 3, 2);
    for (int job = 1; job <= 3; job++) {
        (void)claim_suspects("alone");
        EXPECT_INT(1, lane_claimed_count);
        EXPECT_INT(job, lane_claimed[0]);
        expect_stats(3 - job, 3 - job, 2 + job);
    }
    settle_all(1, 3, "done");
    settle_all(11, 12, "done");
    expect_nothing_stays();
}

/* --- what is deleted and put off ------------------------------------------ */

TEST(one_job_of_a_pack_that_waits_is_deleted)
{
    add_pack(1, 6, "l2r0 k");
    expect_stats(6, 6, 0);
    EXPECT_STR("ready", lane_slot("delete", 3, ""));
    expect_stats(5, 5, 0);
    EXPECT_STR("1 2", lane_claim("2", ""));
    EXPECT_STR("ready", lane_slot("delete", 6, ""));
    EXPECT_STR("none", lane_slot("delete", 6, ""));
    expect_stats(2, 2, 2);
    EXPECT_STR("4 5", lane_claim("9", ""));
    EXPECT_TRUE(!exists("turns") && !exists("lane:2k"));
    settle_all(1, 2, "done");
    settle_all(4, 5, "done");
    expect_nothing_stays();
}

TEST(all_jobs_of_a_pack_that_waits_are_deleted_one_by_one)
{
    add_pack(1, 5, "l2r0 k");
    for (int job = 1; job <= 5; job++) {
        EXPECT_TRUE(exists("of"));
        EXPECT_STR("ready", lane_slot("delete", 6 - job, ""));
        expect_stats(5 - job, 5 - job, 0);
    }
    EXPECT_TRUE(!exists("of"));
    EXPECT_STR("", lane_claim("9", ""));
    EXPECT_INT(-1, lane_next_us);
    expect_nothing_stays();
}

TEST(one_job_of_a_pack_that_runs_is_deleted_and_frees_its_place)
{
    add_pack(1, 6, "l2r0 k");
    EXPECT_STR("1 2 3 4", lane_claim("9", "|||4|"));
    EXPECT_STR("", lane_claim("9", "|||4|"));
    EXPECT_STR("running", lane_slot("delete", 3, ""));
    expect_stats(2, 2, 3);
    EXPECT_STR("5", lane_claim("9", "|||4|"));
    EXPECT_STR("0 0 2", lane_settle(3, "done"));
    settle_all(1, 2, "done");
    settle_all(4, 5, "done");
    EXPECT_STR("6", lane_claim("9", "|||4|"));
    settle_all(6, 6, "done");
    expect_nothing_stays();
}

TEST(one_job_of_a_pack_is_put_off_and_brought_forward)
{
    long long from = lane_now_ms();

    add_pack(1, 4, "l2r0 k");
    expect_stats(4, 4, 0);
    EXPECT_STR("ready", lane_slot("reschedule", 2, "r60000"));
    expect_stats(3, 4, 0);
    EXPECT_STR("1 3 4", lane_claim("9", "|||4|"));
    EXPECT_STR("running", lane_slot("reschedule", 3, "r60000"));
    expect_stats(0, 1, 3);
    EXPECT_STR("", lane_claim("9", "|||4|"));
    lane_expect_told(lane_due_ms(2), from, 60000);
    EXPECT_STR("scheduled", lane_slot("reschedule", 2, "r0"));
    expect_stats(1, 1, 3);
    EXPECT_STR("2", lane_claim("9", "|||4|"));
    settle_all(1, 4, "done");
    expect_nothing_stays();
}

TEST(a_pack_that_waits_and_runs_is_purged_node_by_node)
{
    add_pack(1, 6, "l2r0 k");
    EXPECT_STR("1 2", lane_claim("9", "|||2|"));
    EXPECT_STR("", lane_claim("9", "|||2|"));
    expect_stats(4, 4, 2);
    EXPECT_STR("2", lane_purge((const int[]){1}, 1));
    expect_stats(4, 4, 0);
    EXPECT_STR("3 4", lane_claim("9", "|||2|"));
    EXPECT_STR("4", lane_purge((const int[]){3, 5}, 2));
    EXPECT_TRUE(!exists("of") && !exists("on:k"));
    EXPECT_STR("", lane_claim("9", ""));
    expect_nothing_stays();
}

/* --- what is stale -------------------------------------------------------- */

TEST(a_pack_that_is_lost_leaves_its_lane_and_the_places_of_its_key)
{
    add_pack(1, 4, "l2r0 k");
    EXPECT_STR("1 2 3", lane_claim("9", "|||3|"));
    EXPECT_STR("", lane_claim("9", "|||3|"));
    EXPECT_INT(2, redis_int(script_proc, "ZCARD weir:{t}:on:k"));
    (void)script_text("DEL weir:{t}:p:000000000001 weir:{t}:run weir:{t}:wait");
    EXPECT_STR("", lane_claim("9", "|||3|"));
    EXPECT_TRUE(!exists("of") && !exists("on:k"));
    add_pack(11, 2, "l2r0 k");
    EXPECT_STR("11 12", lane_claim("9", "|||3|"));
}

TEST(stale_nodes_of_a_lane_are_passed_over_and_removed)
{
    add_pack(1, 8, "l2r0 k");
    for (int job = 1; job <= 7; job += 2)
        EXPECT_STR("ready", lane_slot("delete", job, ""));
    EXPECT_INT(4, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    EXPECT_INT(4, redis_int(script_proc, "ZCARD weir:{t}:lane:2k"));
    EXPECT_INT(2, redis_int(script_proc, "ZADD weir:{t}:lane:2k 1 %s 2 %s",
                            "0000000000010007", "another")); /* by hand */
    EXPECT_STR("2 4", lane_claim("2", ""));
    EXPECT_STR("6 8", lane_claim("9", ""));
    EXPECT_TRUE(!exists("lane:2k") && !exists("turns"));
    settle_all(2, 2, "done");
    settle_all(4, 4, "done");
    settle_all(6, 6, "done");
    settle_all(8, 8, "done");
    expect_nothing_stays();
}

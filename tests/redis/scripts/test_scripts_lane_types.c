/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/redis/scripts/lane_fixture.h"

/* As test_scripts_types.c, for what lanes.lua has. */

/* Each id is of a job that waits, runs or is dead, each slot that waits or runs
 * is there once and has its id, and counters count as many. */
static const char whole[] =
    "local p, slots, count = 'weir:{t}:', {}, { wait = 0, run = 0 } "
    "local function call(name, key, ...) "
    "  return redis.pcall(name, p .. key, ...) end "
    "for _, key in ipairs({ 'wait', 'run' }) do "
    "  local nodes = call('ZRANGE', key, 0, -1) "
    "  for _, node in ipairs(nodes.err and {} or nodes) do "
    "    local a, b, c, d = node:byte(13, 16) "
    "    for slot = a * 16 + b - 816, c * 16 + d - 816 do "
    "      local name = node:sub(1, 12) .. ' ' .. slot "
    "      if slots[name] then return 'twice ' .. name end "
    "      slots[name], count[key] = true, count[key] + 1 end end end "
    "local packs = {} "
    "local function slot_of(seq, id) "
    "  if not packs[seq] then "
    "    local bytes = call('GET', 'p:' .. seq) or '' "
    "    packs[seq] = bytes == '' and {} or cmsgpack.unpack(bytes:sub(9, "
    "      bytes:byte(6) + bytes:byte(7) * 256)) end "
    "  for i, name in ipairs(packs[seq]) do "
    "    if name == id then return seq .. ' ' .. i - 1 end end "
    "  return 'no pack' end "
    "local all = call('HGETALL', 'ids') "
    "for i = 2, #all, 2 do if all[i - 1] ~= '!' and all[i] ~= 'D' then "
    "  local name = slot_of(all[i], all[i - 1]) "
    "  if not slots[name] then return 'lost ' .. all[i - 1] end "
    "  slots[name] = nil end end "
    "if next(slots) then return 'no id ' .. next(slots) end "
    "local m = {} "
    "for _, name in ipairs({ 'added', 'retried', 'returned', 'claimed', "
    "  'delwait', 'settled', 'delrun' }) do "
    "  m[name] = tonumber(call('HGET', 'meta', name) or 0) end "
    "if m.added + m.retried + m.returned - m.claimed - m.delwait ~= count.wait "
    "  then return 'waiting' end "
    "if m.claimed - m.settled - m.returned - m.delrun ~= count.run "
    "  then return 'running' end "
    "return ''";

/* As script_expect_untouched, or the call goes on and loses nothing. */
static void expect_whole(const char *key_names, void (*prepare)(void),
                         const char *(*call)(void))
{
    static const char digest[] =
        "local names, all = redis.call('KEYS', '*'), {} table.sort(names) "
        "for _, name in ipairs(names) do "
        "  all[#all + 1] = name .. redis.call('DUMP', name) end "
        "return redis.sha1hex(table.concat(all))";
    char before[48], key[16];

    for (size_t len; (len = strcspn(key_names, " ")) > 0; key_names += len) {
        (void)snprintf(key, sizeof(key), "%.*s", (int)len, key_names);
        (void)script_text("FLUSHALL");
        prepare();
        script_poison(key);
        (void)snprintf(before, sizeof(before), "%s",
                       redis_text(script_proc, "EVAL %s 0", digest));
        if (strstr(call(), "WRONGTYPE") != NULL) {
            if (strcmp(before, redis_text(script_proc, "EVAL %s 0", digest)) !=
                0)
                EXPECT_STR("", key); /* of another type, and others changed */
        } else {
            (void)snprintf(before, sizeof(before), "%s",
                           redis_text(script_proc, "EVAL %s 0", whole));
            if (before[0] != '\0') /* the key, and what is lost */
                EXPECT_STR(key, before);
        }
        len += key_names[len] == ' ';
    }
}

static void make_topic(void)
{
    EXPECT_STR("1", lane_add(1, "l2r0 k"));
}

static const char *add_again(void)
{
    return lane_add(2, "l2r0 k");
}

static void stage(void)
{
    make_topic();
    script_stage('a', "x");
}

static const char *add_staged(void)
{
    return script_add_staged('a', "l2r0 k", 6);
}

TEST(an_add_to_a_lane_that_ends_with_an_error_adds_nothing)
{
    expect_whole("turns of lane:2k", make_topic, add_again);
}

TEST(a_staged_add_to_a_lane_that_ends_with_an_error_adds_nothing)
{
    expect_whole("turns of lane:2k", stage, add_staged);
}

/* It took nothing, or what it tells. */
static void expect_claim_is_whole(const char *key, bool has_more)
{
    long long waits;

    (void)script_text("FLUSHALL");
    make_topic();
    EXPECT_STR("1", lane_add(2, "l2r0 k"));
    if (has_more)
        for (int i = 3; i < 12; i++)
            EXPECT_STR("1", lane_add(i, "l0r0 "));
    EXPECT_STR("1", lane_add(12, "r0"));
    waits = redis_int(script_proc, "ZCARD weir:{t}:wait");
    script_poison(key);
    for (int i = 0; i < 2; i++) {
        (void)lane_claim("12", "||1000/s|5|");
        if (lane_reply->type == REDIS_REPLY_ARRAY)
            waits -= lane_claimed_count;
        if (waits != redis_int(script_proc, "ZCARD weir:{t}:wait"))
            EXPECT_STR("", key); /* it took some and did not tell */
    }
    (void)redis_int(script_proc, "DEL weir:{t}:%s", key);
    if (key[0] != 'l' && key[0] != 't') {
        for (int i = 0; i < 9; i++) {
            (void)lane_claim("12", "");
            waits -= lane_claimed_count;
        }
        if (waits != 0)
            EXPECT_STR("nothing is lost", key);
    }
}

TEST(a_claim_that_meets_another_type_takes_no_job_unheard)
{
    static const char *const keys[] = {"turns", "of", "rates", "on:k",
                                       "lane:2k"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        expect_claim_is_whole(keys[i], false);
}

TEST(a_claim_that_meets_another_type_takes_none_out_of_other_lanes)
{
    static const char *const keys[] = {"of", "rates", "on:k"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        expect_claim_is_whole(keys[i], true);
}

TEST(a_lane_that_is_none_takes_nothing_from_the_others)
{
    (void)script_text("FLUSHALL");
    for (int i = 1; i < 10; i++)
        EXPECT_STR("1", lane_add(i, "l0r0 "));
    EXPECT_STR("1", lane_add(12, "l2r0 k"));
    script_poison("lane:2k");
    (void)lane_claim("12", "");
    if (lane_reply->type == REDIS_REPLY_ARRAY)
        EXPECT_INT(9, lane_claimed_count);
    else
        EXPECT_INT(9, redis_int(script_proc, "ZCARD weir:{t}:lane:0"));
}

static void claim_first(void)
{
    make_topic();
    EXPECT_STR("1", lane_add(2, "l2r0 k"));
    EXPECT_STR("1", lane_claim("1", "|||1|"));
    EXPECT_STR("", lane_claim("1", "|||1|")); /* so that 2k is blocked */
}

static const char *settle_done(void)
{
    return lane_settle(1, "done");
}

static const char *settle_retry(void)
{
    return lane_settle(1, "l2r0 k");
}

static void claim_plain(void)
{
    EXPECT_STR("1", lane_add(1, "r0"));
    EXPECT_STR("1", lane_claim("9", ""));
}

static const char *settle_into_lane(void)
{
    return lane_settle_as(1, "l2r0 k", "0"); /* its worker knows of none */
}

TEST(a_job_that_moves_into_the_first_lane_is_not_lost)
{
    expect_whole("of turns lane:2k", claim_plain, settle_into_lane);
}

static const char *settle_back(void)
{
    return lane_settle(1, "back");
}

TEST(a_settle_of_a_lane_that_ends_with_an_error_settles_nothing)
{
    expect_whole("of turns on:k", claim_first, settle_done);
}

TEST(a_retry_of_a_lane_that_ends_with_an_error_settles_nothing)
{
    expect_whole("of turns on:k lane:2k", claim_first, settle_retry);
}

TEST(a_job_of_a_lane_goes_back_or_stays)
{
    expect_whole("of turns on:k lane:2k", claim_first, settle_back);
}

static const char *put_off(void)
{
    return lane_slot("reschedule", 1, "r60000");
}

TEST(a_reschedule_in_a_lane_that_ends_with_an_error_moves_nothing)
{
    expect_whole("of turns lane:2k", make_topic, put_off);
}

static const char *delete_running(void)
{
    return lane_slot("delete", 1, "");
}

TEST(a_delete_in_a_lane_that_ends_with_an_error_deletes_nothing)
{
    expect_whole("turns on:k", claim_first, delete_running);
}

static const char *purge_both(void)
{
    return lane_purge((const int[]){1, 2}, 2);
}

TEST(a_purge_of_lanes_that_ends_with_an_error_deletes_nothing)
{
    expect_whole("of turns on:k", claim_first, purge_both);
}

static void empty_topic(void)
{
    make_topic();
    EXPECT_STR("ready", lane_slot("delete", 1, ""));
}

TEST(a_drop_of_lanes_that_ends_with_an_error_leaves_the_topic)
{
    expect_whole("turns", empty_topic, lane_drop);
}

static void expire_first(void)
{
    claim_first();
    lane_expire(lane_held[1].token);
}

static const char *claim_again(void)
{
    return lane_claim("9", "|||1|");
}

TEST(a_lease_of_a_lane_is_kept_where_its_job_cannot_go_back)
{
    expect_whole("wait of turns lane:2k", expire_first, claim_again);
}

/* --- packs of several jobs ------------------------------------------------ */

static const char lane_keys[] = "of turns on:k lane:2k rates";

static void make_pack(void)
{
    EXPECT_STR("6", lane_add_pack(1, 6, "l2r0 k"));
}

/* Three run in two nodes, 2k is blocked. */
static void claim_part(void)
{
    make_pack();
    EXPECT_STR("1 2 3", lane_claim("9", "|||3|"));
    EXPECT_STR("", lane_claim("9", "|||3|"));
}

static void stage_pack(void)
{
    make_pack();
    script_stage('a', "x y z");
}

/* One of its ids is there. */
static void stage_rest(void)
{
    EXPECT_STR("1", script_add('b', "y", "l2r0 k"));
    script_stage('a', "x y z");
}

TEST(a_pack_that_enters_no_lane_is_not_added)
{
    expect_whole(lane_keys, stage_pack, add_staged);
    expect_whole(lane_keys, stage_rest, add_staged);
}

static const char *claim_some(void)
{
    return lane_claim("3", "||1000/s|5|");
}

static const char *claim_few(void)
{
    return lane_claim("9", "||1/h burst 3|5|");
}

/* It is not known that one ended. */
static void settle_unseen(void)
{
    claim_part();
    EXPECT_STR("1", lane_settle_as(2, "done", "0"));
    lane_pass_ms(3600000);
}

TEST(a_claim_that_splits_a_node_of_a_lane_loses_no_part)
{
    expect_whole(lane_keys, make_pack, claim_some);
    expect_whole(lane_keys, make_pack, claim_few);
    expect_whole(lane_keys, settle_unseen, claim_again);
}

static const char *settle_part(void)
{
    return lane_settle(2, "done");
}

static const char *retry_part(void)
{
    return lane_settle(2, "l2r0 k");
}

static const char *bury_part(void)
{
    return lane_settle(2, "dead");
}

TEST(a_part_of_a_node_of_a_lane_is_settled_or_stays)
{
    expect_whole(lane_keys, claim_part, settle_part);
    expect_whole(lane_keys, claim_part, retry_part);
    expect_whole(lane_keys, claim_part, bury_part);
}

static const char *give_part_back(void)
{
    return lane_settle(2, "back");
}

TEST(a_part_of_a_node_of_a_lane_goes_back_or_stays)
{
    expect_whole(lane_keys, claim_part, give_part_back);
}

static const char *delete_waiting(void)
{
    return lane_slot("delete", 5, "");
}

static const char *delete_part(void)
{
    return lane_slot("delete", 2, "");
}

TEST(one_job_of_a_pack_of_a_lane_is_deleted_or_stays)
{
    expect_whole(lane_keys, make_pack, delete_waiting);
    expect_whole(lane_keys, claim_part, delete_waiting);
    expect_whole(lane_keys, claim_part, delete_part);
}

static const char *put_off_part(void)
{
    return lane_slot("reschedule", 5, "r60000");
}

TEST(one_job_of_a_pack_of_a_lane_is_put_off_or_stays)
{
    expect_whole(lane_keys, make_pack, put_off_part);
    expect_whole(lane_keys, claim_part, put_off_part);
}

static const char *purge_part(void)
{
    return lane_purge((const int[]){1, 4}, 2);
}

TEST(nodes_of_a_pack_of_a_lane_are_purged_or_stay)
{
    expect_whole(lane_keys, claim_part, purge_part);
}

static void expire_part(void)
{
    claim_part();
    EXPECT_STR("1", lane_settle(2, "done"));
    lane_expire(lane_held[1].token);
}

static const char *claim_suspect(void)
{
    return lane_claim_as(
        (struct lane_claim){"w1", "9", "600000", "|||3|", "alone"});
}

TEST(a_lease_of_a_part_of_a_pack_is_kept_where_it_cannot_go_back)
{
    expect_whole(lane_keys, expire_part, claim_again);
    expect_whole(lane_keys, expire_part, claim_suspect);
    expect_whole("wait", expire_part, claim_again);
}

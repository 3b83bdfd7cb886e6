/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/redis/scripts/lane_fixture.h"

/* As test_scripts_types.c, for what lanes.lua has. */

/* Each id is of a job that waits, runs or is dead, and has its pack. */
static const char whole[] =
    "local p, jobs = 'weir:{t}:', {} "
    "local function call(name, key, ...) "
    "  return redis.pcall(name, p .. key, ...) end "
    "for _, key in ipairs({ 'wait', 'run' }) do "
    "  local nodes = call('ZRANGE', key, 0, -1) "
    "  for _, node in ipairs(nodes.err and {} or nodes) do "
    "    jobs[node:sub(1, 12)] = true end end "
    "local all = call('HGETALL', 'ids') "
    "for i = 2, #all, 2 do if all[i - 1] ~= '!' and all[i] ~= 'D' then "
    "  if not jobs[all[i]] then return 'lost ' .. all[i - 1] end "
    "  jobs[all[i]] = nil end end "
    "if next(jobs) then return 'no id ' .. next(jobs) end "
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
            EXPECT_STR("", redis_text(script_proc, "EVAL %s 0", whole));
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

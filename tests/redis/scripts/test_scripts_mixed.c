/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/redis/scripts/script_fixture.h"

/* Packs whose slots are due one after the other (scripts/lib/mixed.lua). */

static const char PAST[] = "\1\0\0\0\0\0"; /* 1 ms since 1970 */

/* What says when slots are due: form and first number as they come, then what
 * each adds to it, in seconds. */
static struct weir_slice when_of(char form, const char base[6],
                                 const unsigned *seconds, size_t count)
{
    static uint8_t when[7 + 4 * 256];

    when[0] = (uint8_t)form;
    memcpy(when + 1, base, 6);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < 4; j++)
            when[7 + 4 * i + j] = (uint8_t)(seconds[i] * 1000 >> 8 * j);
    return weir__slice_of(when, 7 + 4 * count);
}

static const char *add_when(char letter, const char *ids,
                            struct weir_slice when, bool has_due)
{
    static char number[24];

    script_stage(letter, ids);
    (void)snprintf(number, sizeof(number), "%lld.0", script_number++);
    script_begin(&weir__script_delay_add, "wait ids meta idle seen");
    script_pack_key(letter);
    if (has_due)
        script_key("due");
    script_arg("t");
    script_arg("delay");
    script_arg("call_slot");
    script_arg(number);
    script_arg(script_total);
    script_arg(script_header);
    script_arg_bytes(when.ptr, when.len);
    return script_call();
}

/* Delays in seconds, as many as there are jobs. */
static const char *add_mixed(char letter, const char *ids,
                             const unsigned *seconds, size_t count)
{
    return add_when(letter, ids, when_of('s', "\0\0\0\0\0", seconds, count),
                    true);
}

static const char *waiting(void)
{
    return script_text("ZRANGE weir:{t}:wait 0 -1");
}

/* When a node waits until, from now on in seconds, rounded; of a mixed pack. */
static long long waits_for(const char *node)
{
    return redis_int(script_proc, "EVAL %s 1 weir:{t}:wait %s",
                     "local s = redis.call('ZSCORE', KEYS[1], ARGV[1]) "
                     "if not s or tonumber(s) < 2 ^ 45 then return -1 end "
                     "local ms = redis.call('TIME')[1] * 1000 "
                     "return math.floor((s - 2 ^ 45 - ms) / 1000 + 0.5)",
                     node);
}

static const unsigned FOUR[] = {0, 0, 100, 200};

TEST(a_mixed_pack_is_one_node_and_is_taken_as_far_as_it_is_due)
{
    EXPECT_STR("4", add_mixed('a', "4", FOUR, 4));
    EXPECT_STR("aaaaaaaaaaaa0003", waiting());
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:due"));
    EXPECT_STR("a0001+0", script_claim("9", "900000"));
    EXPECT_STR("aaaaaaaaaaaa0203", waiting());
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0203") >= 99);
    EXPECT_TRUE(script_reply->element[2]->integer > 90000000);
    EXPECT_STR("2", script_settle_all("a0001"));
    EXPECT_STR("", script_claim("9", "9000"));
    EXPECT_INT(1, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
}

TEST(a_claim_tells_when_each_slot_was_due)
{
    static const unsigned times[] = {0, 5, 7};
    struct weir_slice when = when_of('t', PAST, times, 3);
    const char *told;

    EXPECT_STR("3", add_when('a', "3", when, true));
    EXPECT_STR("a0001+0", script_claim("2", "9000"));
    EXPECT_INT(REDIS_REPLY_STRING, script_reply->element[6]->type);
    EXPECT_INT(1 + 12 + 2 * 4, script_reply->element[6]->len);
    told = script_reply->element[6]->str;
    EXPECT_INT(0, told[0]);
    EXPECT_TRUE(memcmp(told + 7, PAST, 6) == 0);
    EXPECT_TRUE(memcmp(told + 13, when.ptr + 7, 8) == 0);
    EXPECT_STR("a0202+0", script_claim("2", "9000"));
    EXPECT_INT(1, script_reply->element[6]->integer >> 53);
}

/* Without the table it would be there for ever. */
TEST(a_mixed_pack_leaves_nothing_behind)
{
    static const unsigned none[] = {0, 0};

    EXPECT_STR("2", add_mixed('a', "x y", none, 2));
    EXPECT_STR("a0001+0", script_claim("9", "9000"));
    script_settle_begin();
    script_settle_mixed("a0001", NULL, 0);
    script_settle_close();
    EXPECT_STR("2", script_settle('a', 0, "10"));
    EXPECT_INT(0, redis_int(script_proc,
                            "EXISTS weir:{t}:due weir:{t}:held weir:{t}:lease "
                            "weir:{t}:run weir:{t}:wait"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:ids"));
}

TEST(of_a_mixed_pack_each_slot_comes_back_under_its_due_time)
{
    static const unsigned times[] = {0, 5, 7, 9};

    (void)add_when('a', "4", when_of('t', PAST, times, 4), true);
    EXPECT_STR("a0003+0", script_crash("9"));
    EXPECT_STR("", script_claim("0", "9000"));
    EXPECT_STR("aaaaaaaaaaaa0003", waiting());
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:held"));
    EXPECT_STR("a0000+1 a0101+1", script_claim("2", "9000"));
    script_settle_begin();
    script_settle_back("a0101", "", 0, (INT64_C(1) << 45) + 77);
    EXPECT_STR("0", script_settle('a', 0, "10"));
    EXPECT_STR("35184372088909.008", /* 2^45 + 77, one ended lease */
               script_text("ZSCORE weir:{t}:wait aaaaaaaaaaaa0101"));
}

TEST(what_was_not_started_of_a_mixed_node_goes_back_by_the_table)
{
    static const unsigned times[] = {0, 0, 0, 0};
    char due[32];

    (void)add_mixed('a', "4", times, 4);
    (void)snprintf(due, sizeof(due), "%s",
                   script_text("ZSCORE weir:{t}:wait aaaaaaaaaaaa0003"));
    EXPECT_STR("a0003+0", script_claim("9", "9000"));
    script_settle_begin();
    script_settle_back("a0003", "\1\2\3", 3, (INT64_C(1) << 45) + 1);
    EXPECT_STR("0", script_settle('a', 0, "10"));
    EXPECT_STR("aaaaaaaaaaaa0101 aaaaaaaaaaaa0203", waiting());
    EXPECT_STR(due, script_text("ZSCORE weir:{t}:wait aaaaaaaaaaaa0101"));
    EXPECT_STR(due, script_text("ZSCORE weir:{t}:wait aaaaaaaaaaaa0203"));
}

TEST(no_job_overtakes_one_that_is_twice_as_late)
{
    static const unsigned spread[] = {0, 300, 600};
    static const unsigned one[] = {0, 550};

    EXPECT_STR("3", add_mixed('a', "3", spread, 3));
    EXPECT_STR("2", add_mixed('b', "2", one, 2));
    EXPECT_INT(1,
               redis_int(script_proc, "EVAL %s 2 weir:{t}:wait weir:{t}:due",
                         /* all of it was due long ago, from 1,000 s on */
                         "local now = redis.call('TIME')[1] * 1000 - 1000000 "
                         "local at = struct.pack('<I4I2', now % 2 ^ 32, "
                         "math.floor(now / 2 ^ 32)) "
                         "for _, p in ipairs({ 'a', 'b' }) do "
                         "  p = string.rep(p, 12) "
                         "  local t = redis.call('HGET', KEYS[2], p) "
                         "  redis.call('HSET', KEYS[2], p, at .. at .. "
                         "string.sub(t, 13)) "
                         "  local node = redis.call('ZRANGEBYLEX', KEYS[1], "
                         "'[' .. p, '+', 'LIMIT', 0, 1)[1] "
                         "  redis.call('ZADD', KEYS[1], 2 ^ 45 + now, node) "
                         "end return 1"));
    EXPECT_STR("a0001+0 b0000+0", script_claim("9", "9000"));
    EXPECT_STR("b0101+0 a0202+0", script_claim("9", "9000"));
}

/* --- refusals ----------------------------------------------------------- */

TEST(times_that_fall_or_are_none_are_refused)
{
    static const unsigned falling[] = {0, 2, 1}, rising[] = {0, 1, 2};
    static const char far[] = "\xff\xff\xff\xff\xff\xff";
    struct weir_slice when = when_of('s', "\0\0\0\0\0", falling, 3);

    EXPECT_STR("0 0 -3", add_when('a', "3", when, true));
    EXPECT_STR("0 0 -3",
               add_when('a', "3", when_of('t', far, rising, 3), true));
    EXPECT_STR("0 0 -3",
               add_when('a', "2", when_of('t', PAST, rising, 3), true));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:due weir:{t}:wait"));
}

TEST(ids_that_exist_leave_nodes_under_their_own_times)
{
    static const unsigned times[] = {100, 200, 300, 400};

    EXPECT_STR("1", script_add('b', "w", "r0"));
    EXPECT_STR("3 0 0", add_mixed('a', "w x y z", times, 4));
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0101") >= 199);
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0203") >= 299);
}

TEST(no_more_jobs_of_a_mixed_pack_wait_than_may)
{
    static const unsigned times[] = {100, 200, 300};

    (void)script_add('b', "1", "r0");
    (void)script_text("HSET weir:{t}:meta max_pending 3");
    EXPECT_STR("2 0 258", add_mixed('a', "3", times, 3));
    EXPECT_STR("bbbbbbbbbbbb0000 aaaaaaaaaaaa0001", waiting());
}

/* --- one job ------------------------------------------------------------ */

static const char *slot(const char *op, const char *number, const char *when)
{
    static char id[16];

    (void)snprintf(id, sizeof(id), "@aaaaaaaaaaaa0%s", number);
    script_begin(&weir__script_delay_slot, "wait run ids meta");
    script_pack_key('a');
    script_key("dead");
    script_key("rec");
    script_key("idle");
    script_key("due");
    script_arg(op);
    script_arg(id);
    script_arg("aaaaaaaaaaaa");
    script_arg(number);
    script_arg("t");
    script_arg(when);
    return script_call();
}

TEST(a_slot_of_a_mixed_pack_is_shown_moved_and_deleted_by_itself)
{
    EXPECT_STR("4", add_mixed('a', "4", FOUR, 4));
    EXPECT_TRUE(strncmp("ready ", slot("show", "1", "r0"), 6) == 0);
    EXPECT_TRUE(strncmp("scheduled ", slot("show", "2", "r0"), 10) == 0);
    (void)slot("reschedule", "0", "r500000");
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0000") >= 499);
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0101") <= 1);
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0203") >= 99);
    EXPECT_TRUE(strncmp("scheduled ", slot("delete", "2", "r0"), 10) == 0);
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0303") >= 199);
    EXPECT_STR("a0101+0", script_claim("9", "9000"));
    (void)slot("delete", "0", "r0");
    (void)slot("delete", "1", "r0");
    (void)slot("delete", "3", "r0");
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:due weir:{t}:wait "
                                         "weir:{t}:p:aaaaaaaaaaaa"));
}

TEST(a_job_of_a_mixed_pack_needs_the_key_of_the_tables)
{
    (void)add_mixed('a', "4", FOUR, 4);
    EXPECT_CONTAINS(
        "mixed pack: give the key due",
        script_slot("delete", "@aaaaaaaaaaaa02", "aaaaaaaaaaaa", "2"));
    EXPECT_STR("aaaaaaaaaaaa0003", waiting());
}

/* --- counts ------------------------------------------------------------- */

static long long count(const char *name)
{
    script_begin(&weir__script_delay_stats, "wait meta dead relay due");
    script_arg("1000");
    (void)script_call();
    for (size_t i = 0; i + 1 < script_reply->elements; i += 2)
        if (strcmp(script_reply->element[i]->str, name) == 0)
            return script_reply->element[i + 1]->integer;
    return -1;
}

TEST(of_a_mixed_pack_what_is_due_is_ready)
{
    (void)add_mixed('a', "4", FOUR, 4);
    while (count("ready") < 2)
        continue;
    EXPECT_STR("aaaaaaaaaaaa0001 aaaaaaaaaaaa0203", waiting());
    EXPECT_INT(4, count("waiting"));
    EXPECT_INT(1, count("exact"));
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_INT(1, count("ready"));
    (void)slot("reschedule", "1", "r90000");
    EXPECT_INT(0, count("ready"));
    (void)slot("reschedule", "3", "r0");
    while (count("ready") < 1)
        continue;
    EXPECT_STR("a0303+0", script_claim("9", "9000"));
    EXPECT_INT(0, count("ready"));
    while (script_stat("exact") == 1) /* the key of the tables is missing */
        continue;
}

TEST(a_purge_of_mixed_packs_leaves_no_table)
{
    (void)add_mixed('a', "4", FOUR, 4);
    while (count("ready") < 2)
        continue;
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    script_begin(&weir__script_delay_purge, "wait run lease ids meta held due");
    for (int i = 0; i < 3; i++)
        script_pack_key('a');
    script_arg("aaaaaaaaaaaa0000");
    script_arg("aaaaaaaaaaaa0101");
    script_arg("aaaaaaaaaaaa0203");
    EXPECT_STR("4", script_call());
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:due weir:{t}:held "
                                         "weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(0, count("ready"));
}

/* --- a table that was lost ----------------------------------------------- */

static void lose_table(const char *count)
{
    static const unsigned times[] = {0, 100, 200, 300, 400};

    EXPECT_STR(count, add_mixed('a', count, times, (size_t)count[0] - '0'));
    EXPECT_INT(1, redis_int(script_proc, "DEL weir:{t}:due"));
}

/* A node is told with an empty table: its jobs must not run. */
static void expect_undated(const char *room, const char *lease_ms,
                           const char *nodes)
{
    script_begin_claim(room, lease_ms);
    EXPECT_CONTAINS(nodes, script_call());
    for (size_t i = 6; i < script_reply->elements; i += 2) {
        EXPECT_INT(REDIS_REPLY_STRING, script_reply->element[i]->type);
        EXPECT_INT(0, script_reply->element[i]->len);
    }
}

TEST(jobs_whose_due_times_were_lost_must_not_run)
{
    lose_table("4");
    expect_undated("9", "9000", "aaaaaaaaaaaa0003");
    EXPECT_STR("", waiting());
}

TEST(parts_of_a_node_whose_due_times_were_lost_must_not_run)
{
    lose_table("5");
    expect_undated("1", "9000", "aaaaaaaaaaaa0000");
    for (int i = 0; i < 4; i++)
        expect_undated("1", "9000", "aaaaaaaaaaaa0");
    EXPECT_STR("", waiting());
}

TEST(lost_due_times_stay_lost_when_their_worker_dies)
{
    lose_table("3");
    expect_undated("2", "0", "aaaaaaaaaaaa0001");
    while (redis_int(script_proc, "ZCARD weir:{t}:run") > 0)
        expect_undated("0", "9000", "");
    expect_undated("9", "9000", "aaaaaaaaaaaa0001");
    EXPECT_STR("", waiting());
}

TEST(lost_due_times_stay_lost_when_another_job_is_deleted_or_moved)
{
    lose_table("4");
    EXPECT_CONTAINS("ready", slot("delete", "0", "r0"));
    EXPECT_CONTAINS("ready", slot("reschedule", "2", "r90000"));
    expect_undated("9", "9000", "aaaaaaaaaaaa0101");
    EXPECT_STR("aaaaaaaaaaaa0202", waiting());
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0202") >= 89);
}

/* --- earlier workers ----------------------------------------------------- */

/* The claim of weir from before mixed packs, in the place of today's. */
static const struct weir__script *earlier_claim(void)
{
    static char text[32 * 1024], sha1[48];
    static struct weir__script script = {.name = "earlier", .sha1 = sha1};
    FILE *file = fopen(EARLIER_CLAIM, "rb");

    EXPECT_TRUE(file != NULL);
    script.len = fread(text, 1, sizeof(text), file);
    (void)fclose(file); /* only read from */
    EXPECT_TRUE(script.len < sizeof(text));
    script.text = text;
    (void)snprintf(sha1, sizeof(sha1), "%s",
                   redis_text(script_proc, "SCRIPT LOAD %s", text));
    return &script;
}

/* Names of the nodes that it takes. */
static const char *claim_as_before(const char *lease_ms)
{
    const char *const args[] = {"9", lease_ms, "1000", "", "0", "delay", NULL};
    static char nodes[256];
    size_t len = 0;

    (void)script_run(earlier_claim(), "wait run lease ids meta idle", args);
    EXPECT_INT(REDIS_REPLY_ARRAY, script_reply->type);
    (void)snprintf(script_token, sizeof(script_token), "%lld",
                   script_reply->element[1]->integer);
    nodes[0] = '\0';
    for (size_t i = 5; i < script_reply->elements; i += 2)
        len += (size_t)snprintf(nodes + len, sizeof(nodes) - len, "%s ",
                                script_reply->element[i]->str);
    return nodes;
}

TEST(an_earlier_worker_starts_nothing_of_a_mixed_pack_and_loses_nothing)
{
    EXPECT_STR("4", add_mixed('a', "4", FOUR, 4));
    EXPECT_STR("2", script_add('b', "2", "r0"));
    EXPECT_STR("bbbbbbbbbbbb0001 ", claim_as_before("9000"));
    EXPECT_STR("", claim_as_before("9000"));
    EXPECT_STR("a0001+0", script_claim("9", "9000"));
    EXPECT_STR("", claim_as_before("9000"));
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0203") >= 99);
}

TEST(what_an_earlier_worker_gives_back_of_a_mixed_pack_is_what_was_due)
{
    EXPECT_STR("4", add_mixed('a', "4", FOUR, 4));
    EXPECT_STR("a0001+0", script_crash("9"));
    EXPECT_STR("aaaaaaaaaaaa0000 aaaaaaaaaaaa0101 ", claim_as_before("0"));
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0203") >= 99);
    do
        (void)script_claim("0", "9000");
    while (redis_int(script_proc, "ZCARD weir:{t}:run") > 0);
    EXPECT_STR("a0000+1 a0101+1", script_claim("9", "9000"));
    EXPECT_TRUE(waits_for("aaaaaaaaaaaa0203") >= 99);
}

/* The token of the last claim stays. */
static const char *claim_nothing(void)
{
    char token[sizeof(script_token)];
    const char *nodes;

    memcpy(token, script_token, sizeof(token));
    nodes = script_claim("9", "9000");
    memcpy(script_token, token, sizeof(token));
    return nodes;
}

TEST(tables_that_an_earlier_worker_left_go_when_nothing_waits_or_runs)
{
    EXPECT_STR("2", add_mixed('a', "2", (const unsigned[]){0, 0}, 2));
    EXPECT_STR("a0001+0", script_crash("9"));
    EXPECT_STR("aaaaaaaaaaaa0000 aaaaaaaaaaaa0101 ", claim_as_before("9000"));
    script_settle_begin();
    script_settle_node("a0000", "", 0);
    script_settle_node("a0101", "", 0);
    script_settle_close();
    EXPECT_STR("2", script_settle('a', 0, "10"));
    EXPECT_STR("2", add_mixed('b', "2", (const unsigned[]){0, 0}, 2));
    EXPECT_STR("", script_claim("0", "9000"));
    EXPECT_STR("b0001+0", script_claim("9", "9000"));
    EXPECT_STR("", claim_nothing());
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:due"));
    EXPECT_STR("2", script_settle_all("b0001"));
    EXPECT_STR("", script_claim("9", "9000"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:due"));
}

TEST(where_only_earlier_workers_claimed_no_pack_is_mixed)
{
    EXPECT_STR("1", script_add('b', "1", "r0"));
    EXPECT_STR("bbbbbbbbbbbb0000 ", claim_as_before("9000"));
    EXPECT_STR("4", add_mixed('a', "4", FOUR, 4));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:due"));
    EXPECT_STR("aaaaaaaaaaaa0000 aaaaaaaaaaaa0101 ", claim_as_before("9000"));
    EXPECT_STR("aaaaaaaaaaaa0202 aaaaaaaaaaaa0303", waiting());
    EXPECT_STR("", script_claim("9", "9000"));
    EXPECT_STR("4", add_mixed('c', "4", FOUR, 4));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:due"));
    EXPECT_STR("c0001+0", script_claim("9", "9000"));
}

TEST(an_add_without_the_key_of_the_tables_mixes_no_pack)
{
    struct weir_slice when = when_of('s', "\0\0\0\0\0", FOUR, 4);

    EXPECT_STR("4", add_when('a', "4", when, false));
    EXPECT_INT(4,
               redis_int(script_proc, "ZCOUNT weir:{t}:wait 0 9999999999999"));
    EXPECT_STR("a0000+0 a0101+0", script_claim("9", "9000"));
}

/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Somebody else made one key of a topic another type: a script that ends with
 * an error for that has changed nothing before, or nothing that a job needs. */

/* --- delay --------------------------------------------------------------- */

static void stage_two(void)
{
    script_stage('a', "x y");
}

static const char *add_two(void)
{
    return script_add_staged('a', "r0", 2);
}

static void make_topic(void)
{
    (void)redis_text(script_proc, "HSET weir:{t}:meta kind delay");
}

static const char *add_with_pack(void)
{
    stage_two();
    return add_two();
}

TEST(an_add_that_ends_with_an_error_leaves_no_job)
{
    script_expect_untouched("wait meta seen", stage_two, add_two);
    script_expect_untouched("ids", make_topic, add_with_pack);
}

static void add_ready(void)
{
    (void)script_add('a', "x y", "r0");
}

static const char *claim(void)
{
    script_begin(&weir__script_delay_claim,
                 "wait run lease ids meta idle held due");
    script_arg("1");
    script_arg("9000");
    script_arg("1000");
    script_arg("w1");
    script_arg("0");
    script_arg("delay");
    return script_call();
}

TEST(a_claim_that_ends_with_an_error_takes_no_job)
{
    script_expect_untouched("wait run lease meta", add_ready, claim);
}

static void crash(void)
{
    add_ready();
    (void)script_crash("10");
}

TEST(a_lease_that_ended_is_kept_where_its_jobs_cannot_go_back)
{
    script_expect_untouched("wait meta", crash, claim);
}

static void claim_two(void)
{
    add_ready();
    EXPECT_STR("a0001+0", script_claim("10", "9000"));
}

static const char *settle_with_retry(void)
{
    static const char first[] = "13"; /* header length of two short ids */

    script_stage('b', "y");
    script_settle_begin();
    script_settle_move(1, strtoul(script_header, NULL, 10));
    (void)memcpy(script_header, first, sizeof(first));
    script_settle_node("a0001", NULL, 0);
    script_settle_close();
    return script_settle('a', 'b', "10");
}

static void claim_and_stage(void)
{
    claim_two();
    script_stage('b', "y");
}

static const char *settle_as_dead(void)
{
    script_settle_begin();
    script_settle_node("a0001", NULL, 0);
    script_settle_close();
    script_settle_end(0, "x", "record");
    return script_settle('a', 0, "10");
}

static const char *settle_as_given_back(void)
{
    script_settle_begin();
    script_settle_back("a0001", NULL, 0, 1);
    script_settle_close();
    return script_settle('a', 0, "10");
}

TEST(a_settle_that_ends_with_an_error_settles_nothing)
{
    script_expect_untouched("run wait ids meta lease dead rec", claim_and_stage,
                            settle_with_retry);
    script_expect_untouched("run ids meta dead rec", claim_two, settle_as_dead);
    script_expect_untouched("run wait meta", claim_two, settle_as_given_back);
}

static const char *purge(void)
{
    script_begin(&weir__script_delay_purge, "wait run lease ids meta held due");
    script_pack_key('a');
    script_arg("aaaaaaaaaaaa0001");
    return script_call();
}

TEST(a_purge_that_ends_with_an_error_deletes_nothing)
{
    script_expect_untouched("wait run ids lease meta", add_ready, purge);
}

static void add_dead(void)
{
    claim_two();
    EXPECT_STR("2", settle_as_dead());
}

static const char *forget(void)
{
    script_begin(&weir__script_delay_forget, "ids meta dead rec");
    script_arg("");
    script_arg("10");
    return script_call();
}

TEST(a_forget_that_ends_with_an_error_deletes_nothing)
{
    script_expect_untouched("ids dead rec", add_dead, forget);
}

static void claim_suspect(void)
{
    (void)script_add('a', "x", "r0");
    (void)script_crash("1");
    EXPECT_STR("a0000+1", script_claim("1", "9000"));
}

static const char *start_suspect(void)
{
    script_begin(&weir__script_delay_start, "run started");
    script_arg("aaaaaaaaaaaa0000");
    script_arg(script_token);
    script_arg("w1");
    return script_call();
}

TEST(a_start_that_ends_with_an_error_blames_nobody)
{
    script_expect_untouched("run started", claim_suspect, start_suspect);
}

/* --- bounded ------------------------------------------------------------- */

static const char *add_events(const char *group, const char *other)
{
    static char number[24];
    const char *const args[] = {"t",  "bounded", "slot", number, group, "2",
                                "e1", "e2",      other,  "1",    "e3",  NULL};
    char keys[128];

    (void)snprintf(number, sizeof(number), "%lld", script_number++);
    (void)snprintf(keys, sizeof(keys),
                   "rot hot out meta idle options seen ttl l:%s l:%s", group,
                   other);
    script_begin(&weir__script_bounded_add, keys);
    for (size_t i = 0; args[i] != NULL; i++)
        script_arg(args[i]);
    return script_call();
}

static const char *claim_groups(const char *group, const char *other)
{
    const char *const args[] = {"t", "bounded", "10", "9000", "",
                                "0", "10",      "",   ""};
    char keys[128];

    (void)snprintf(keys, sizeof(keys),
                   "rot hot lease out meta idle options ttl l:%s b:%s l:%s "
                   "b:%s",
                   group, group, other, other);
    script_begin(&weir__script_bounded_claim, keys);
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
        script_arg(args[i]);
    script_arg(group);
    script_arg(other);
    return script_call();
}

static long long meta(const char *field)
{
    return redis_int(script_proc, "EVAL %s 1 weir:{t}:meta %s",
                     "return tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or "
                     "0)",
                     field);
}

TEST(a_group_whose_list_is_none_keeps_no_event_from_the_others)
{
    script_poison("l:g");
    EXPECT_CONTAINS("WRONGTYPE", add_events("g", "h"));
    EXPECT_CONTAINS("WRONGTYPE", add_events("k", "g"));
    EXPECT_STR("h k", script_text("ZRANGEBYLEX weir:{t}:rot - +"));
    EXPECT_INT(3, meta("waiting"));
    EXPECT_INT(3, meta("added"));
}

static void add_group(void)
{
    EXPECT_STR("0", add_events("g", "h"));
}

static const char *claim_both(void)
{
    return claim_groups("g", "h");
}

TEST(a_claim_of_groups_that_ends_with_an_error_takes_no_event)
{
    script_expect_untouched("rot hot lease out", add_group, claim_both);
}

TEST(a_claim_of_groups_passes_over_what_is_no_list)
{
    static const char *const bad[] = {"l:g", "b:g"};

    for (size_t i = 0; i < 2; i++) {
        (void)script_text("FLUSHALL");
        EXPECT_STR("0", add_events("g", "h"));
        EXPECT_STR("0", add_events("g", "h"));
        (void)redis_text(script_proc, "HSET weir:{t}:options batch 3");
        script_poison(bad[i]);
        (void)claim_groups("h", "g");
        EXPECT_INT(REDIS_REPLY_ARRAY, script_reply->type);
        EXPECT_INT(1, (int)script_reply->element[5]->elements);
        EXPECT_INT(2, redis_int(script_proc, "LLEN weir:{t}:b:h"));
        EXPECT_STR("h", script_text("ZRANGEBYLEX weir:{t}:lease - +"));
        EXPECT_INT(1, meta("dropped"));
        if (i == 1)
            EXPECT_INT(4, redis_int(script_proc, "LLEN weir:{t}:l:g"));
    }
}

/* A batch that comes back whole. */
static void settle_batch(const char *group, const char *events, char token[24])
{
    const char *const counts[] = {"1", "0", "0",    "0", "0",
                                  "0", "0", events, "-1"};

    (void)snprintf(token, 24, "%s",
                   redis_text(script_proc, "HGET weir:{t}:out %s", group));
    script_arg(group);
    script_arg_bytes(token, strcspn(token, " "));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        script_arg(counts[i]);
}

static const char *settle_groups(void)
{
    char tokens[2][24];

    script_begin(&weir__script_bounded_settle,
                 "rot hot lease out meta idle options ttl l:g b:g l:h b:h");
    script_arg("t");
    settle_batch("g", "2", tokens[0]);
    settle_batch("h", "1", tokens[1]);
    return script_call();
}

TEST(a_settle_of_groups_passes_over_what_is_no_list)
{
    add_group();
    (void)claim_both();
    script_poison("l:g");
    EXPECT_STR("0", settle_groups());
    EXPECT_STR("h", script_text("ZRANGEBYLEX weir:{t}:rot - +"));
    EXPECT_STR("g", script_text("ZRANGEBYLEX weir:{t}:lease - +"));
    EXPECT_INT(2, redis_int(script_proc, "LLEN weir:{t}:b:g"));
    EXPECT_INT(1, meta("waiting"));
    EXPECT_INT(2, meta("running"));
}

TEST(groups_stay_leased_where_they_cannot_have_a_turn)
{
    add_group();
    (void)claim_both();
    script_poison("rot");
    EXPECT_CONTAINS("WRONGTYPE", settle_groups());
    EXPECT_STR("g h", script_text("ZRANGEBYLEX weir:{t}:lease - +"));
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:out"));
}

TEST(a_purge_takes_a_group_whose_list_is_none)
{
    add_group();
    script_poison("l:g");
    script_begin(&weir__script_bounded_purge,
                 "rot hot lease out meta ttl l:g b:g l:h b:h");
    script_arg("bounded");
    script_arg("10");
    script_arg("g");
    script_arg("h");
    EXPECT_STR("1", script_call());
    EXPECT_INT(0, redis_int(script_proc,
                            "EXISTS weir:{t}:rot weir:{t}:l:g weir:{t}:l:h"));
}

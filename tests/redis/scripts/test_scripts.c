/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/text.h"
#include "tests/redis/scripts/script_fixture.h"

TEST(a_server_is_sent_the_code_of_a_script_alone)
{
    for (size_t i = 0; weir__scripts[i] != NULL; i++) {
        const char *text = weir__scripts[i]->text;

        EXPECT_TRUE(text[0] != '-' && text[0] != ' ' && text[0] != '\n');
        EXPECT_TRUE(strstr(text, "\n--") == NULL);
        EXPECT_TRUE(strstr(text, "\n ") == NULL);
        EXPECT_TRUE(strstr(text, "\n\n") == NULL);
    }
}

/* --- add ---------------------------------------------------------------- */

TEST(a_staged_pack_becomes_permanent_and_its_ids_are_indexed)
{
    script_setup();
    EXPECT_STR("3", script_add('a', "x y z", "r1000"));
    EXPECT_INT(-1, redis_int(script_proc, "PTTL weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_STR("aaaaaaaaaaaa", script_text("HGET weir:{t}:ids y"));
    EXPECT_STR("aaaaaaaaaaaa0002", script_text("ZRANGE weir:{t}:wait 0 -1"));
    EXPECT_STR("delay", script_text("HGET weir:{t}:meta kind"));
    EXPECT_INT(65, redis_int(script_proc, "HSTRLEN weir:{t}:ids !"));
    script_teardown();
}

TEST(ids_that_exist_are_refused_slot_by_slot)
{
    script_setup();
    EXPECT_STR("2", script_add('a', "x y", "r1000"));
    EXPECT_STR("2 0 1 0 3", script_add('b', "v x w v", "r1000"));
    EXPECT_STR("0 0 0", script_add('c', "y", "r1000"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:cccccccccccc"));
    EXPECT_STR("aaaaaaaaaaaa0001 bbbbbbbbbbbb0000 bbbbbbbbbbbb0202",
               script_text("ZRANGEBYLEX weir:{t}:wait - +"));
    EXPECT_INT(4, script_stat(STAT_ADDED));
    script_teardown();
}

/* It is refused, and what was added before stays alone. */
static void expect_none(size_t count, struct weir_slice block)
{
    script_setup();
    EXPECT_STR("1", script_add('a', "x", "r0"));
    script_stage_block('b', count, block);
    EXPECT_STR("0 0 -3", script_add_staged('b', "r0", 2));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:bbbbbbbbbbbb"));
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:ids")); /* with "!" */
    EXPECT_INT(1, script_stat(STAT_ADDED));
    script_teardown();
}

#define BYTES(text) (weir__slice_of(text, sizeof(text) - 1))

TEST(a_pack_whose_ids_are_none_is_refused_before_anything_is_written)
{
    const struct weir_slice blocks[] = {
        BYTES("\x92\xa1v\xa3"
              "a\nb"),
        BYTES("\x92\xa1v\xa3"
              "a\rb"),
        BYTES("\x92\xa1v\xa3"
              "a\x00b"),
        BYTES("\x92\xa1v\xa3"
              "a\x1b["),
        BYTES("\x92\xa1v\x91\xa1w"),  /* an array */
        BYTES("\x92\xa1v\xc0"),       /* nil */
        BYTES("\x92\xa1v\xc3"),       /* true */
        BYTES("\x92\xa1v\xa5w"),      /* cut */
        BYTES("\x92\xa1v\xc1\xc1"),   /* no msgpack */
        BYTES("\x91\xa1v"),           /* fewer than jobs */
        BYTES("\x93\xa1v\xa1w\xa1z"), /* more */
        BYTES("\x92\xa1v\xa1w\xa1z"), /* something behind them */
        BYTES("\xdc\x00\x03\xa1v\xa1w\xa1z"),
        BYTES("\xdc\x00"),
        BYTES("\x82\xa1v\xa1w\xa1y\xa1z"), /* a map */
        BYTES("\xa5vwxyz")};

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        expect_none(2, blocks[i]);
}

TEST(an_id_of_more_than_128_bytes_is_refused)
{
    char block[400] = "\x92\xa1v\xd9";

    memset(block + 5, 'x', sizeof(block) - 5);
    block[4] = (char)129;
    expect_none(2, weir__slice_of(block, 5 + 129));
    block[4] = (char)255;
    expect_none(2, weir__slice_of(block, 5 + 255));
    memcpy(block + 3, "\xda\x01\x00", 3);
    expect_none(2, weir__slice_of(block, 6 + 256));
    memcpy(block, "\x92\x07\xd9\xa0", 4); /* a number, too */
    expect_none(2, weir__slice_of(block, 4 + 160));
    script_setup();
    memset(block, 'x', sizeof(block));
    memcpy(block, "\x92\xa1v\xd9\x80", 5);
    script_stage_block('a', 2, weir__slice_of(block, 5 + 128));
    EXPECT_STR("2", script_add_staged('a', "r0", 2));
    script_teardown();
}

static void add_said(const char *jobs, const char *header_len)
{
    script_stage('b', "v w");
    (void)snprintf(script_total, 8, "%s", jobs);
    (void)snprintf(script_header, 8, "%s", header_len);
    EXPECT_STR("0 0 -3", script_add_staged('b', "r0", 2));
    (void)redis_int(script_proc, "DEL weir:{t}:p:bbbbbbbbbbbb");
}

TEST(an_add_that_says_of_a_pack_what_cannot_be_is_refused)
{
    static const char *const whens[] = {"",     "x",    "r",      "r1.5",
                                        "rnan", "q0",   "a1e300", "p\x91\x05",
                                        "p",    "p\xc1"};

    script_setup();
    add_said("3", "13");
    add_said("1", "13");
    add_said("0", "13");
    add_said("257", "13");
    add_said("9999", "13");
    add_said("x", "13");
    add_said("1.5", "13");
    add_said("2", "12");
    add_said("2", "14");
    add_said("2", "999");
    add_said("2", "7");
    add_said("2", "-5");
    add_said("2", "0xd");
    add_said("2", "");
    for (size_t i = 0; i < sizeof(whens) / sizeof(whens[0]); i++) {
        EXPECT_STR("0 0 -3", script_add('b', "v w", whens[i]));
        (void)redis_int(script_proc, "DEL weir:{t}:p:bbbbbbbbbbbb");
    }
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:ids")); /* "!" */
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
    script_teardown();
}

TEST(a_repeated_add_is_recognised_and_an_unstaged_pack_named)
{
    script_setup();
    EXPECT_STR("2", script_add('a', "x y", "r0"));
    EXPECT_STR("0 0 -1", script_add('a', "x y", "r0"));
    EXPECT_STR("0 0 -2", script_add_staged('b', "r0", 2));
    EXPECT_INT(2, script_stat(STAT_WAITING));
    script_teardown();
}

/* The repeat stages its pack again, whose name is free by then. */
TEST(a_repeat_of_an_add_whose_job_was_worked_off_adds_nothing)
{
    script_setup();
    EXPECT_STR("1", script_add('a', "x", "r0"));
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_STR("1", script_settle_all("a0000"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    script_number--;
    EXPECT_STR("0", script_add('a', "x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
    EXPECT_INT(1, script_stat(STAT_ADDED));
    script_teardown();
}

TEST(a_repeat_of_an_add_refuses_what_the_first_one_did)
{
    script_setup();
    EXPECT_STR("1", script_add('a', "x", "r0"));
    (void)script_text("HSET weir:{t}:meta max_pending 2 revision 7");
    EXPECT_STR("1 0 1 0 258 7", script_add('b', "y x z", "r0"));
    EXPECT_STR("a0000+0 b0000+0", script_claim("9", "9000"));
    EXPECT_STR("1", script_settle_all("a0000"));
    EXPECT_STR("1", script_settle_all("b0000"));
    script_number--;
    EXPECT_STR("0 0 1 0 258 7", script_add('b', "y x z", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:bbbbbbbbbbbb"));
    EXPECT_STR("0 0 -2 7", script_add_staged('c', "r0", 2));
    script_number--;
    EXPECT_STR("0 0 -2 7", script_add('c', "w", "r0"));
    EXPECT_INT(2, script_stat(STAT_ADDED));
    script_teardown();
}

/* Sent on a connection that is lost; the seat went to another call since. */
TEST(an_add_that_comes_late_adds_nothing)
{
    script_setup();
    script_number = 6;
    EXPECT_STR("1 0 1", script_add('b', "y y", "r0"));
    script_number = 5;
    EXPECT_STR("0", script_add('a', "x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(1, script_stat(STAT_ADDED));
    script_teardown();
}

/* A number that a producer gave so long ago. */
static long long number_of_ago(int64_t ms)
{
    struct timespec now = {0};

    EXPECT_INT(0, clock_gettime(CLOCK_REALTIME, &now));
    return ((int64_t)now.tv_sec * 1000 - 1577836800000 - ms) * 128;
}

TEST(seats_that_nobody_used_for_two_minutes_go_beyond_a_hundred)
{
    static const char fill[] =
        "for i = 1, 1500 do redis.call('HSET', KEYS[1], 'old' .. i, "
        "i % 2 == 0 and '100' or '100 pairs') end return 1";

    script_setup();
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:seen", fill));
    EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:seen young %lld",
                            number_of_ago(60000)));
    EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:seen older %lld",
                            number_of_ago(180000)));
    script_number = number_of_ago(0);
    for (int i = 0; i < 500; i++) {
        (void)script_add('a', "x", "r0");
        (void)script_text("HDEL weir:{t}:seen seat");
    }
    EXPECT_TRUE(redis_int(script_proc, "HLEN weir:{t}:seen") <= 100);
    EXPECT_INT(1, redis_int(script_proc, "HEXISTS weir:{t}:seen young"));
    script_teardown();
}

TEST(slots_of_one_pack_may_be_due_at_different_times)
{
    script_setup();
    script_stage('a', "x y z");
    EXPECT_STR("3", script_add_staged('a', "p\x93\x30\x10\x20", 5));
    EXPECT_STR("aaaaaaaaaaaa0101 aaaaaaaaaaaa0202 aaaaaaaaaaaa0000",
               script_text("ZRANGE weir:{t}:wait 0 -1"));
    script_teardown();
}

TEST(a_topic_of_another_kind_is_left_alone)
{
    script_setup();
    (void)script_text("HSET weir:{t}:meta kind list");
    EXPECT_STR("-1 list", script_add('a', "x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
    script_teardown();
}

/* --- claim -------------------------------------------------------------- */

TEST(a_node_is_split_along_its_tree_for_the_room_there_is)
{
    script_setup();
    EXPECT_STR("7", script_add('a', "7", "r0"));
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_STR("aaaaaaaaaaaa0101 aaaaaaaaaaaa0203 aaaaaaaaaaaa0406",
               script_text("ZRANGE weir:{t}:wait 0 -1"));
    EXPECT_STR("a0101+0 a0203+0", script_claim("3", "9000"));
    EXPECT_STR("a0405+0", script_claim("2", "9000"));
    EXPECT_STR("a0606+0", script_claim("2", "9000"));
    EXPECT_INT(7, script_stat(STAT_RUNNING));
    script_teardown();
}

TEST(a_node_that_would_overfill_a_claim_waits_for_the_next)
{
    script_setup();
    (void)script_add('a', "6", "r0");
    (void)script_add('b', "6", "r0");
    EXPECT_STR("a0005+0", script_claim("8", "9000"));
    EXPECT_STR("b0005+0", script_claim("8", "9000"));
    script_teardown();
}

TEST(nodes_come_in_the_order_of_their_due_times)
{
    script_setup();
    (void)script_add('b', "2", "a2000000000000");
    (void)script_text("ZADD weir:{t}:wait 5 bbbbbbbbbbbb0001");
    (void)script_add('c', "2", "a1");
    (void)script_add('a', "2", "a1");
    (void)script_text(
        "ZADD weir:{t}:wait 9 cccccccccccc0001 9 aaaaaaaaaaaa0001");
    EXPECT_STR("b0001+0", script_claim("2", "9000"));
    EXPECT_STR("a0001+0 c0001+0", script_claim("9", "9000"));
    script_teardown();
}

TEST(an_expired_claim_comes_back_job_by_job_as_suspects)
{
    script_setup();
    (void)script_add('a', "5", "r0");
    EXPECT_STR("a0004+0", script_crash("100"));
    EXPECT_STR("a0000+1 a0101+1", script_claim("2", "9000"));
    EXPECT_STR("aaaaaaaaaaaa0203 aaaaaaaaaaaa0404",
               script_text("ZRANGEBYLEX weir:{t}:wait - +"));
    EXPECT_INT(2, script_stat(STAT_RUNNING));
    EXPECT_INT(5, script_stat(STAT_CRASHED));
    script_teardown();
}

static const char *start(const char *slots, const char *token)
{
    char node[17] = "aaaaaaaaaaaa";

    memcpy(node + 12, slots, 4);
    script_begin(&weir__script_delay_start, "run started");
    script_arg(node);
    script_arg(token);
    script_arg("w1");
    return script_call();
}

TEST(only_suspects_that_were_started_are_blamed)
{
    script_setup();
    (void)script_add('a', "3", "r0");
    EXPECT_STR("a0002+0", script_crash("3"));
    EXPECT_STR("a0000+1 a0101+1 a0202+1", script_crash("3"));
    EXPECT_STR("1", start("0101", script_token));
    EXPECT_STR("a0000+1 a0202+1 a0101+2", script_crash("3"));
    EXPECT_STR("a0000+1 a0202+1 a0101+2", script_claim("3", "9000"));
    EXPECT_INT(4, script_stat(STAT_CRASHED));
    script_teardown();
}

TEST(a_start_is_noted_once_and_only_under_its_token)
{
    script_setup();
    (void)script_add('a', "3", "r0");
    (void)script_crash("3");
    (void)script_claim("2", "9000");
    EXPECT_STR("1", start("0000", script_token));
    EXPECT_STR("1", start("0000", script_token));
    EXPECT_STR("5.01171875", /* token 5, one ended lease, started */
               script_text("ZSCORE weir:{t}:run aaaaaaaaaaaa0000"));
    EXPECT_STR("aaaaaaaaaaaa0000 1 5", script_text("HGET weir:{t}:started w1"));
    EXPECT_STR("0", start("0000", "3"));
    EXPECT_STR("0", start("0202", script_token));
    EXPECT_STR("running",
               script_slot("show", "~aaaaaaaaaaaa00", "aaaaaaaaaaaa", "0"));
    EXPECT_INT(1, script_reply->element[2]->integer);
    script_teardown();
}

TEST(notes_of_workers_that_never_come_back_do_not_pile_up)
{
    script_setup();
    (void)script_add('a', "1", "r0");
    (void)script_claim("1", "9000");
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:started",
                            "for i = 1, 1000 do redis.call('HSET', KEYS[1], i, "
                            "i) end return 1"));
    EXPECT_STR("1", start("0000", script_token));
    EXPECT_TRUE(redis_int(script_proc, "HLEN weir:{t}:started") < 1000);
    script_teardown();
}

TEST(notes_of_workers_that_live_stay_however_many_they_are)
{
    char note[64];

    script_setup();
    (void)script_add('a', "1", "r0");
    (void)script_claim("1", "9000");
    (void)snprintf(note, sizeof(note), "aaaaaaaaaaaa0000 0 %s", script_token);
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:started %s",
                            "for i = 1, 1500 do redis.call('HSET', KEYS[1], i, "
                            "ARGV[1]) end return 1",
                            note));
    EXPECT_STR("1", start("0000", script_token));
    EXPECT_INT(1501, redis_int(script_proc, "HLEN weir:{t}:started"));
    script_teardown();
}

TEST(a_claim_says_in_us_when_there_is_more_to_do)
{
    script_setup();
    EXPECT_STR("", script_claim("1", "9000"));
    EXPECT_INT(-1, script_reply->element[2]->integer);
    (void)script_add('a', "1", "r0");
    (void)script_add('b', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_INT(0, script_reply->element[2]->integer);
    EXPECT_STR("b0000+0", script_claim("1", "1000"));
    EXPECT_TRUE(script_reply->element[2]->integer > 900000 &&
                script_reply->element[2]->integer <= 1001000);
    script_teardown();
}

/* --- slot --------------------------------------------------------------- */

TEST(one_job_is_looked_at_and_deleted_in_each_state)
{
    script_setup();
    (void)script_add('a', "w x y z", "r0");
    (void)script_add('b', "v", "r60000");
    EXPECT_STR("ready", script_slot("show", "x", "aaaaaaaaaaaa", ""));
    EXPECT_INT(1, script_reply->element[3]->integer);
    EXPECT_STR("ready", script_slot("delete", "x", "aaaaaaaaaaaa", ""));
    EXPECT_STR("none", script_slot("delete", "x", "aaaaaaaaaaaa", ""));
    EXPECT_STR("scheduled", script_slot("delete", "v", "bbbbbbbbbbbb", ""));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:bbbbbbbbbbbb"));
    EXPECT_STR("moved", script_slot("delete", "w", "bbbbbbbbbbbb", ""));
    EXPECT_STR("a0000+0 a0203+0", script_claim("10", "9000"));
    EXPECT_STR("running", script_slot("delete", "y", "aaaaaaaaaaaa", ""));
    EXPECT_STR("aaaaaaaaaaaa0000 aaaaaaaaaaaa0303",
               script_text("ZRANGEBYLEX weir:{t}:run - +"));
    EXPECT_INT(2, script_stat(STAT_RUNNING));
    EXPECT_INT(0, script_stat(STAT_WAITING));
    script_teardown();
}

TEST(a_job_with_a_made_id_is_found_by_its_slot)
{
    script_setup();
    (void)script_add('a', "9", "r0");
    EXPECT_STR("ready",
               script_slot("show", "~aaaaaaaaaaaa08", "aaaaaaaaaaaa", "8"));
    EXPECT_STR("none",
               script_slot("show", "~aaaaaaaaaaaa09", "aaaaaaaaaaaa", "9"));
    EXPECT_STR("ready",
               script_slot("delete", "~aaaaaaaaaaaa08", "aaaaaaaaaaaa", "8"));
    EXPECT_STR("none",
               script_slot("show", "~aaaaaaaaaaaa08", "aaaaaaaaaaaa", "8"));
    EXPECT_INT(8, script_stat(STAT_WAITING));
    script_teardown();
}

/* --- renew, release, stats, lateness ------------------------------------- */

static const char *reschedule(const char *when)
{
    script_begin(&weir__script_delay_slot, "wait run ids meta");
    script_pack_key('a');
    script_key("dead");
    script_key("rec");
    script_key("idle");
    script_arg("reschedule");
    script_arg("x");
    script_arg("aaaaaaaaaaaa");
    script_arg("");
    script_arg("t");
    script_arg(when);
    return script_call();
}

TEST(a_job_that_is_moved_to_what_is_no_time_stays_where_it_is)
{
    static const char *const whens[] = {
        "",       "r",  "r1.5", "rx",      "1000",           "q1000",
        "a1e300", "a-", "rnan", "a\n1000", "a99999999999999"};

    script_setup();
    (void)script_add('a', "x", "r1000000");
    for (size_t i = 0; i < sizeof(whens) / sizeof(whens[0]); i++) {
        EXPECT_CONTAINS("neither r<ms> nor a<ms>", reschedule(whens[i]));
        EXPECT_STR("aaaaaaaaaaaa0000", script_text("ZRANGE weir:{t}:wait 0 0"));
    }
    EXPECT_STR("scheduled 9999999999999 0 0", reschedule("a9999999999999"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    script_teardown();
}

/* What waits in a topic of entries has names of its own. */
TEST(stats_and_purge_leave_topics_of_other_kinds_alone)
{
    script_setup();
    EXPECT_STR("2", script_text("HSET weir:{t}:meta kind list added 1"));
    EXPECT_STR("1", script_text("ZADD weir:{t}:wait 1 ~0000000000000001"));
    EXPECT_INT(0, script_stat(STAT_READY));
    EXPECT_INT(0, script_stat(STAT_DROPPED));
    script_begin(&weir__script_delay_purge, "wait run lease ids meta");
    script_arg("0");
    script_arg("~0000000000000001");
    EXPECT_STR("-1", script_call());
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:meta"));
    script_teardown();
}

static void fill_seats(const char *prefix, int64_t ago_ms)
{
    for (int i = 0; i < 120; i++)
        EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:seen %s%d %lld",
                                prefix, i, number_of_ago(ago_ms)));
}

/* Calls from twenty seats, of a producer whose clock is years ahead. */
static void add_from_seats(void)
{
    for (char letter = 'a'; letter < 'u'; letter++) {
        script_number = number_of_ago(-INT64_C(100000000000));
        EXPECT_STR("1", script_add(letter, "1", "r0"));
        (void)redis_int(script_proc, "HDEL weir:{t}:seen seat");
    }
}

TEST(a_seat_stays_until_the_servers_clock_says_that_nobody_needs_it)
{
    script_setup();
    fill_seats("new", 60000);
    add_from_seats();
    EXPECT_INT(120, redis_int(script_proc, "HLEN weir:{t}:seen"));
    script_teardown();
}

TEST(a_renewed_claim_lives_on_and_a_lost_one_is_named)
{
    script_setup();
    (void)script_add('a', "1", "r0");
    (void)script_claim("1", "1");
    script_begin(&weir__script_delay_renew, "lease");
    script_arg("60000");
    script_arg(script_token);
    script_arg("77");
    EXPECT_STR("77", script_call());
    EXPECT_STR("", script_claim("1", "9000"));
    script_teardown();
}

TEST(a_released_claim_is_ready_again_and_stays_suspect)
{
    script_setup();
    (void)script_add('a', "2", "r0");
    EXPECT_STR("a0001+0", script_crash("2"));
    EXPECT_STR("a0000+1 a0101+1", script_claim("2", "9000"));
    script_begin(&weir__script_delay_release, "wait run lease meta idle");
    script_arg(script_token);
    script_arg("t");
    EXPECT_STR("2 0", script_call());
    EXPECT_STR("a0000+1 a0101+1", script_claim("2", "9000"));
    EXPECT_INT(2, script_stat(STAT_CRASHED));
    script_teardown();
}

TEST(counts_follow_every_transition)
{
    script_setup();
    EXPECT_INT(0, script_stat(STAT_WAITING));
    EXPECT_STR("", script_reply->element[1]->str);
    (void)script_add('a', "5", "r0");
    (void)script_add('b', "3", "r60000");
    while (script_stat(STAT_READY) < 5)
        continue;
    EXPECT_INT(8, script_stat(STAT_WAITING));
    EXPECT_STR("a0001+0", script_claim("2", "9000"));
    EXPECT_INT(3, script_stat(STAT_READY));
    EXPECT_INT(2, script_stat(STAT_RUNNING));
    EXPECT_INT(6, script_stat(STAT_WAITING));
    EXPECT_INT(1, script_stat(STAT_COMPLETE));
    script_teardown();
}

TEST(lateness_is_kept_by_minute)
{
    script_setup();
    script_begin(&weir__script_store_lateness, "late");
    script_arg("900");
    script_arg("39");
    script_arg("2");
    script_arg("5");
    script_arg("1");
    (void)script_call();
    (void)script_call();
    EXPECT_INT(4, redis_int(script_proc, "HLEN weir:{t}:late"));
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:late",
                            "local h = redis.call('HGETALL', KEYS[1]) "
                            "for i = 1, #h, 2 do if h[i]:sub(2) == ':39' "
                            "then return tonumber(h[i + 1]) == 4 and 1 or 0 "
                            "end end"));
    script_teardown();
}

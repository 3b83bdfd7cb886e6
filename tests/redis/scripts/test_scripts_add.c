/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/text.h"
#include "tests/redis/scripts/script_fixture.h"

/* The add script. */

TEST(a_staged_pack_becomes_permanent_and_its_ids_are_indexed)
{
    EXPECT_STR("3", script_add('a', "x y z", "r1000"));
    EXPECT_INT(-1, redis_int(script_proc, "PTTL weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_STR("aaaaaaaaaaaa", script_text("HGET weir:{t}:ids y"));
    EXPECT_STR("aaaaaaaaaaaa0002", script_text("ZRANGE weir:{t}:wait 0 -1"));
    EXPECT_STR("delay", script_text("HGET weir:{t}:meta kind"));
    EXPECT_INT(65, redis_int(script_proc, "HSTRLEN weir:{t}:ids !"));
}

TEST(ids_that_exist_are_refused_slot_by_slot)
{
    EXPECT_STR("2", script_add('a', "x y", "r1000"));
    EXPECT_STR("2 0 1 0 3", script_add('b', "v x w v", "r1000"));
    EXPECT_STR("0 0 0", script_add('c', "y", "r1000"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:cccccccccccc"));
    EXPECT_STR("aaaaaaaaaaaa0001 bbbbbbbbbbbb0000 bbbbbbbbbbbb0202",
               script_text("ZRANGEBYLEX weir:{t}:wait - +"));
    EXPECT_INT(4, script_stat("added"));
}

/* It is refused, and what was added before stays alone. */
static void expect_none(size_t count, struct weir_slice block)
{
    EXPECT_STR("OK", script_text("FLUSHALL"));
    EXPECT_STR("1", script_add('a', "x", "r0"));
    script_stage_block('b', count, block);
    EXPECT_STR("0 0 -3", script_add_staged('b', "r0", 2));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:bbbbbbbbbbbb"));
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:ids")); /* with "!" */
    EXPECT_INT(1, script_stat("added"));
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
    EXPECT_STR("OK", script_text("FLUSHALL"));
    memset(block, 'x', sizeof(block));
    memcpy(block, "\x92\xa1v\xd9\x80", 5);
    script_stage_block('a', 2, weir__slice_of(block, 5 + 128));
    EXPECT_STR("2", script_add_staged('a', "r0", 2));
}

/* It may be that of a job without one. */
TEST(an_id_that_begins_as_a_made_one_comes_from_an_outbox_only)
{
    EXPECT_STR("0 0 -3", script_add('a', "x @y", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
    script_stage('a', "x @y");
    EXPECT_STR("2", script_send_on('a'));
    EXPECT_STR("1", script_add('b', "y~", "r0"));
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
}

/* An add with this topic, kind and number. */
static const char *add_called(const char *topic, const char *kind,
                              const char *number)
{
    script_stage('b', "1");
    script_begin(&weir__script_delay_add, "wait ids meta idle seen");
    script_pack_key('b');
    script_arg(topic);
    script_arg(kind);
    script_arg("call_slot");
    script_arg(number);
    script_arg(script_total);
    script_arg(script_header);
    script_arg("r0");
    return script_call();
}

TEST(an_add_that_is_none_is_refused_with_a_sentence)
{
    static const char *const topics[] = {
        "",    "a b",      "{t}",
        "t\n", "\xc3\xa4", "a2345678901234567890123456789012345678901"};
    static const char *const numbers[] = {"",   "x",   "1.5.5",           ".5",
                                          "-1", "1e3", "9999999999999999"};

    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        EXPECT_STR("ERR the topic is not 1 to 40 of A-Z a-z 0-9 . _ : -",
                   add_called(topics[i], "delay", "1.0"));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        EXPECT_STR("ERR the number of the call is none",
                   add_called("t", "delay", numbers[i]));
    EXPECT_STR("ERR the number of the call lacks a point and random digits",
               add_called("t", "delay", "1"));
    EXPECT_STR("ERR the number of the call lacks a point and random digits",
               add_called("t", "delay", "1."));
    EXPECT_STR("ERR packs are for topics of the kind delay",
               add_called("t", "dealy", "1.0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:meta weir:{t}:seen"));
    EXPECT_STR("1", add_called("Az09._:-", "delay", "1.0"));
    EXPECT_STR("ERR the slot is neither empty nor 0 to 255",
               script_slot("show", "x", "bbbbbbbbbbbb", "x"));
}

TEST(a_repeated_add_is_recognised_and_an_unstaged_pack_named)
{
    EXPECT_STR("2", script_add('a', "x y", "r0"));
    EXPECT_STR("0 0 -1", script_add('a', "x y", "r0"));
    EXPECT_STR("0 0 -2", script_add_staged('b', "r0", 2));
    EXPECT_INT(2, script_stat("waiting"));
}

/* Its number stands in the entry: every try is a repeat of the first one. */
TEST(a_pack_of_an_outbox_that_was_not_staged_is_added_when_it_is)
{
    script_stage('a', "x y");
    (void)redis_int(script_proc, "DEL weir:{t}:p:aaaaaaaaaaaa");
    for (int i = 0; i < 2; i++) {
        EXPECT_STR("0 0 -2", script_send_on('a'));
        script_number--;
    }
    script_stage('a', "x y");
    EXPECT_STR("2", script_send_on('a'));
    script_number--;
    EXPECT_STR("0", script_send_on('a'));
    EXPECT_INT(2, script_stat("added"));
}

/* One worker's refused add removes what the other one was about to add. */
TEST(two_workers_that_send_one_pack_to_a_full_topic_add_it_when_there_is_room)
{
    EXPECT_STR("1", script_add('b', "v", "r0"));
    (void)script_text("HSET weir:{t}:meta max_pending 1");
    script_stage('a', "x y");
    EXPECT_STR("-2", script_send_on('a'));
    EXPECT_STR("b0000+0", script_claim("1", "9000"));
    script_number--;
    EXPECT_STR("0 0 -2", script_send_on('a'));
    script_stage('a', "x y");
    script_number--;
    EXPECT_STR("2", script_send_on('a'));
    EXPECT_INT(3, script_stat("added"));
}

/* The repeat stages its pack again, whose name is free by then. */
TEST(a_repeat_of_an_add_whose_job_was_worked_off_adds_nothing)
{
    EXPECT_STR("1", script_add('a', "x", "r0"));
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_STR("1", script_settle_all("a0000"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    script_number--;
    EXPECT_STR("0", script_add('a', "x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
    EXPECT_INT(1, script_stat("added"));
}

TEST(a_repeat_of_an_add_refuses_what_the_first_one_did)
{
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
    EXPECT_INT(2, script_stat("added"));
}

/* Sent on a connection that is lost; the call slot went to another call
 * since. */
TEST(an_add_that_comes_late_adds_nothing)
{
    script_number = 6;
    EXPECT_STR("1 0 1", script_add('b', "y y", "r0"));
    script_number = 5;
    EXPECT_STR("0 0 -4", script_add('a', "x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:aaaaaaaaaaaa"));
    EXPECT_INT(1, script_stat("added"));
}

/* Clients that were copied give the same names and numbers: the call of the
 * second one is refused. */
static void add_as_twins(const char *first, const char *second,
                         const char *(*add)(char letter, const char *id,
                                            const char *when))
{
    script_nonce = first;
    script_number = 7;
    EXPECT_STR("1", add('a', "x", "r0"));
    script_nonce = second;
    script_number = 7;
    EXPECT_STR("0 0 -4", add('a', "y", "r0"));
    EXPECT_INT(1, script_stat("added"));
    EXPECT_INT(1, script_stat("waiting"));
}

TEST(a_call_of_another_client_with_its_number_is_no_repeat)
{
    add_as_twins("21", "55", script_add);
    script_nonce = "21";
    script_number = 7;
    EXPECT_STR("0", script_add('a', "x", "r0"));
    script_nonce = "0";
}

TEST(a_lone_call_of_another_client_with_its_number_is_no_repeat)
{
    add_as_twins("55", "21", script_add_one);
    script_nonce = "55";
    script_number = 7;
    EXPECT_STR("0", script_add_one('a', "x", "r0"));
    script_nonce = "0";
}

/* The first one's job is done and its pack gone, so nothing else tells. */
TEST(a_call_of_another_client_is_no_repeat_of_a_call_whose_job_is_done)
{
    for (int i = 0; i < 2; i++) {
        const char *(*add)(char, const char *, const char *) =
            i == 0 ? script_add : script_add_one;

        add_as_twins(i == 0 ? "7" : "9", "5", add);
        EXPECT_STR("a0000+0", script_claim("1", "9000"));
        EXPECT_STR("1", script_settle_all("a0000"));
        script_number = 7;
        EXPECT_STR("0 0 -4", add('a', "y", "r0"));
        (void)script_text("FLUSHALL");
    }
    script_nonce = "0";
}

/* A number that a producer gave so long ago. */
static long long number_of_ago(int64_t ms)
{
    struct timespec now = {0};

    EXPECT_INT(0, clock_gettime(CLOCK_REALTIME, &now));
    return ((int64_t)now.tv_sec * 1000 - 1577836800000 - ms) * 128;
}

TEST(call_slots_that_nobody_used_for_two_minutes_go_beyond_a_hundred)
{
    static const char fill[] =
        "for i = 1, 1500 do redis.call('HSET', KEYS[1], 'old' .. i, "
        "i % 2 == 0 and '100' or '100 pairs') end return 1";

    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:seen", fill));
    EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:seen young %lld",
                            number_of_ago(60000)));
    EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:seen older %lld",
                            number_of_ago(180000)));
    script_number = number_of_ago(0);
    for (int i = 0; i < 500; i++) {
        (void)script_add('a', "x", "r0");
        (void)script_text("HDEL weir:{t}:seen call_slot");
    }
    EXPECT_TRUE(redis_int(script_proc, "HLEN weir:{t}:seen") <= 100);
    EXPECT_INT(1, redis_int(script_proc, "HEXISTS weir:{t}:seen young"));
}

/* Its number is from when the verdict came; jobs waited for room since. */
TEST(a_call_slot_of_an_outbox_stays_for_a_day_after_the_add)
{
    script_number = number_of_ago(172800000);
    script_stage('a', "x");
    EXPECT_STR("1", script_send_on('a'));
    for (int i = 0; i < 300; i++) {
        EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:seen new%d %lld", i,
                                number_of_ago(0)));
        script_number = number_of_ago(0);
        (void)script_add('b', "y", "r0");
        (void)script_text("HDEL weir:{t}:seen call_slot");
    }
    EXPECT_INT(1, redis_int(script_proc, "HEXISTS weir:{t}:seen !s"));
}

TEST(slots_of_one_pack_may_be_due_at_different_times)
{
    script_stage('a', "x y z");
    EXPECT_STR("3", script_add_staged('a', "p\x93\x30\x10\x20", 5));
    EXPECT_STR("aaaaaaaaaaaa0101 aaaaaaaaaaaa0202 aaaaaaaaaaaa0000",
               script_text("ZRANGE weir:{t}:wait 0 -1"));
}

TEST(a_due_time_keeps_each_of_its_digits)
{
    static const char *const times[] = {"2000000000000", "2000000000001",
                                        "2000001000000", "2000009999999",
                                        "9999999999999"};
    char when[24], wanted[48];

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        (void)snprintf(when, sizeof(when), "a%s", times[i]); /* fits */
        (void)snprintf(wanted, sizeof(wanted), "aaaaaaaaaaaa0000 %s",
                       times[i]); /* fits */
        EXPECT_STR("1", script_add('a', "1", when));
        EXPECT_STR(wanted, script_text("ZPOPMAX weir:{t}:wait"));
        EXPECT_STR("1", script_text("DEL weir:{t}:p:aaaaaaaaaaaa"));
    }
}

TEST(a_topic_of_another_kind_is_left_alone)
{
    (void)script_text("HSET weir:{t}:meta kind list");
    EXPECT_STR("-1 list", script_add('a', "x", "r0"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:wait"));
}

static void fill_call_slots(const char *prefix, int64_t ago_ms)
{
    for (int i = 0; i < 120; i++)
        EXPECT_INT(1, redis_int(script_proc, "HSET weir:{t}:seen %s%d %lld",
                                prefix, i, number_of_ago(ago_ms)));
}

/* Calls from twenty call slots, of a producer whose clock is years ahead. */
static void add_from_call_slots(void)
{
    for (char letter = 'a'; letter < 'u'; letter++) {
        script_number = number_of_ago(-INT64_C(100000000000));
        EXPECT_STR("1", script_add(letter, "1", "r0"));
        (void)redis_int(script_proc, "HDEL weir:{t}:seen call_slot");
    }
}

TEST(a_call_slot_stays_until_the_servers_clock_says_that_nobody_needs_it)
{
    fill_call_slots("new", 60000);
    add_from_call_slots();
    EXPECT_INT(120, redis_int(script_proc, "HLEN weir:{t}:seen"));
}

TEST(a_call_slot_goes_when_the_servers_clock_says_two_minutes)
{
    fill_call_slots("old", 130000);
    add_from_call_slots();
    EXPECT_TRUE(redis_int(script_proc, "HLEN weir:{t}:seen") <= 100);
}

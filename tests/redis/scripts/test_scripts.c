/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

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

/* --- claim -------------------------------------------------------------- */

TEST(a_node_is_split_along_its_tree_for_the_room_there_is)
{
    EXPECT_STR("7", script_add('a', "7", "r0"));
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_STR("aaaaaaaaaaaa0101 aaaaaaaaaaaa0203 aaaaaaaaaaaa0406",
               script_text("ZRANGE weir:{t}:wait 0 -1"));
    EXPECT_STR("a0101+0 a0203+0", script_claim("3", "9000"));
    EXPECT_STR("a0405+0", script_claim("2", "9000"));
    EXPECT_STR("a0606+0", script_claim("2", "9000"));
    EXPECT_INT(7, script_stat("running"));
}

TEST(a_node_that_would_overfill_a_claim_waits_for_the_next)
{
    (void)script_add('a', "6", "r0");
    (void)script_add('b', "6", "r0");
    EXPECT_STR("a0005+0", script_claim("8", "9000"));
    EXPECT_STR("b0005+0", script_claim("8", "9000"));
}

TEST(nodes_come_in_the_order_of_their_due_times)
{
    (void)script_add('b', "2", "a2000000000000");
    (void)script_text("ZADD weir:{t}:wait 5 bbbbbbbbbbbb0001");
    (void)script_add('c', "2", "a1");
    (void)script_add('a', "2", "a1");
    (void)script_text(
        "ZADD weir:{t}:wait 9 cccccccccccc0001 9 aaaaaaaaaaaa0001");
    EXPECT_STR("b0001+0", script_claim("2", "9000"));
    EXPECT_STR("a0001+0 c0001+0", script_claim("9", "9000"));
}

TEST(an_expired_claim_comes_back_job_by_job_as_suspects)
{
    (void)script_add('a', "5", "r0");
    EXPECT_STR("a0004+0", script_crash("100"));
    EXPECT_STR("a0000+1 a0101+1", script_claim("2", "9000"));
    EXPECT_STR("aaaaaaaaaaaa0203 aaaaaaaaaaaa0404",
               script_text("ZRANGEBYLEX weir:{t}:wait - +"));
    EXPECT_INT(2, script_stat("running"));
    EXPECT_INT(5, script_stat("crashed"));
}

static const char *start(const char *slots, const char *token)
{
    static char first[2];
    char node[17] = "aaaaaaaaaaaa";

    memcpy(node + 12, slots, 4);
    script_begin(&weir__script_delay_start, "run started");
    script_arg(node);
    script_arg(token);
    script_arg("w1");
    (void)snprintf(first, sizeof(first), "%s", script_call()); /* cut */
    return first; /* crashes come behind it */
}

TEST(only_suspects_that_were_started_are_blamed)
{
    (void)script_add('a', "3", "r0");
    EXPECT_STR("a0002+0", script_crash("3"));
    EXPECT_STR("a0000+1 a0101+1 a0202+1", script_crash("3"));
    EXPECT_STR("1", start("0101", script_token));
    EXPECT_STR("a0000+1 a0202+1 a0101+2", script_crash("3"));
    EXPECT_STR("a0000+1 a0202+1 a0101+2", script_claim("3", "9000"));
    EXPECT_INT(4, script_stat("crashed"));
}

TEST(a_start_is_noted_once_and_only_under_its_token)
{
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
               script_slot("show", "@aaaaaaaaaaaa00", "aaaaaaaaaaaa", "0"));
    EXPECT_INT(1, script_reply->element[2]->integer);
}

TEST(notes_of_workers_that_never_come_back_do_not_pile_up)
{
    (void)script_add('a', "1", "r0");
    (void)script_claim("1", "9000");
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:started",
                            "for i = 1, 1000 do redis.call('HSET', KEYS[1], i, "
                            "i) end return 1"));
    EXPECT_STR("1", start("0000", script_token));
    EXPECT_TRUE(redis_int(script_proc, "HLEN weir:{t}:started") < 1000);
}

TEST(notes_of_workers_that_live_stay_however_many_they_are)
{
    char note[64];

    (void)script_add('a', "1", "r0");
    (void)script_claim("1", "9000");
    (void)snprintf(note, sizeof(note), "aaaaaaaaaaaa0000 0 %s", script_token);
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 1 weir:{t}:started %s",
                            "for i = 1, 1500 do redis.call('HSET', KEYS[1], i, "
                            "ARGV[1]) end return 1",
                            note));
    EXPECT_STR("1", start("0000", script_token));
    EXPECT_INT(1501, redis_int(script_proc, "HLEN weir:{t}:started"));
}

TEST(a_claim_says_in_us_when_there_is_more_to_do)
{
    EXPECT_STR("", script_claim("1", "9000"));
    EXPECT_INT(-1, script_reply->element[2]->integer);
    (void)script_add('a', "1", "r0");
    (void)script_add('b', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    EXPECT_INT(0, script_reply->element[2]->integer);
    EXPECT_STR("b0000+0", script_claim("1", "1000"));
    EXPECT_TRUE(script_reply->element[2]->integer > 900000 &&
                script_reply->element[2]->integer <= 1001000);
}

/* --- slot --------------------------------------------------------------- */

TEST(one_job_is_looked_at_and_deleted_in_each_state)
{
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
    EXPECT_INT(2, script_stat("running"));
    EXPECT_INT(0, script_stat("waiting"));
}

TEST(a_job_with_a_made_id_is_found_by_its_slot)
{
    (void)script_add('a', "9", "r0");
    EXPECT_STR("ready",
               script_slot("show", "@aaaaaaaaaaaa08", "aaaaaaaaaaaa", "8"));
    EXPECT_STR("none",
               script_slot("show", "@aaaaaaaaaaaa09", "aaaaaaaaaaaa", "9"));
    EXPECT_STR("ready",
               script_slot("delete", "@aaaaaaaaaaaa08", "aaaaaaaaaaaa", "8"));
    EXPECT_STR("none",
               script_slot("show", "@aaaaaaaaaaaa08", "aaaaaaaaaaaa", "8"));
    EXPECT_INT(8, script_stat("waiting"));
}

/* --- renew, giving back, stats, lateness ------------------------------- */

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

    (void)script_add('a', "x", "r1000000");
    for (size_t i = 0; i < sizeof(whens) / sizeof(whens[0]); i++) {
        EXPECT_CONTAINS("neither r<ms> nor a<ms>", reschedule(whens[i]));
        EXPECT_STR("aaaaaaaaaaaa0000", script_text("ZRANGE weir:{t}:wait 0 0"));
    }
    EXPECT_STR("scheduled 9999999999999 0 0", reschedule("a9999999999999"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
}

/* What waits in a topic of entries has names of its own. */
TEST(stats_and_purge_leave_topics_of_other_kinds_alone)
{
    EXPECT_STR("2", script_text("HSET weir:{t}:meta kind list added 1"));
    EXPECT_STR("1", script_text("ZADD weir:{t}:wait 1 @0000000000000001"));
    EXPECT_INT(0, script_stat("ready"));
    EXPECT_INT(0, script_stat("dropped"));
    script_begin(&weir__script_delay_purge,
                 "wait run lease ids meta held due p:");
    script_arg("@0000000000000001");
    EXPECT_STR("-1", script_call());
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:wait"));
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:meta"));
}

TEST(a_renewed_claim_lives_on_and_a_lost_one_is_named)
{
    (void)script_add('a', "1", "r0");
    (void)script_claim("1", "1");
    script_begin(&weir__script_delay_renew, "lease held");
    script_arg("60000");
    script_arg(script_token);
    script_arg("77");
    EXPECT_STR("77", script_call());
    EXPECT_STR("", script_claim("1", "9000"));
}

TEST(what_is_given_back_is_ready_again_and_stays_suspect)
{
    (void)script_add('a', "2", "r0");
    EXPECT_STR("a0001+0", script_crash("2"));
    EXPECT_STR("a0000+1 a0101+1", script_claim("2", "9000"));
    script_settle_begin();
    script_settle_back("a0000", "", 0, 1000);
    EXPECT_STR("0", script_settle('a', 0, "10"));
    EXPECT_STR("a0000+1", script_claim("2", "9000"));
    EXPECT_INT(2, script_stat("crashed"));
}

TEST(a_part_of_a_node_goes_back_and_the_rest_stays_under_its_token)
{
    (void)script_add('a', "4", "r0");
    EXPECT_STR("a0003+0", script_claim("4", "9000"));
    script_settle_begin();
    script_settle_node("a0003", "\0", 1);
    script_settle_back("a0003", "\2\3", 2, 5);
    script_settle_close();
    EXPECT_STR("1", script_settle('a', 0, "10"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:run"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:lease"));
    EXPECT_STR("5", redis_text(script_proc, "ZSCORE weir:{t}:wait %s0203",
                               "aaaaaaaaaaaa"));
    EXPECT_STR("a0203+0", script_claim("4", "9000"));
}

static const char *due_of(const char *node)
{
    return redis_text(script_proc, "ZSCORE weir:{t}:wait %s", node);
}

TEST(what_a_lease_that_ran_out_gives_back_is_due_when_it_was)
{
    (void)script_add('a', "4", "r0");
    (void)script_add('b', "1", "r0");
    (void)script_text("ZADD weir:{t}:wait 5 aaaaaaaaaaaa0003");
    (void)script_text("ZADD weir:{t}:wait 7 bbbbbbbbbbbb0000");
    EXPECT_STR("a0003+0 b0000+0", script_crash("9"));
    script_settle_begin();
    script_settle_node("a0003", "\1", 1);
    EXPECT_STR("1", script_settle('a', 0, "10"));
    EXPECT_STR("", script_claim("0", "9000"));
    EXPECT_STR("5.0078125", due_of("aaaaaaaaaaaa0000"));
    EXPECT_STR("5.0078125", due_of("aaaaaaaaaaaa0203"));
    EXPECT_STR("7.0078125", due_of("bbbbbbbbbbbb0000"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:held"));
    while (script_stat("exact") == 0)
        continue;
    EXPECT_INT(4, script_stat("ready"));
}

TEST(a_lease_ends_with_what_was_noted_of_it)
{
    (void)script_add('a', "2", "r0");
    EXPECT_STR("a0001+0", script_claim("9", "9000"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:held"));
    EXPECT_STR("2", script_settle_all("a0001"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:held"));
    (void)script_add('b', "2", "r0");
    EXPECT_STR("b0001+0", script_claim("9", "9000"));
    script_begin(&weir__script_delay_purge, "wait run lease ids meta held due");
    script_pack_key('b');
    script_arg("bbbbbbbbbbbb0001");
    EXPECT_STR("2", script_call());
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:held"));
}

/* As where the call with the first one was sent again, and came last. */
TEST(a_claim_that_outlives_its_jobs_ends_with_its_lease)
{
    (void)script_add('a', "2", "r0");
    EXPECT_STR("a0001+0", script_crash("9"));
    script_settle_begin();
    script_settle_node("a0001", "\1", 1);
    script_settle_close();
    EXPECT_STR("1", script_settle('a', 0, "10"));
    script_settle_begin();
    script_settle_node("a0001", "\0", 1);
    EXPECT_STR("1", script_settle('a', 0, "10"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:run"));
    EXPECT_INT(2, redis_int(script_proc, "EXISTS weir:{t}:lease "
                                         "weir:{t}:held"));
    EXPECT_STR("", script_claim("9", "9000"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:lease "
                                         "weir:{t}:held"));
}

/* What somebody else wrote there, or nothing. */
TEST(jobs_come_back_though_nobody_knows_when_they_were_due)
{
    static const char *const spoils[] = {
        "DEL weir:{t}:held",
        "SET weir:{t}:held x",
        "EVAL %s 1 weir:{t}:held",
    };

    for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
        (void)script_text("FLUSHALL");
        (void)script_add('a', "1", "r0");
        EXPECT_STR("a0000+0", script_crash("1"));
        (void)redis_text(script_proc, spoils[i],
                         "local t = redis.call('HKEYS', KEYS[1])[1] "
                         "return redis.call('HSET', KEYS[1], t, "
                         "cmsgpack.pack({ 'x', 1, 2, 'aaaaaaaaaaaa0000' }))");
        EXPECT_STR("a0000+1", script_claim("1", "9000"));
    }
}

TEST(counts_follow_every_transition)
{
    EXPECT_INT(0, script_stat("waiting"));
    EXPECT_STR("", script_reply->element[3]->str);
    (void)script_add('a', "5", "r0");
    (void)script_add('b', "3", "r60000");
    while (script_stat("ready") < 5)
        continue;
    EXPECT_INT(8, script_stat("waiting"));
    EXPECT_STR("a0001+0", script_claim("2", "9000"));
    EXPECT_INT(3, script_stat("ready"));
    EXPECT_INT(2, script_stat("running"));
    EXPECT_INT(6, script_stat("waiting"));
    EXPECT_INT(1, script_stat("exact"));
}

TEST(lateness_is_kept_by_minute)
{
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
}

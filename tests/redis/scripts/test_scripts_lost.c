/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis/scripts/lane_fixture.h"

/* Packs that are gone from the server, each one alone. */

static void lose(const char *seq)
{
    EXPECT_INT(1, redis_int(script_proc, "DEL weir:{t}:p:%s", seq));
}

static const char a[] = "aaaaaaaaaaaa", b[] = "bbbbbbbbbbbb";

/* Where the index says that the job is. */
static const char *place_of(const char *id)
{
    return redis_text(script_proc, "HGET weir:{t}:ids %s", id);
}

static const char *push(const char *id)
{
    const char *const args[] = {"t", id, "\x07", "r0", NULL};

    return script_run(&weir__script_delay_push,
                      "wait ids meta idle options absent", args);
}

/* --- ids ------------------------------------------------------------------ */

TEST(an_id_is_free_if_its_pack_was_lost)
{
    EXPECT_STR("2", script_add('a', "x y", "r0"));
    EXPECT_STR("1", script_add('c', "z", "r0"));
    lose(a);
    EXPECT_STR("2 0 2", script_add('b', "x y z", "r0"));
    EXPECT_STR(b, place_of("x"));
    EXPECT_STR("1 0 1", script_add('d', "v x", "r0"));
}

TEST(an_id_of_a_job_that_comes_alone_is_free_if_its_pack_was_lost)
{
    EXPECT_STR("1", script_add_one('a', "x", "r0"));
    EXPECT_STR("0 0 0", script_add_one('b', "x", "r0"));
    lose(a);
    EXPECT_STR("1", script_add_one('b', "x", "r0"));
    EXPECT_STR("0 0 0", script_add_one('c', "x", "r0"));
}

TEST(an_id_that_is_pushed_is_free_if_its_pack_was_lost)
{
    EXPECT_STR("added x", push("x"));
    EXPECT_STR("exists x", push("x"));
    lose(place_of("x"));
    EXPECT_STR("added x", push("x"));
    EXPECT_STR("exists x", push("x"));
}

TEST(a_dead_job_has_its_id_until_its_record_is_lost)
{
    (void)script_text("HSET weir:{t}:ids x D");
    (void)script_text("HSET weir:{t}:rec x record");
    (void)script_text("ZADD weir:{t}:dead 5 x");
    EXPECT_STR("0 0 0", script_add('a', "x", "r0"));
    EXPECT_STR("exists x", push("x"));
    (void)script_text("DEL weir:{t}:rec");
    EXPECT_STR("1", script_add('a', "x", "r0"));
    EXPECT_INT(0, script_stat("dead"));
}

TEST(an_id_and_a_unique_key_are_free_if_the_pack_was_lost)
{
    static const char *const rules[] = {
        "reject until-done", "reject until-start", "replace until-done",
        "debounce until-start", "throttle 3600000"};

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        (void)script_text("FLUSHALL");
        EXPECT_STR("1", lane_add_under(1, "r0", "k", rules[i]));
        lose("000000000001");
        EXPECT_STR("1", lane_add_under(2, "r0", "k", rules[i]));
        EXPECT_STR("1", lane_add_under(1, "r0", "", ""));
    }
}

TEST(a_unique_key_is_free_if_its_holder_was_lost_with_wait_or_run)
{
    static const char *const keys[] = {"wait", "run"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)script_text("FLUSHALL");
        EXPECT_STR("1", lane_add_under(1, "r0", "k", "reject until-done"));
        if (i == 1)
            EXPECT_STR("1", lane_claim("1", ""));
        EXPECT_CONTAINS("0 0 512",
                        lane_add_under(2, "r0", "k", "reject until-done"));
        EXPECT_INT(1, redis_int(script_proc, "DEL weir:{t}:%s", keys[i]));
        EXPECT_INT(1, script_stat("lost"));
        EXPECT_STR("1", lane_add_under(3, "r0", "k", "reject until-done"));
        EXPECT_CONTAINS("0 0 512",
                        lane_add_under(4, "r0", "k", "reject until-done"));
        EXPECT_STR("3", lane_claim("9", ""));
    }
}

TEST(a_job_dies_here_if_the_pack_of_its_id_was_lost)
{
    static const char *const args[] = {"delay", "x", "5", "record", NULL};

    (void)script_add('a', "x", "r0");
    lose(a);
    EXPECT_STR("1",
               script_run(&weir__script_delay_bury, "ids meta dead rec", args));
    EXPECT_STR("D", place_of("x"));
}

/* --- a worker that has fetched it before ---------------------------------- */

static void claim_and_lose(void)
{
    (void)script_add('a', "x", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    lose(a);
    EXPECT_STR("1", script_add('b', "x", "r0"));
}

TEST(a_run_without_a_pack_that_is_done_leaves_the_id_to_the_next_job)
{
    claim_and_lose();
    EXPECT_STR("1", script_settle_one("a0000", "x", "1"));
    EXPECT_STR(b, place_of("x"));
    EXPECT_INT(1, script_stat("done"));
}

TEST(a_run_without_a_pack_that_is_done_alone_leaves_no_id)
{
    (void)script_add('a', "x", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    lose(a);
    EXPECT_STR("1", script_settle_one("a0000", "x", "1"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:ids x"));
}

TEST(a_run_without_a_pack_that_dies_leaves_the_id_to_the_next_job)
{
    claim_and_lose();
    script_settle_begin();
    script_settle_node("a0000", NULL, 0);
    script_settle_end(0, "x", "r");
    EXPECT_STR("1", script_settle('a', 0, "10"));
    EXPECT_STR(b, place_of("x"));
    EXPECT_INT(0, script_stat("dead"));
    EXPECT_INT(1, script_stat("lost"));
    EXPECT_INT(0, script_stat("done"));
}

TEST(a_run_without_a_pack_that_is_retried_leaves_the_id_to_the_next_job)
{
    claim_and_lose();
    script_settle_begin();
    script_settle_node("a0000", NULL, 0);
    script_settle_record(0, "x", "r1000", "r");
    EXPECT_STR("1", script_settle('a', 0, "10"));
    EXPECT_STR(b, place_of("x"));
    EXPECT_INT(1, script_stat("waiting"));
    EXPECT_INT(1, script_stat("lost"));
    EXPECT_INT(0, script_stat("done"));
}

TEST(a_run_without_a_pack_is_retried)
{
    (void)script_add('a', "x", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    lose(a);
    script_settle_begin();
    script_settle_node("a0000", NULL, 0);
    script_settle_record(0, "x", "r1000", "r");
    EXPECT_STR("1", script_settle('a', 0, "10"));
    EXPECT_INT(1, script_stat("waiting"));
    EXPECT_INT(12, (long long)strlen(place_of("x")));
}

/* --- counts --------------------------------------------------------------- */

TEST(lost_jobs_are_counted_and_are_not_done)
{
    (void)script_add('a', "x y z", "r0");
    EXPECT_STR("a0002+0", script_claim("9", "9000"));
    lose(a);
    (void)snprintf(script_header, sizeof(script_header), "0");
    EXPECT_STR("3", script_settle_all("a0002"));
    EXPECT_INT(3, script_stat("lost"));
    EXPECT_INT(0, script_stat("done"));
    EXPECT_INT(0, script_stat("running"));
    EXPECT_STR("3", script_add('b', "x y z", "r0"));
}

TEST(what_waits_or_runs_is_lost_with_its_key)
{
    (void)script_add('a', "4", "r0");
    (void)script_add('b', "3", "r0");
    EXPECT_STR("a0003+0", script_claim("4", "9000"));
    EXPECT_INT(3, script_stat("waiting"));
    EXPECT_INT(4, script_stat("running"));
    (void)script_text("DEL weir:{t}:wait");
    EXPECT_INT(0, script_stat("waiting"));
    EXPECT_INT(0, script_stat("ready"));
    EXPECT_INT(3, script_stat("lost"));
    EXPECT_INT(4, script_stat("running"));
    (void)script_text("DEL weir:{t}:run");
    EXPECT_INT(0, script_stat("running"));
    EXPECT_INT(7, script_stat("lost"));
    EXPECT_INT(0, script_stat("done"));
    (void)script_add('c', "2", "r0");
    EXPECT_INT(2, script_stat("waiting"));
    EXPECT_STR("c0001+0", script_claim("9", "9000"));
    EXPECT_STR("2", script_settle_all("c0001"));
    EXPECT_INT(2, script_stat("done"));
}

TEST(what_runs_comes_back_though_all_leases_were_lost)
{
    (void)script_add('a', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("9", "9000"));
    (void)script_text("DEL weir:{t}:lease");
    EXPECT_INT(1, script_stat("running"));
    EXPECT_INT(
        0, redis_int(script_proc, "ZADD weir:{t}:lease XX 1 %s", script_token));
    EXPECT_STR("a0000+1", script_claim("9", "9000"));
    EXPECT_INT(1, script_stat("crashed"));
}

TEST(a_claim_whose_lease_was_lost_ends_though_others_have_theirs)
{
    (void)script_add('a', "1", "r0");
    (void)script_add('b', "1", "r0");
    EXPECT_STR("a0000+0", script_claim("1", "9000"));
    (void)script_text("DEL weir:{t}:lease");
    EXPECT_STR("b0000+0", script_claim("1", "9000"));
    EXPECT_INT(1, redis_int(script_proc, "ZCARD weir:{t}:lease"));
    EXPECT_INT(2, script_stat("running"));
    EXPECT_INT(2, redis_int(script_proc, "ZCARD weir:{t}:lease"));
}

TEST(the_dead_are_dead_again_if_only_their_order_was_lost)
{
    (void)script_text("HSET weir:{t}:ids x D");
    (void)script_text("HSET weir:{t}:rec x record");
    (void)script_text("HSET weir:{t}:meta kind delay");
    (void)script_text("DEL weir:{t}:dead");
    EXPECT_INT(1, script_stat("dead"));
    EXPECT_STR("0 0 0", script_add('a', "x", "r0"));
}

TEST(what_was_lost_in_an_outbox_is_counted_once_and_is_not_done)
{
    static const char *const args[] = {"name", "5", "3", NULL};
    static const char delay[] = "ids meta dead rec relay o:name",
                      external[] = "meta dead held past relay o:name";

    (void)script_add('a', "1", "r0");
    (void)script_text("HSET weir:{t}:relay name entry");
    EXPECT_STR("0 0",
               script_run(&weir__script_delay_undeliverable, delay, args));
    EXPECT_STR("0", script_run(&weir__script_delay_undeliverable, delay, args));
    EXPECT_INT(3, script_stat("lost"));
    EXPECT_INT(0, script_stat("done"));
    EXPECT_INT(0, script_stat("running"));
    EXPECT_INT(1, script_stat("waiting"));
    (void)script_text("HSET weir:{t}:relay name entry");
    EXPECT_STR("0 0", script_run(&weir__script_external_undeliverable, external,
                                 args));
    EXPECT_STR("6", redis_text(script_proc, "HGET weir:{t}:meta lost"));
}

/* --- what weir doctor finds ----------------------------------------------- */

/* How many were lost of what this key has. */
static const char *mend(const char *what, const char *mends)
{
    const char *const args[] = {mends, what, what[0] == 'p' ? b : "0", NULL};

    return script_run(&weir__script_delay_mend,
                      "wait run ids meta dead rec due of absent", args);
}

TEST(what_was_lost_with_a_pack_is_found_and_mended)
{
    static const char *const keys[] = {"wait", "due", "ids"};

    (void)script_add('a', "x y", "r5000");
    (void)script_add('b', "z", "r5000");
    (void)script_text("HSET weir:{t}:due aaaaaaaaaaaa table");
    (void)script_text("HSET weir:{t}:of aaaaaaaaaaaa 2k");
    lose(a);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *lost = i == 2 ? "0 2" : "0 1";

        EXPECT_STR(lost, mend(keys[i], "0"));
        EXPECT_STR(lost, mend(keys[i], "1"));
        EXPECT_STR("0 0", mend(keys[i], "1"));
    }
    EXPECT_STR("0 1", mend("of", "1"));
    EXPECT_INT(1, script_stat("waiting"));
    EXPECT_INT(2, script_stat("lost"));
    EXPECT_INT(0, script_stat("done"));
    EXPECT_STR("2 0 2", script_add('c', "x y z", "r0"));
}

TEST(an_id_and_a_pack_whose_place_was_lost_are_found_and_mended)
{
    (void)script_add('a', "x", "r0");
    (void)script_add('b', "2", "r0");
    EXPECT_STR("0 0", mend("ids", "1"));
    EXPECT_STR("0 0", mend("packs", "1"));
    (void)script_text("DEL weir:{t}:wait");
    EXPECT_INT(3, script_stat("lost"));
    EXPECT_STR("0 1", mend("ids", "1"));
    EXPECT_STR("0 1", mend("packs", "0"));
    EXPECT_STR("0 1", mend("packs", "1"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:%s", a));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:p:%s", b));
    EXPECT_STR("1", script_add('a', "x", "r0"));
}

TEST(a_pack_that_is_staged_is_none_that_was_lost)
{
    script_stage('b', "2");
    EXPECT_STR("0 0", mend("packs", "1"));
    EXPECT_INT(1, redis_int(script_proc, "EXISTS weir:{t}:p:%s", b));
}

TEST(the_id_of_a_dead_job_whose_record_was_lost_is_found_and_mended)
{
    (void)script_text("HSET weir:{t}:ids x D");
    (void)script_text("ZADD weir:{t}:dead 5 x");
    EXPECT_STR("0 1", mend("ids", "0"));
    EXPECT_STR("0 1", mend("ids", "1"));
    EXPECT_INT(0, redis_int(script_proc, "ZCARD weir:{t}:dead"));
    EXPECT_STR("1", script_add('a', "x", "r0"));
}

/* --- lanes ---------------------------------------------------------------- */

static void lose_keys(const char *keys)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "DEL %s", keys);
    (void)script_text(command);
}

TEST(jobs_whose_lane_was_lost_run)
{
    static const char *const keys[] = {
        "weir:{t}:lane:2k", "weir:{t}:turns", "weir:{t}:lane:2k weir:{t}:of",
        "weir:{t}:turns weir:{t}:of",
        "weir:{t}:lane:2k weir:{t}:turns weir:{t}:of"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)script_text("FLUSHALL");
        EXPECT_STR("1", lane_add(1, "l2r0 k"));
        EXPECT_STR("1", lane_add(2, "l2r0 k"));
        EXPECT_INT(2, script_stat("waiting"));
        lose_keys(keys[i]);
        EXPECT_INT(2, script_stat("waiting"));
        (void)script_stat("ready");
        EXPECT_STR("1 2", lane_claim("9", ""));
        EXPECT_STR("1", lane_settle(1, "done"));
        EXPECT_STR("1", lane_settle(2, "done"));
        EXPECT_INT(0, script_stat("waiting"));
        EXPECT_INT(0, script_stat("ready"));
        EXPECT_INT(2, script_stat("done"));
    }
}

TEST(a_lane_that_was_lost_is_found_behind_one_that_was_not)
{
    EXPECT_STR("1", lane_add(1, "l2r0 j"));
    EXPECT_STR("1", lane_add(2, "l2r0 k"));
    EXPECT_INT(2, script_stat("waiting"));
    lose_keys("weir:{t}:lane:2k");
    (void)script_stat("waiting");
    EXPECT_STR("1 2", lane_claim("9", ""));
}

TEST(jobs_of_a_lane_without_of_run_and_are_no_more_than_before)
{
    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    lose_keys("weir:{t}:of");
    EXPECT_STR("1", lane_claim("9", ""));
    EXPECT_STR("1", lane_settle(1, "done"));
    EXPECT_INT(0, script_stat("waiting"));
    EXPECT_INT(1, script_stat("done"));
}

/* --- groups --------------------------------------------------------------- */

static const char *add_event(void)
{
    static char number[24];
    const char *const args[] = {"t", "bounded", "slot",  number,
                                "a", "1",       "event", NULL};

    (void)snprintf(number, sizeof(number), "%lld", script_number++);
    return script_run(&weir__script_bounded_add,
                      "rot hot out meta idle options seen ttl g:a", args);
}

static void see_that_it_is_lost(bool by_stats)
{
    static const char *const none[] = {NULL};
    static const char *const claim[] = {"t", "bounded", "1", "300", "",
                                        "0", "1",       "",  "",    NULL};

    if (by_stats)
        (void)script_run(&weir__script_bounded_stats, "meta lease rot hot",
                         none);
    else
        (void)script_run(&weir__script_bounded_claim,
                         "rot hot lease out meta idle options ttl", claim);
}

static long long turns(void)
{
    return redis_int(script_proc, "ZCARD weir:{t}:rot");
}

static long long waiting(void)
{
    return atoll(redis_text(script_proc, "HGET weir:{t}:meta waiting"));
}

TEST(a_group_whose_turn_was_lost_has_one_with_its_next_event)
{
    for (int by_stats = 0; by_stats < 2; by_stats++) {
        (void)script_text("FLUSHALL");
        EXPECT_STR("0", add_event());
        (void)script_text("DEL weir:{t}:rot");
        see_that_it_is_lost(by_stats);
        EXPECT_STR("0", add_event());
        EXPECT_INT(1, turns());
        EXPECT_INT(2, waiting());
    }
}

TEST(a_full_group_whose_turn_was_lost_has_one_with_its_next_event)
{
    static const char *const modes[] = {"drop-oldest", "drop-new", "reject"};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        (void)script_text("FLUSHALL");
        EXPECT_INT(2, redis_int(script_proc,
                                "HSET weir:{t}:options length 1 "
                                "overflow %s",
                                modes[i]));
        (void)add_event();
        (void)script_text("DEL weir:{t}:rot");
        see_that_it_is_lost(true);
        (void)add_event();
        EXPECT_INT(1, turns());
        EXPECT_INT(1, waiting());
    }
}

TEST(an_event_that_was_stored_while_turns_could_not_be_has_one_later)
{
    (void)script_text("SET weir:{t}:rot none");
    EXPECT_CONTAINS("WRONGTYPE", add_event());
    EXPECT_INT(1, waiting());
    (void)script_text("DEL weir:{t}:rot");
    EXPECT_STR("0", add_event());
    EXPECT_INT(1, turns());
    EXPECT_INT(2, waiting());
}

/* --- messages ------------------------------------------------------------- */

static void push_messages(int count)
{
    const char *const args[] = {"t", "concurrent", "0", "", "r", "1", NULL};

    for (int i = 0; i < count; i++)
        (void)script_run(&weir__script_classic_push,
                         "fifo ids meta options idle", args);
}

static void park_message(const char *consumer)
{
    const char *const args[] = {consumer, "w1", "9000", "park",
                                "0",      "0",  "",     NULL};

    (void)script_run(&weir__script_classic_pop,
                     "fifo parked alive meta idle lock absent", args);
}

static void poll_topic(void)
{
    static const char *const args[] = {"concurrent", "w2", "300",
                                       "-1",         "",   NULL};

    (void)script_run(&weir__script_classic_poll,
                     "fifo parked alive meta ids idle absent", args);
}

static long long lost_messages(void)
{
    static const char *const none[] = {NULL};

    (void)script_run(&weir__script_classic_stats, "fifo parked meta alive",
                     none);
    for (size_t i = 0; i + 1 < script_reply->elements; i += 2)
        if (strcmp(script_reply->element[i]->str, "lost") == 0)
            return script_reply->element[i + 1]->integer;
    return 0;
}

TEST(a_poll_ends_the_lease_of_a_message_whose_consumer_was_lost)
{
    push_messages(2);
    park_message("c1");
    (void)script_text("DEL weir:{t}:alive");
    park_message("c2");
    poll_topic();
    EXPECT_INT(2, redis_int(script_proc, "ZCARD weir:{t}:alive"));
    EXPECT_INT(0, redis_int(script_proc, "ZADD weir:{t}:alive 1 c1"));
    poll_topic();
    EXPECT_INT(1, redis_int(script_proc, "LLEN weir:{t}:fifo"));
}

TEST(messages_that_went_with_their_key_are_counted_as_lost)
{
    push_messages(5);
    park_message("c1");
    EXPECT_INT(0, lost_messages());
    (void)script_text("DEL weir:{t}:parked");
    EXPECT_INT(1, lost_messages());
    (void)script_text("DEL weir:{t}:fifo");
    EXPECT_INT(5, lost_messages());
}

TEST(messages_that_were_deleted_are_not_lost)
{
    static const char *const none[] = {NULL};

    push_messages(3);
    park_message("c1");
    EXPECT_STR("3", script_run(&weir__script_classic_purge,
                               "fifo parked alive meta", none));
    EXPECT_INT(0, lost_messages());
}

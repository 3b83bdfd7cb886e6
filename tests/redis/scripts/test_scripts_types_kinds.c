/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/pack.h"

/* As test_scripts_types.c, for topics of the other kinds and for what all
 * topics have. */

/* --- sync and concurrent ------------------------------------------------- */

static void push_message(void)
{
    EXPECT_INT(1, redis_int(script_proc, "RPUSH weir:{t}:fifo m"));
}

static const char *pop_as(const char *todo)
{
    const char *const args[] = {"c1", "w1", "9000", todo, "0", "0", "", NULL};

    return script_run(&weir__script_classic_pop,
                      "fifo parked alive meta idle lock", args);
}

static const char *pop_and_park(void)
{
    return pop_as("park");
}

static const char *pop(void)
{
    return pop_as("done");
}

TEST(a_pop_that_ends_with_an_error_takes_no_message)
{
    script_expect_untouched("parked alive", push_message, pop_and_park);
    script_expect_untouched("meta", push_message, pop);
}

static void park(void)
{
    push_message();
    (void)pop_and_park();
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:parked"));
}

static const char *settle_message(void)
{
    const char *const args[] = {"t", "c1", "retry", "0", "id", "record", NULL};

    return script_run(&weir__script_classic_settle,
                      "fifo parked alive meta options idle", args);
}

TEST(a_message_stays_parked_where_it_cannot_wait_again)
{
    script_expect_untouched("fifo parked alive options", park, settle_message);
}

static void park_and_die(void)
{
    park();
    EXPECT_INT(0, redis_int(script_proc, "ZADD weir:{t}:alive 1 c1"));
    (void)redis_text(script_proc, "HSET weir:{t}:meta kind sync");
}

static const char *poll(void)
{
    const char *const args[] = {"sync", "w2", "9000", "-1", "", NULL};

    return script_run(&weir__script_classic_poll,
                      "fifo parked alive meta ids idle", args);
}

TEST(what_dead_consumers_had_stays_parked_where_it_cannot_go_back)
{
    script_expect_untouched("fifo parked alive", park_and_die, poll);
}

/* --- lists and streams --------------------------------------------------- */

static void fill_list(void)
{
    EXPECT_INT(2, redis_int(script_proc, "RPUSH weir:{t}:list a b"));
    (void)redis_text(script_proc, "HSET weir:{t}:meta kind list key %s", "");
}

static const char *claim_list(void)
{
    const char *const args[] = {"list", "10", "9000", "0", "",
                                "",     "",   "",     "",  NULL};

    return script_run(&weir__script_external_claim_list,
                      "meta wait run lease held past auto list", args);
}

static void add_waiting(void)
{
    (void)redis_text(script_proc, "HSET weir:{t}:meta kind list key %s", "");
    (void)redis_text(script_proc, "HSET weir:{t}:held @1 a @2 b");
    (void)redis_text(script_proc, "ZADD weir:{t}:wait 1 @1 1 @2");
}

static void leave_list(void)
{
    fill_list();
    (void)claim_list();
    EXPECT_INT(2, redis_int(script_proc, "ZCARD weir:{t}:run"));
    (void)redis_text(script_proc, "EVAL %s 1 weir:{t}:lease",
                     "return redis.call('ZADD', KEYS[1], 1, "
                     "redis.call('ZRANGE', KEYS[1], 0, 0)[1])");
}

TEST(a_claim_of_entries_that_ends_with_an_error_takes_none)
{
    script_expect_untouched("wait run lease held past auto list", fill_list,
                            claim_list);
    script_expect_untouched("wait run lease held past auto list", add_waiting,
                            claim_list);
    script_expect_untouched("wait past auto", leave_list, claim_list);
}

static void add_waiting_of_stream(void)
{
    (void)redis_text(script_proc,
                     "HSET weir:{t}:meta kind stream group g key %s", "");
    (void)redis_text(script_proc, "HSET weir:{t}:held 1-1 a");
    (void)redis_text(script_proc, "ZADD weir:{t}:wait 1 1-1 2 1-2");
}

static const char *claim_stream(void)
{
    const char *const args[] = {"stream", "10", "9000",  "0", "", "g",
                                "c",      "$",  "60000", "",  "", NULL};

    return script_run(&weir__script_external_claim_stream,
                      "meta wait run lease held past auto stream", args);
}

TEST(a_claim_of_a_stream_that_ends_with_an_error_takes_no_entry)
{
    script_expect_untouched("wait run lease stream", add_waiting_of_stream,
                            claim_stream);
}

static const char *settle_entry(void)
{
    struct weir__buf list = {0};
    const char *answer;
    uint64_t token =
        strtoull(redis_text(script_proc, "HGET weir:{t}:meta token"), NULL, 10);

    weir__pack_array(&list, 7);
    weir__pack_uint(&list, token);
    weir__pack_str(&list, "@0000000000000001", 17);
    weir__pack_str(&list, "r", 1);
    weir__pack_uint(&list, 5);
    weir__pack_str(&list, "past", 4);
    weir__pack_str(&list, "", 0);
    weir__pack_uint(&list, 0);
    script_begin(&weir__script_external_settle,
                 "meta wait run lease held past dead auto list");
    script_arg("");
    script_arg("0");
    script_arg("10");
    script_arg("");
    script_arg("");
    script_arg_bytes(list.ptr, list.len);
    script_arg("");
    answer = script_call();
    weir__buf_fini(&list);
    return answer;
}

static void take_entry(void)
{
    script_number = 1;
    fill_list();
    (void)redis_text(script_proc, "HSET weir:{t}:meta taken 0");
    (void)claim_list();
}

TEST(a_settle_of_entries_that_ends_with_an_error_settles_none)
{
    script_expect_untouched("wait run lease held past dead", take_entry,
                            settle_entry);
}

static void add_dead(void)
{
    (void)redis_text(script_proc, "HSET weir:{t}:meta kind list");
    (void)redis_text(script_proc, "HSET weir:{t}:held @1 a");
    (void)redis_text(script_proc, "ZADD weir:{t}:dead 1 @1");
}

static const char *requeue(void)
{
    const char *const args[] = {"@1", "", NULL};

    return script_run(&weir__script_external_requeue,
                      "meta wait held past dead", args);
}

TEST(a_requeue_of_entries_that_ends_with_an_error_leaves_them_dead)
{
    script_expect_untouched("wait held past dead", add_dead, requeue);
}

/* Somebody removed the group: both claims are renewed nevertheless. */
TEST(claims_of_a_stream_are_renewed_where_its_group_is_gone)
{
    const char *const args[] = {"60000", "g", "c", "5", "6", NULL};

    (void)redis_text(script_proc, "ZADD weir:{t}:run 5 1-1 6 1-2");
    (void)redis_text(script_proc, "ZADD weir:{t}:lease 1 5 1 6");
    EXPECT_STR("", script_run(&weir__script_external_renew,
                              "lease run stream meta", args));
    EXPECT_INT(0, redis_int(script_proc, "ZCOUNT weir:{t}:lease 0 1"));
}

/* --- what all topics have ------------------------------------------------ */

static void count_claims(void)
{
    (void)redis_text(script_proc, "HSET weir:{t}:meta kind delay claimed 5");
}

static const char *become_bounded(void)
{
    const char *const args[] = {"delay", "kind", "bounded", NULL};

    return script_run(&weir__script_store_set, "options ids meta wait", args);
}

TEST(a_topic_that_cannot_keep_options_stays_of_its_kind)
{
    script_expect_untouched("options meta", count_claims, become_bounded);
}

static void pause_topic(void)
{
    (void)redis_text(script_proc, "HSET weir:{t}:meta kind delay paused 1");
}

static const char *resume(void)
{
    const char *const args[] = {"t", "", "0", NULL};

    return script_run(&weir__script_store_pause, "ids meta idle", args);
}

TEST(a_topic_stays_paused_where_nobody_can_be_woken)
{
    script_expect_untouched("idle meta", pause_topic, resume);
}

/* As many as a script cannot name in one command. */
TEST(foreign_fields_do_not_stop_the_statistics_of_lateness)
{
    const char *const args[] = {"7", "3", "1", NULL};

    (void)redis_text(script_proc, "EVAL %s 1 weir:{t}:late",
                     "for i = 1, 60000 do redis.call('HSET', KEYS[1], "
                     "i % 6 .. ':' .. i, 1) end");
    EXPECT_STR("1", script_run(&weir__script_store_lateness, "late", args));
    EXPECT_STR("1", script_run(&weir__script_store_lateness, "late", args));
}

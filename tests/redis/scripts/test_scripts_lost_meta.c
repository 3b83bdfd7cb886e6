/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis/scripts/lane_fixture.h"

/* The key `meta` is gone. Other keys tell the kind of the topic, and what it
 * holds is counted again. */

static const char a[] = "aaaaaaaaaaaa";

static const char *find(void)
{
    static const char *const none[] = {NULL};

    return script_run(&weir__script_external_find, "meta options", none);
}

/* --- a topic of each kind ------------------------------------------------- */

static const char *add_job(void)
{
    return script_add('a', "x y z", "r0");
}

static const char *add_event(void)
{
    static char number[24];
    const char *const args[] = {"t", "bounded", "slot",  number,
                                "a", "1",       "event", NULL};

    (void)snprintf(number, sizeof(number), "%lld", script_number++);
    return script_run(&weir__script_bounded_add,
                      "rot hot out meta idle options seen ttl g:a", args);
}

static const char *push_message(const char *kind)
{
    const char *const args[] = {"t", kind, "0", "", "r", "1", NULL};

    return script_run(&weir__script_classic_push, "fifo ids meta options idle",
                      args);
}

static const char *push_to_sync(void)
{
    return push_message("sync");
}

static const char *push_to_concurrent(void)
{
    return push_message("concurrent");
}

static const char *claim_entry(const struct weir__script *script,
                               const char *const *args)
{
    return script_run(script,
                      "meta wait run lease held past auto source absent", args);
}

static const char *claim_of_list(void)
{
    (void)script_text("RPUSH weir:{t}:source 1");
    return claim_entry(&weir__script_external_claim_list,
                       (const char *const[]){"list", "1", "9000", "0", "", "",
                                             "", "", "", NULL});
}

static const char *claim_of_stream(void)
{
    (void)script_text("XADD weir:{t}:source * body 1");
    return claim_entry(&weir__script_external_claim_stream,
                       (const char *const[]){"stream", "1", "9000", "0", "",
                                             "g", "c", "0", "1000", "", "",
                                             NULL});
}

static const struct {
    const char *kind;
    const char *(*fill)(void);
} kinds[] = {{"delay", add_job},      {"bounded", add_event},
             {"sync", push_to_sync},  {"concurrent", push_to_concurrent},
             {"list", claim_of_list}, {"stream", claim_of_stream}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void lose_meta(void)
{
    EXPECT_INT(1, redis_int(script_proc, "DEL weir:{t}:meta"));
}

static const char *kind_of_topic(void)
{
    static char kind[16];

    (void)snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(find(), " "),
                   find());
    return kind;
}

TEST(no_caller_takes_a_topic_whose_meta_was_lost_for_another_kind)
{
    char refusal[32];

    for (size_t i = 0; i < KINDS; i++) {
        (void)snprintf(refusal, sizeof(refusal), "-1 %s", kinds[i].kind);
        for (size_t j = 0; j < KINDS; j++) {
            (void)script_text("FLUSHALL");
            (void)kinds[i].fill();
            lose_meta();
            (void)script_text("DEL weir:{t}:source");
            if (j != i)
                EXPECT_STR(refusal, kinds[j].fill());
            EXPECT_STR(kinds[i].kind, kind_of_topic());
        }
    }
}

TEST(a_stored_kind_outlives_meta_though_the_topic_is_empty)
{
    static const char *const args[] = {"delay", "kind", "list", NULL};
    static const char keys[] = "options ids meta wait run dead relay fifo "
                               "parked rot hot out cron";

    EXPECT_STR("1", script_run(&weir__script_store_set, keys, args));
    lose_meta();
    EXPECT_STR("-1 list", add_job());
    EXPECT_STR("list", kind_of_topic());
}

TEST(a_topic_of_which_nothing_is_left_is_of_no_kind)
{
    EXPECT_STR("", kind_of_topic());
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:meta"));
    EXPECT_INT(0, script_stat("waiting"));
    EXPECT_INT(0, redis_int(script_proc, "EXISTS weir:{t}:meta"));
}

TEST(jobs_tell_their_kind_without_meta_and_index)
{
    (void)add_job();
    (void)script_text("DEL weir:{t}:meta weir:{t}:ids");
    EXPECT_STR("-1 delay", push_to_sync());
}

/* --- counts --------------------------------------------------------------- */

static void expect_counts(long long waiting, long long ready, long long running)
{
    EXPECT_INT(waiting, script_stat("waiting"));
    EXPECT_INT(ready, script_stat("ready"));
    EXPECT_INT(running, script_stat("running"));
}

TEST(jobs_are_counted_again_after_meta_was_lost)
{
    (void)add_job();
    (void)script_add('b', "2", "r5000");
    EXPECT_STR("a0001+0", script_claim("2", "9000"));
    lose_meta();
    expect_counts(3, 1, 2);
    EXPECT_STR("2", script_settle_all("a0001"));
    expect_counts(3, 1, 0);
    EXPECT_INT(2, script_stat("done"));
    EXPECT_STR("a0202+0", script_claim("9", "9000"));
    EXPECT_STR("1", script_settle_all("a0202"));
    expect_counts(2, 0, 0);
    EXPECT_INT(3, script_stat("done"));
}

TEST(tokens_grow_after_meta_was_lost)
{
    long long before;

    (void)add_job();
    (void)script_claim("1", "9000");
    before = atoll(script_token);
    lose_meta();
    (void)script_claim("1", "9000");
    EXPECT_TRUE(atoll(script_token) > before + 1);
}

TEST(what_is_beyond_the_bound_of_the_count_is_never_told_as_nothing)
{
    (void)add_job();
    (void)redis_text(script_proc, "EVAL %s 0",
                     "for i=1,12000 do redis.call('ZADD','weir:{t}:wait',1,"
                     "string.format('%012d0000',i)) end");
    lose_meta();
    EXPECT_INT(12001, script_stat("waiting"));
}

TEST(events_are_counted_again_after_meta_was_lost)
{
    static const char *const none[] = {NULL};

    (void)add_event();
    (void)add_event();
    lose_meta();
    (void)find();
    (void)script_run(&weir__script_bounded_stats, "meta lease rot hot", none);
    EXPECT_STR("2", redis_text(script_proc, "HGET weir:{t}:meta waiting"));
}

/* --- options -------------------------------------------------------------- */

TEST(options_hold_again_after_meta_was_lost)
{
    static const char *const args[] = {"delay", "max_pending", "3",  "parallel",
                                       "1",     "ageing",      "1m", NULL};
    static const char keys[] = "options ids meta wait run dead relay fifo "
                               "parked rot hot out cron";

    EXPECT_STR("1", script_run(&weir__script_store_set, keys, args));
    (void)add_job();
    lose_meta();
    (void)find();
    EXPECT_STR("3", redis_text(script_proc, "HGET weir:{t}:meta max_pending"));
    EXPECT_STR("|1|||60000",
               redis_text(script_proc, "HGET weir:{t}:meta limits"));
    EXPECT_TRUE(redis_int(script_proc, "HINCRBY weir:{t}:meta revision 0") > 1);
    EXPECT_CONTAINS("0 0 256", script_add('b', "w", "r0"));
    EXPECT_STR(a, redis_text(script_proc, "HGET weir:{t}:ids x"));
}

/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <string.h>

/* Jobs of a client that knows neither packs nor records: push adds them, pull
 * brings them, finish ends them. */

static const char keys[] = "wait run lease ids meta idle held due dead rec "
                           "options started absent";

/* `key` "": the job is in no lane. */
static void push(const char *id, const char *key, const char *priority)
{
    script_begin(&weir__script_delay_push, "wait ids meta idle options absent");
    script_arg("t");
    script_arg(id);
    script_arg("\x07");
    script_arg("r0");
    if (key[0] != '\0') {
        script_arg("key");
        script_arg(key);
        script_arg("priority");
        script_arg(priority);
    }
    EXPECT_CONTAINS("added", script_call());
}

/* Returns the ids of the jobs that came, in their order. */
static const char *pull(const char *room)
{
    static char ids[256];
    size_t len = 0;

    script_begin(&weir__script_delay_pull, keys);
    script_arg(room);
    script_arg("w1");
    script_arg("0");
    script_arg("");
    (void)script_call();
    EXPECT_INT(9, script_reply->elements);
    ids[0] = '\0';
    for (size_t i = 0; i < (size_t)script_reply->element[8]->elements; i++)
        len += (size_t)snprintf(
            ids + len, sizeof(ids) - len, "%s%s", i == 0 ? "" : " ",
            script_reply->element[8]->element[i]->element[1]->str);
    return ids;
}

/* The first job that came is done. */
static const char *finish(void)
{
    char handle[256];

    (void)snprintf(handle, sizeof(handle), "%s",
                   script_reply->element[8]->element[0]->element[0]->str);
    script_begin(&weir__script_delay_finish, keys);
    script_arg("w1");
    script_arg(handle);
    script_arg("done");
    script_arg("");
    script_arg("");
    return script_call();
}

TEST(a_job_that_was_pulled_is_finished_with_its_id)
{
    push("x", "", "");
    EXPECT_STR("x", pull("10"));
    EXPECT_STR("1", finish());
    EXPECT_INT(1, script_stat("done"));
    EXPECT_INT(0, redis_int(script_proc, "HEXISTS weir:{t}:ids x"));
}

TEST(what_is_urgent_is_pulled_first_also_beside_other_keys)
{
    static const char *const ids[] = {"a1", "a2", "a3", "b1", "b2"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        push(ids[i], ids[i][0] == 'a' ? "a" : "b", i < 3 ? "urgent" : "low");
    EXPECT_STR("a1 a2 a3 b1 b2", pull("10"));
}

TEST(a_result_counts_nothing_where_another_worker_had_the_job)
{
    push("x", "", "");
    EXPECT_STR("x", pull("10"));
    (void)script_text("EVAL "
                      "return(redis.call('ZINCRBY',KEYS[1],'1',redis.call("
                      "'ZRANGE',KEYS[1],'0','0')[1])) 1 weir:{t}:run");
    EXPECT_STR("0", finish());
    EXPECT_INT(0, script_stat("done"));
}

TEST(a_client_that_got_all_it_asked_for_asks_again_at_once)
{
    push("x", "", "");
    push("y", "", "");
    EXPECT_STR("x", pull("1"));
    EXPECT_INT(0, script_reply->element[2]->integer);
}

TEST(a_pack_of_unknown_flags_has_no_job)
{
    push("x", "", "");
    (void)script_text("EVAL "
                      "return(redis.call('SETRANGE',redis.call('KEYS','*:p:*')"
                      "[1],'4','\\2')) 0");
    EXPECT_STR("", pull("10"));
    EXPECT_INT(1, script_stat("dead"));
}

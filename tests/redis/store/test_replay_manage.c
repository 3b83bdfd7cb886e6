/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/text.h"
#include "tests/redis/store/line_fixture.h"

/* A replica takes over that had been cut off, behind what somebody did by hand
 * in the last second: what of it stays so, and what does not. */

static struct redis_proc *replica;

/* The world, and a replica of its server that hears everything. */
static void follow(void)
{
    static const char *const args[] = {"--repl-diskless-sync-delay", "0", NULL};

    (void)world_open(&(struct redis_options){.tcp = true, .args = args});
    replica = redis_start(NULL);
    EXPECT_STR("OK",
               redis_text(replica, "REPLICAOF 127.0.0.1 %d", redis_port(proc)));
    AWAIT(strstr(redis_text(replica, "INFO replication"),
                 "master_link_status:up") != NULL);
}

/* From now on it hears nothing, but it heard all until now. */
static void cut_off(void)
{
    EXPECT_TRUE(redis_int(proc, "INCR cut") > 0);
    EXPECT_INT(1, redis_int(proc, "WAIT 1 0"));
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
}

/* The server is killed, and who asks for it finds the replica. */
static void take_over(struct host *host)
{
    int ups = host->ups;

    redis_kill(proc, SIGKILL);
    EXPECT_INT(0, rename(redis_socket(replica), redis_socket(proc)));
    proc = replica;
    AWAIT(host->ups > ups);
}

static void add(struct host *host, const char *id, int64_t delay_ms)
{
    int before = host->added;

    host_add(host, id, delay_ms);
    AWAIT(host->added == before + 1);
}

/* What runs now, in the order of ids: "a b ". */
static const char *ran(struct host *host)
{
    static char text[256];

    text[0] = '\0';
    while (host_claim(host, 1, 60000) > 0) {
        struct weir__run *run = host_take(host);
        size_t len = strlen(text);

        (void)snprintf(text + len, sizeof(text) - len, "%s ", run_id(run));
        host_settle(host, run, WEIR__OUTCOME_DONE);
        host_await_settled(host);
    }
    return text;
}

/* --- purge --------------------------------------------------------------- */

TEST(what_was_purged_stays_so_where_the_replica_heard_of_the_purge)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add(host, "a", 0);
    add(host, "b", 0);
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(2, host->count);
    cut_off();
    add(host, "c", 0);
    take_over(host);
    EXPECT_STR("c ", ran(host));
    EXPECT_CONTAINS("calls, 1 had been lost", world_log);
}

TEST(what_was_purged_is_back_where_the_replica_did_not_hear_of_the_purge)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add(host, "a", 0);
    cut_off();
    add(host, "b", 0);
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(2, host->count);
    add(host, "c", 0);
    take_over(host);
    EXPECT_STR("a b c ", ran(host));
}

/* --- delete, reschedule --------------------------------------------------- */

TEST(a_job_that_another_process_deleted_is_back_where_its_add_is_said_again)
{
    struct host *host, *other;

    follow();
    host = host_open("w1");
    other = host_open("w2");
    cut_off();
    add(host, "a", 0);
    add(host, "b", 0);
    EXPECT_INT(WEIR_OK, host_remove(other, "a"));
    EXPECT_INT(WEIR_OK, host_remove(host, "b"));
    host_close(other);
    take_over(host);
    EXPECT_STR("a ", ran(host));
}

TEST(a_job_that_was_rescheduled_is_due_when_its_add_said)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add(host, "heard", 3600000);
    cut_off();
    add(host, "lost", 3600000);
    EXPECT_INT(WEIR_OK, host_reschedule(host, "heard", 1, 0));
    EXPECT_INT(WEIR_OK, host_reschedule(host, "lost", 1, 0));
    take_over(host);
    EXPECT_STR("", ran(host));
    EXPECT_INT(2, host_list(host, WEIR_JOB_SCHEDULED, 10));
}

/* --- adds and deletes that were refused ----------------------------------- */

TEST(a_duplicate_is_not_added_when_a_replica_takes_over)
{
    struct host *host, *other;

    follow();
    host = host_open("w1");
    other = host_open("w2");
    cut_off();
    add(other, "a", 0);
    host_add(host, "a", 0);
    AWAIT(host->existing == 1);
    host_close(other);
    take_over(host);
    EXPECT_STR("", ran(host));
}

TEST(jobs_that_a_full_topic_refused_are_not_added_when_a_replica_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    cut_off();
    EXPECT_TRUE(redis_int(proc, "HSET weir:{t}:meta kind delay max_pending 1 "
                                "added 1") >= 0);
    host_add(host, "a", 0);
    host_add(host, "b", 0);
    AWAIT(host->failed == 2);
    EXPECT_INT(WEIR_EFULL, host->last_code);
    take_over(host);
    EXPECT_STR("", ran(host));
}

static void add_under(struct host *host, const char *id, const char *key)
{
    struct weir__record record = {.unique = weir__slice_str(key)};
    const struct weir__new_job job = {
        .id = weir__slice_str(id),
        .record = &record,
        .rule = {WEIR__UNTIL_DONE, WEIR__OPTION_NONE, WEIR__KEY_REJECT}};

    EXPECT_INT(WEIR_OK,
               host->store->ops->add(host->topic, &job, host_added, host));
}

/* Two packs, whose jobs are due apart. */
TEST(of_packs_only_jobs_that_were_taken_are_added_when_a_replica_takes_over)
{
    struct host *host, *other;

    follow();
    host = host_open("w1");
    other = host_open("w2");
    cut_off();
    add(other, "b", 0);
    add(other, "d", 3600000);
    host_close(other);
    for (const char *id = "abc"; *id != '\0'; id++)
        host_add(host, (const char[]){*id, '\0'}, 0);
    for (const char *id = "de"; *id != '\0'; id++)
        host_add(host, (const char[]){*id, '\0'}, 3600000);
    AWAIT(host->added == 3 && host->existing == 2);
    take_over(host);
    EXPECT_STR("a c ", ran(host));
    EXPECT_INT(1, host_list(host, WEIR_JOB_SCHEDULED, 10));
    EXPECT_TRUE(strstr(world_log, "may be lost") == NULL);
}

TEST(jobs_without_ids_that_had_no_room_are_not_added_when_a_replica_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    cut_off();
    EXPECT_TRUE(redis_int(proc, "HSET weir:{t}:meta kind delay max_pending 3 "
                                "added 1") >= 0);
    for (int i = 0; i < 4; i++)
        host_add(host, NULL, 0);
    AWAIT(host->added == 2 && host->failed == 2);
    take_over(host);
    EXPECT_INT(2, host_claim(host, 10, 60000));
}

TEST(of_jobs_with_unique_keys_those_taken_are_added_when_a_replica_takes_over)
{
    struct host *host, *other;

    follow();
    host = host_open("w1");
    other = host_open("w2");
    cut_off();
    add_under(other, "x", "k");
    AWAIT(other->added == 1);
    host_close(other);
    add_under(host, "a", "k");
    add_under(host, "b", "l");
    add_under(host, "c", "l");
    AWAIT(host->added == 1 && host->existing == 2);
    take_over(host);
    EXPECT_STR("b ", ran(host));
    EXPECT_TRUE(strstr(world_log, "may be lost") == NULL);
}

TEST(a_job_whose_unique_key_was_held_is_not_added_when_a_replica_takes_over)
{
    struct host *host, *other;

    follow();
    host = host_open("w1");
    other = host_open("w2");
    cut_off();
    add_under(other, "a", "k");
    AWAIT(other->added == 1);
    add_under(host, "b", "k");
    AWAIT(host->existing == 1);
    host_close(other);
    take_over(host);
    EXPECT_STR("", ran(host));
}

TEST(a_delete_that_found_no_job_finds_none_when_a_replica_takes_over)
{
    struct host *host, *other;

    follow();
    host = host_open("w1");
    other = host_open("w2");
    host_add(host, NULL, 0);
    AWAIT(host->added == 1);
    cut_off();
    EXPECT_INT(1, host_claim(other, 1, 60000));
    host_settle_all(other, WEIR__OUTCOME_DONE);
    host_await_settled(other);
    EXPECT_INT(WEIR_ENOTFOUND, host_remove(host, host->last_id));
    host_close(other);
    take_over(host);
    EXPECT_INT(1, host_claim(host, 1, 60000));
}

TEST(a_verdict_that_was_refused_does_not_count_when_a_replica_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add(host, "a", 0);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    cut_off();
    EXPECT_INT(1, redis_int(proc, "DEL weir:{t}:run"));
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(1, host->refused);
    take_over(host);
    EXPECT_INT(0, host_claim(host, 1, 60000));
    EXPECT_INT(1, redis_int(proc, "EXISTS weir:{t}:run"));
}

/* --- pause --------------------------------------------------------------- */

TEST(a_pause_holds_where_the_replica_heard_of_it_and_not_where_it_did_not)
{
    struct host *host;

    follow();
    host = host_open("w1");
    EXPECT_INT(WEIR_OK, host_pause(host, true));
    cut_off();
    add(host, "a", 0);
    EXPECT_INT(WEIR_OK, host_pause(host, false));
    take_over(host);
    EXPECT_STR("", ran(host));
    EXPECT_TRUE(host->claimed.is_paused);
    EXPECT_INT(WEIR_OK, host_pause(host, false));
    EXPECT_STR("a ", ran(host));
}

/* --- the topic is another one -------------------------------------------- */

TEST(jobs_that_a_full_topic_does_not_take_again_are_a_warning)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add(host, "a", 0);
    cut_off();
    add(host, "b", 0);
    add(host, "c", 0);
    EXPECT_TRUE(redis_int(replica, "HSET weir:{t}:meta max_pending 2") >= 0);
    take_over(host);
    EXPECT_STR("a b ", ran(host));
    EXPECT_CONTAINS(
        "1 calls that had been acknowledged were not replayed and may be lost: "
        "the topic is full or",
        world_log);
}

/* As they were the first time. */
TEST(jobs_that_were_duplicates_are_no_warning)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add(host, "a", 0);
    host_add(host, "a", 0);
    host_add(host, "b", 0);
    AWAIT(host->added + host->existing == 3);
    cut_off();
    host_add(host, "a", 0);
    host_add(host, "c", 0);
    AWAIT(host->added + host->existing == 5);
    take_over(host);
    EXPECT_STR("a b c ", ran(host));
    EXPECT_CONTAINS("replayed 3 calls, 1 had been lost", world_log);
    EXPECT_TRUE(strstr(world_log, "may be lost") == NULL);
}

TEST(jobs_whose_ids_somebody_took_meanwhile_are_a_warning)
{
    struct host *host;

    follow();
    host = host_open("w1");
    add(host, "a", 3600000);
    add(host, "c", 3600000);
    cut_off();
    EXPECT_INT(WEIR_OK, host_remove(host, "a"));
    add(host, "b", 0);
    EXPECT_INT(1, redis_int(replica, "EVAL %s 1 weir:{t}:ids",
                            "local name = redis.call('HGET', KEYS[1], 'c') "
                            "return redis.call('HSET', KEYS[1], 'b', name)"));
    take_over(host);
    EXPECT_STR("", ran(host));
    EXPECT_CONTAINS("1 calls that had been acknowledged were not", world_log);
}

TEST(jobs_that_a_topic_of_another_kind_does_not_take_again_are_a_warning)
{
    struct host *host;

    follow();
    host = host_open("w1");
    cut_off();
    add(host, "a", 0);
    EXPECT_STR("OK", redis_text(replica, "FLUSHALL"));
    EXPECT_INT(1, redis_int(replica, "HSET weir:{t}:meta kind bounded"));
    take_over(host);
    EXPECT_INT(0, host_claim(host, 1, 60000));
    EXPECT_CONTAINS("1 calls that had been acknowledged were not replayed",
                    world_log);
}

/* --- the outbox ---------------------------------------------------------- */

static void follow_to(struct host *host, const char *topic)
{
    const struct weir_follow follow = {0};
    struct weir__run *run = host_take(host);

    EXPECT_INT(WEIR_OK, weir__follow_add(&run->follows, weir__slice_str(topic),
                                         &follow, (struct weir_slice){0}));
    host_settle(host, run, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

/* `keeps`: the other topic is full until somebody else empties it. */
static void claim_one(struct host *host, bool keeps)
{
    if (keeps)
        (void)redis_text(proc, "HSET weir:{one}:meta kind delay max_pending 1 "
                               "added 1");
    add(host, "a", 0);
    EXPECT_INT(1, host_claim(host, 1, 60000));
}

static void await_one(void)
{
    AWAIT(world_count("one", "added") > 0);
    AWAIT(redis_int(proc, "EXISTS weir:{t}:relay") == 0);
    EXPECT_INT(1, world_count("one", "added"));
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{one}:wait"));
}

TEST(a_job_that_the_outbox_had_sent_is_there_once_when_a_replica_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    claim_one(host, false);
    cut_off();
    follow_to(host, "one");
    AWAIT(world_count("one", "added") == 1);
    AWAIT(redis_int(proc, "EXISTS weir:{t}:relay") == 0);
    take_over(host);
    AWAIT(redis_int(proc, "EXISTS weir:{t}:relay") == 1);
    EXPECT_INT(0, world_count("one", "added"));
    host->topic->place->server->ahead_ms += 10000;         /* it is old now, */
    weir__delay_topic_of(host->topic)->outbox.look_ns = 0; /* look */
    EXPECT_INT(0, host_claim(host, 0, 60000));
    await_one();
}

TEST(a_job_that_lay_in_the_outbox_is_sent_by_the_replica_that_takes_over)
{
    struct host *host;

    follow();
    host = host_open("w1");
    claim_one(host, true);
    cut_off();
    follow_to(host, "one");
    EXPECT_INT(1, redis_int(proc, "HLEN weir:{t}:relay"));
    EXPECT_INT(2, redis_int(replica, "HDEL weir:{one}:meta max_pending added"));
    take_over(host);
    await_one();
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "core/text.h"
#include "tests/redis/scripts/lane_fixture.h"

/* How packs of several jobs get into a lane: added, sent on, retried together,
 * requeued. */

static void pass_a_ms(void)
{
    for (long long from = lane_now_ms(); lane_now_ms() == from;)
        continue;
}

static const char *id_of(int job)
{
    static char id[16];

    (void)snprintf(id, sizeof(id), "j%d", job);
    return id;
}

static bool exists(const char *key)
{
    return redis_int(script_proc, "EXISTS weir:{t}:%s", key) == 1;
}

static void expect_stats(int ready, int waiting, int running)
{
    pass_a_ms();
    EXPECT_INT(ready, script_stat("ready"));
    EXPECT_INT(waiting, script_stat("waiting"));
    EXPECT_INT(running, script_stat("running"));
}

static void settle_all(const int *jobs, size_t count, const char *verdict)
{
    for (size_t i = 0; i < count; i++)
        EXPECT_STR("1", lane_settle(jobs[i], verdict));
}

static void expect_nothing_stays(void)
{
    expect_stats(0, 0, 0);
    EXPECT_TRUE(!exists("of") && !exists("wait") && !exists("run"));
    EXPECT_STR("1", lane_drop());
    EXPECT_STR("", script_text("KEYS *"));
}

/* --- adds ----------------------------------------------------------------- */

TEST(ids_of_a_pack_that_exist_are_left_out_and_the_rest_is_in_the_lane)
{
    EXPECT_STR("1", lane_add(2, "l2r0 other"));
    pass_a_ms();
    EXPECT_STR("3 0 1", lane_add_pack(1, 4, "l2r0 k"));
    expect_stats(4, 4, 0);
    EXPECT_STR("2 1 3 4", lane_claim("9", "|||9|"));
    expect_stats(0, 0, 4);
    settle_all((const int[]){4, 2, 1, 3}, 4, "done");
    expect_nothing_stays();
}

TEST(a_pack_of_which_all_ids_exist_enters_no_lane)
{
    EXPECT_STR("4", lane_add_pack(10, 4, "l2r0 k"));
    EXPECT_STR("0 0 0 0 1 0 2", lane_add_pack(11, 3, "l0r0 x"));
    EXPECT_TRUE(!exists("lane:0x") && !exists("p:000000000011"));
    EXPECT_STR("10 11 12 13", lane_claim("9", ""));
}

TEST(as_many_of_a_pack_as_may_wait_enter_its_lane)
{
    EXPECT_STR("1", lane_add(9, "r0"));
    pass_a_ms();
    (void)script_text("HSET weir:{t}:meta max_pending 4");
    EXPECT_STR("3 0 259 0 260", lane_add_pack(1, 5, "l2r0 k"));
    expect_stats(4, 4, 0);
    EXPECT_STR("0 0 256 0 257", lane_add_pack(11, 2, "l2r0 k"));
    EXPECT_STR("9 1 2 3", lane_claim("9", ""));
    EXPECT_STR("4", lane_add_pack(21, 4, "l2r0 k"));
    EXPECT_STR("21 22 23 24", lane_claim("9", ""));
    settle_all((const int[]){9, 3, 2, 1, 21, 22, 23, 24}, 8, "done");
    expect_nothing_stays();
}

/* A pack that an outbox sends on, without the slots in `out`. */
static const char *send_on(const char *when, const char *out, size_t count)
{
    static char number[24];

    (void)snprintf(number, sizeof(number), "%lld", script_number++);
    script_begin(&weir__script_delay_add, "wait ids meta idle seen");
    script_pack_key('a');
    script_arg("t");
    script_arg("delay");
    script_arg("!s");
    script_arg(number);
    script_arg(script_total);
    script_arg(script_header);
    script_arg(when);
    script_arg_bytes(out, count);
    return script_call();
}

TEST(what_an_outbox_sends_enters_its_lane_without_what_it_leaves_out)
{
    script_stage('a', "j1 j2 j3 j4 j5 j6");
    EXPECT_STR("4", send_on("l1a5 k", "\1\4", 2));
    EXPECT_INT(3, redis_int(script_proc, "ZCARD weir:{t}:lane:1k"));
    expect_stats(4, 4, 0);
    EXPECT_STR("a0000+0 a0203+0 a0505+0", script_claim("9", "9000"));
    script_settle_begin();
    script_settle_node("a0203", NULL, 0);
    EXPECT_STR("2", script_settle('a', 0, "9"));
    expect_stats(0, 0, 2);
}

TEST(what_an_outbox_sends_into_a_lane_twice_is_there_once)
{
    static const char again[] = "local p = 'weir:{t}:p:' "
                                "return redis.call('COPY', p .. ARGV[1], "
                                "p .. ARGV[2])";

    script_stage('a', "j1 j2 j3");
    EXPECT_INT(1, redis_int(script_proc, "EVAL %s 0 aaaaaaaaaaaa copy", again));
    EXPECT_STR("2", send_on("l2r0 k", "\1", 1));
    script_number--;
    EXPECT_STR("0", send_on("l2r0 k", "\1", 1));
    EXPECT_STR("a0000+0 a0202+0", script_claim("9", "9000"));
}

/* --- what is retried together --------------------------------------------- */

enum { FIRST_PACK_KEY = 11, JOBS_MOST = 8 };
static const char retried[] = "zzzzzzzzzzzz"; /* the name of their new pack */

/* Ids of all slots of the node that the job was claimed in. */
static void put_ids(struct weir__buf *buf, int job)
{
    const struct lane_held *held = &lane_held[job];
    const char *at = held->node + 12;
    int lo = (at[0] - '0') * 16 + at[1] - '0';
    int hi = (at[2] - '0') * 16 + at[3] - '0';

    weir__pack_array(buf, (size_t)(hi - lo + 1));
    for (int slot = lo; slot <= hi; slot++) {
        const char *id = id_of(job - (int)held->slot + slot);

        weir__pack_str(buf, id, strlen(id));
    }
}

/* The new pack, whose records say that its jobs were added at this time.
 * Returns the length of its header. */
static size_t stage_retried(const int *jobs, size_t count, int64_t added_ms)
{
    struct weir__record record = {.added_ms = added_ms};
    struct weir__pack_job packed[JOBS_MOST];
    struct weir__buf bytes = {0}, pack = {0};
    char ids[JOBS_MOST][16];
    size_t header_len;
    redisContext *server = redisConnectUnix(redis_socket(script_proc));

    EXPECT_TRUE(count <= JOBS_MOST);
    record.counters.attempt = 1;
    weir__record_write(&bytes, &record);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%s", id_of(jobs[i]));
        packed[i] = (struct weir__pack_job){.id = weir__slice_str(ids[i]),
                                            .record = weir__buf_slice(&bytes)};
    }
    weir__pack_write(&pack, packed, count, true);
    freeReplyObject(redisCommand(server, "SET weir:{t}:p:%s %b PX 60000",
                                 retried, pack.ptr, pack.len));
    redisFree(server);
    header_len = weir__pack_measure(packed, count, true).header_len;
    weir__buf_fini(&pack);
    weir__buf_fini(&bytes);
    return header_len;
}

static void put_moves(struct weir__buf *moves, size_t count, size_t header_len,
                      const int *jobs, const char *when)
{
    weir__pack_array(moves, 7);
    weir__pack_uint(moves, FIRST_PACK_KEY + count);
    weir__pack_uint(moves, count);
    weir__pack_uint(moves, header_len);
    weir__pack_str(moves, when, strlen(when));
    weir__pack_uint(moves, 1);
    weir__pack_array(moves, count);
    for (size_t i = 0; i < count; i++)
        weir__pack_uint(moves, i * 256 + lane_held[jobs[i]].slot);
    weir__pack_str(moves, "", 0);
}

static const char *retry_together(const int *jobs, size_t count,
                                  const char *when, int64_t added_ms)
{
    struct weir__buf nodes = {0}, moves = {0};
    size_t header_len = stage_retried(jobs, count, added_ms);
    const char *answer;
    char key[16];

    script_begin(&weir__script_delay_settle,
                 "run lease ids meta wait dead rec idle held due");
    weir__pack_array(&nodes, 5 * count);
    for (size_t i = 0; i < count; i++) {
        char slot = (char)lane_held[jobs[i]].slot;

        (void)snprintf(key, sizeof(key), "p:%.12s", lane_held[jobs[i]].node);
        script_key(key);
        weir__pack_uint(&nodes, FIRST_PACK_KEY + i);
        weir__pack_str(&nodes, lane_held[jobs[i]].node, 16);
        weir__pack_uint(&nodes, (uint64_t)lane_held[jobs[i]].token);
        put_ids(&nodes, jobs[i]);
        weir__pack_str(&nodes, &slot, 1);
    }
    (void)snprintf(key, sizeof(key), "p:%s", retried);
    script_key(key);
    script_key("absent");
    put_moves(&moves, count, header_len, jobs, when);
    script_arg("t");
    script_arg_bytes(nodes.ptr, nodes.len);
    script_arg("");
    script_arg("");
    script_arg_bytes(moves.ptr, moves.len);
    script_arg("");
    script_arg("9");
    script_arg("4");
    answer = script_call();
    weir__buf_fini(&nodes);
    weir__buf_fini(&moves);
    return answer;
}

TEST(jobs_that_are_retried_together_wait_in_one_node_of_their_lane)
{
    EXPECT_STR("6", lane_add_pack(1, 6, "l2r0 k"));
    pass_a_ms();
    EXPECT_STR("1 2 3 4", lane_claim("9", "|||4|"));
    EXPECT_STR("", lane_claim("9", "|||4|"));
    EXPECT_STR("3", retry_together((const int[]){1, 2, 4}, 3, "l2r0 k", 1000));
    expect_stats(5, 5, 1);
    EXPECT_STR("5 6 1", lane_claim("9", "|||4|"));
    settle_all((const int[]){3, 5, 6}, 3, "done");
    EXPECT_STR("2 4", lane_claim("9", "|||4|"));
    settle_all((const int[]){2, 4, 1}, 3, "done");
    expect_nothing_stays();
}

TEST(jobs_of_two_packs_that_are_retried_together_keep_their_lane)
{
    EXPECT_STR("2", lane_add_pack(1, 2, "l2r0 k"));
    EXPECT_STR("2", lane_add_pack(11, 2, "l2r0 k"));
    pass_a_ms();
    EXPECT_STR("1 2 11 12", lane_claim("9", "|||4|"));
    EXPECT_STR("2", retry_together((const int[]){2, 11}, 2, "l0r0 k", 1000));
    EXPECT_STR("2 11", lane_claim("9", "|||4|"));
    settle_all((const int[]){1, 12, 11}, 3, "done");
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:of"));
    settle_all((const int[]){2}, 1, "done");
    expect_nothing_stays();
}

/* Three jobs that were retried into one pack of lane 2k; the second one holds
 * the unique key "u". */
static void retry_holder(const char *when)
{
    int64_t added_ms = weir__seq_ms("000000000002");

    EXPECT_STR("1", lane_add(1, "l2r0 k"));
    EXPECT_STR("1", lane_add_under(2, "l2r0 k", "u", "replace until-start"));
    EXPECT_STR("1", lane_add(3, "l2r0 k"));
    pass_a_ms();
    (void)lane_claim("9", "|||9|");
    EXPECT_INT(3, lane_claimed_count);
    EXPECT_STR("3", retry_together((const int[]){1, 2, 3}, 3, when, added_ms));
    pass_a_ms();
}

TEST(a_job_that_shares_its_pack_in_a_lane_is_replaced_there)
{
    retry_holder("l2r0 k");
    expect_stats(3, 3, 0);
    EXPECT_STR("0 0 512 j2",
               lane_add_under(4, "l2r0 k", "u", "reject until-done"));
    EXPECT_STR("1", lane_add_under(4, "l2r0 k", "u", "replace until-start"));
    expect_stats(3, 3, 0);
    EXPECT_INT(2, redis_int(script_proc, "HLEN weir:{t}:of"));
    EXPECT_STR("1 3 4", lane_claim("9", "|||9|"));
    settle_all((const int[]){3, 1}, 2, "done");
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:of"));
    settle_all((const int[]){4}, 1, "done");
    expect_nothing_stays();
}

TEST(a_job_that_is_replaced_in_a_pack_of_a_lane_may_be_due_later)
{
    retry_holder("l2r3600000 k");
    expect_stats(0, 3, 0);
    EXPECT_STR("1", lane_add_under(4, "l0r0 x", "u", "replace until-start"));
    expect_stats(1, 3, 0);
    EXPECT_STR("4", lane_claim("9", "|||9|"));
    EXPECT_STR("scheduled", lane_slot("delete", 1, ""));
    EXPECT_STR("scheduled", lane_slot("delete", 3, ""));
    settle_all((const int[]){4}, 1, "done");
    EXPECT_STR("", lane_claim("9", "|||9|"));
    expect_nothing_stays();
}

TEST(the_last_job_of_a_pack_of_a_lane_is_replaced)
{
    retry_holder("l2r0 k");
    EXPECT_STR("ready", lane_slot("delete", 1, ""));
    EXPECT_STR("ready", lane_slot("delete", 3, ""));
    EXPECT_STR("1", lane_add_under(4, "l2r0 k", "u", "replace until-start"));
    EXPECT_INT(1, redis_int(script_proc, "HLEN weir:{t}:of"));
    expect_stats(1, 1, 0);
    EXPECT_STR("4", lane_claim("9", "|||9|"));
    settle_all((const int[]){4}, 1, "done");
    expect_nothing_stays();
}

TEST(a_job_that_runs_beside_others_of_its_pack_is_not_replaced)
{
    retry_holder("l2r0 k");
    EXPECT_STR("1 2", lane_claim("2", "|||9|"));
    EXPECT_STR("1", lane_add_under(4, "l2r0 k", "u", "replace until-start"));
    expect_stats(2, 2, 2);
    EXPECT_STR("3 4", lane_claim("9", "|||9|"));
    settle_all((const int[]){1, 2, 3, 4}, 4, "done");
    expect_nothing_stays();
}

/* --- the dead ------------------------------------------------------------- */

/* Jobs from 1 on, which died, in one pack. */
static const char *requeue(int count, const char *ids, const char *when)
{
    struct weir__buf died = {0};
    const char *answer;

    weir__pack_array(&died, (size_t)count);
    for (int job = 1; job <= count; job++)
        weir__pack_uint(
            &died, (uint64_t)redis_int(script_proc, "EVAL %s 0 j%d",
                                       "return math.floor(redis.call('ZSCORE', "
                                       "'weir:{t}:dead', ARGV[1]) or 0)",
                                       job));
    script_stage('r', ids);
    script_begin(&weir__script_delay_requeue, "wait ids meta dead rec idle");
    script_pack_key('r');
    script_arg("t");
    script_arg(script_total);
    script_arg(script_header);
    script_arg_bytes(died.ptr, died.len);
    script_arg(when);
    answer = script_call();
    weir__buf_fini(&died);
    return answer;
}

TEST(several_dead_jobs_are_requeued_into_their_lane)
{
    EXPECT_STR("4", lane_add_pack(1, 4, "l2r0 k"));
    pass_a_ms();
    EXPECT_STR("1 2 3 4", lane_claim("9", "|||4|"));
    settle_all((const int[]){1, 2, 3, 4}, 4, "dead");
    EXPECT_INT(4, script_stat("dead"));
    EXPECT_TRUE(!exists("of") && !exists("on:k"));
    EXPECT_STR("dead", script_slot("delete", "j2", "D", ""));
    EXPECT_STR("3", requeue(4, "j1 j2 j3 j4", "l2r0 k"));
    expect_stats(3, 3, 0);
    EXPECT_STR("1 3", lane_claim("9", "|||2|"));
    settle_all((const int[]){1, 3}, 2, "done");
    EXPECT_STR("4", lane_claim("9", "|||2|"));
    settle_all((const int[]){4}, 1, "done");
    expect_nothing_stays();
}

/* --- ends ----------------------------------------------------------------- */

static long long lanes_left(void)
{
    return redis_int(script_proc, "EVAL %s 0",
                     "return #redis.call('KEYS', 'weir:{t}:lane:*') * 100 + "
                     "redis.call('ZCARD', 'weir:{t}:turns')");
}

TEST(a_lane_goes_with_its_last_job_whatever_takes_that)
{
    static const int purged[] = {3, 4};

    EXPECT_STR("1", lane_add(1, "l2r60000 a"));
    EXPECT_STR("1", lane_add(2, "l2r0 b"));
    EXPECT_STR("1", lane_add(3, "l1r0 c"));
    EXPECT_STR("1", lane_add(4, "l2r60000 d"));
    EXPECT_STR("1",
               lane_add_under(5, "l2r60000 e", "u", "replace until-start"));
    EXPECT_STR("3", lane_add_pack(6, 3, "l2r0 f"));
    EXPECT_INT(606, lanes_left());
    EXPECT_STR("scheduled", lane_slot("delete", 1, ""));
    EXPECT_STR("ready", lane_slot("delete", 2, ""));
    EXPECT_INT(404, lanes_left());
    EXPECT_STR("2", lane_purge(purged, 2));
    EXPECT_INT(202, lanes_left());
    (void)lane_add_under(9, "l2r0 g", "u", "replace until-start");
    EXPECT_INT(202, lanes_left()); /* e went, g came */
    EXPECT_STR("ready", lane_slot("delete", 7, ""));
    (void)lane_slot("reschedule", 6, "r60000");
    EXPECT_INT(202, lanes_left());
    EXPECT_STR("ready", lane_slot("delete", 8, ""));
    EXPECT_STR("scheduled", lane_slot("delete", 6, ""));
    EXPECT_INT(101, lanes_left());
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/pack.h"
#include "tests/chaos/lost/lost.h"

/* Ticks of schedules are left to workers of weir by clients that pull, and need
 * no token of a rate. Nothing is lost here but a claim's way to them. */

enum { LATER_MS = 6000, PULLS = 30 };

static void set_schedule(struct lost_run *run, unsigned number)
{
    struct caller *caller = &run->caller;
    struct weir__buf record = {0};
    char name[16], zeros[72] = "";

    for (size_t i = 0; i < 5; i++)
        (void)snprintf(zeros + 14 * i, sizeof(zeros) - 14 * i, "%013d ", 0);
    weir__buf_append(&record, "\x98\x01\0\0\0\0\0\xa0", 8);
    weir__buf_append(&record, zeros, 70);
    weir__buf_append(&record, "60000", 5);
    (void)snprintf(name, sizeof(name), "s%u", number);
    lost_pass(run, 1); /* names of packs are of their ms */
    call_script(caller, SCRIPT_CRON, 9, 6);
    call_keys(caller, "wait run ids meta idle due cron p: absent");
    call_str(caller, "t");
    call_str(caller, "set");
    call_str(caller, name);
    call_str(caller, "");
    call_int(caller, 8);
    call_bytes(caller, &record);
    call_queue(caller);
    freeReplyObject(lost_array(run, 1));
    weir__buf_fini(&record);
}

static void push(struct lost_run *run)
{
    struct caller *caller = &run->caller;

    lost_pass(run, 1);
    call_script(caller, SCRIPT_PUSH, 6, 4);
    call_keys(caller, "wait ids meta idle options absent");
    call_str(caller, "t");
    call_str(caller, "");
    call_str(caller, "\x01");
    call_str(caller, "r0");
    call_queue(caller);
    freeReplyObject(lost_array(run, 2));
    run->added++;
}

/* Returns how many jobs came; a tick is a difference. */
static long long pull(struct lost_run *run, unsigned room)
{
    struct caller *caller = &run->caller;
    redisReply *reply;
    const redisReply *jobs;
    long long count;

    call_script(caller, SCRIPT_PULL, 13, 4);
    call_keys(caller, "wait run lease ids meta idle held due dead rec options "
                      "started absent");
    call_int(caller, room);
    call_str(caller, "");
    call_str(caller, "0");
    call_str(caller, "0123456789abcdef");
    call_queue(caller);
    reply = lost_array(run, 9);
    jobs = reply->element[8];
    count = (long long)jobs->elements;
    for (size_t i = 0; i < jobs->elements; i++)
        lost_expect(run, "ticks that a client gets", 0,
                    strstr(jobs->element[i]->element[1]->str, "@next") != NULL);
    freeReplyObject(reply);
    return count;
}

static long long stat(struct lost_run *run, const char *name)
{
    redisReply *reply;
    long long number;

    call_script(&run->caller, SCRIPT_STATS, 6, 1);
    call_keys(&run->caller, "wait meta dead relay due lease");
    call_int(&run->caller, 1000);
    call_queue(&run->caller);
    reply = lost_array(run, 2);
    number = lost_stat(reply, name);
    freeReplyObject(reply);
    return number;
}

/* A claim for which no token is left. */
static redisReply *claim(struct lost_run *run, unsigned room)
{
    char bucket[48];

    (void)snprintf(bucket, sizeof(bucket), "%lld000 0 0",
                   (long long)run->now_ms + 1000000000);
    (void)lost_ask(run, "HSET weir:{t}:meta limits 1/w|");
    call_command(&run->caller, "HSET", 3);
    call_keys(&run->caller, "meta");
    call_str(&run->caller, "bucket");
    call_str(&run->caller, bucket);
    call_queue(&run->caller);
    call_claim(&run->caller, room, 1000, "");
    return lost_array(run, 5);
}

/* Parts of an entry of `held`: worker, time and length of the lease, and what
 * used a token. */
static long long parts_held(struct lost_run *run, long long token)
{
    redisReply *reply;
    long long count;

    call_command(&run->caller, "EVAL", 3);
    call_str(&run->caller,
             "return #cmsgpack.unpack(redis.call('HGET', 'weir:{t}:held', "
             "ARGV[1]))");
    call_int(&run->caller, 0);
    call_int(&run->caller, token);
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    count = reply->integer;
    freeReplyObject(reply);
    return count;
}

static void expect_free_ticks(struct lost_run *run, long long ticks)
{
    unsigned room = 1 + lost_pick(run, 30);
    long long due = lost_ask(run, "ZCARD weir:{t}:wait");
    long long wanted = ticks < room ? ticks : room;
    redisReply *reply = claim(run, room);

    lost_expect(run, "ticks without a token", wanted,
                reply->element[3]->integer);
    lost_expect(run, "what waits then", due - wanted,
                lost_ask(run, "ZCARD weir:{t}:wait"));
    lost_expect(run, "what is ready then", due - wanted, stat(run, "ready"));
    lost_expect(run, "what is held", 3,
                parts_held(run, reply->element[1]->integer));
    freeReplyObject(reply);
    reply = claim(run, 0);
    lost_expect(run, "a claim without room", 0, reply->element[3]->integer);
    freeReplyObject(reply);
}

void lost_ticks(struct lost_run *run)
{
    unsigned ticks = 1 + lost_pick(run, 60), jobs = 1 + lost_pick(run, 20);
    bool is_served = lost_pick(run, 2) == 0; /* by a worker of weir */
    long long got = 0;

    run->part = "ticks";
    run->key = "nothing";
    (void)lost_ask(run, "HSET weir:{t}:options lease 1h"); /* of clients */
    for (unsigned i = 0; i < ticks; i++)
        set_schedule(run, i);
    lost_pass(run, 2);
    for (unsigned i = 0; i < jobs; i++)
        push(run);
    lost_pass(run, 2);
    if (is_served)
        (void)lost_ask(run, "HSET weir:{t}:meta mended %lld",
                       (long long)run->now_ms);
    (void)stat(run, "ready");
    for (size_t i = 0; i < PULLS; i++)
        got += pull(run, 1 + lost_pick(run, 10));
    lost_expect(run, "jobs that a client gets", jobs, got);
    lost_expect(run, "ticks that wait", ticks,
                lost_ask(run, "ZCARD weir:{t}:wait"));
    if (is_served) /* or it would come too late to the time of the next one */
        lost_expect(run, "ticks that are due still", ticks,
                    lost_ask(run, "ZCOUNT weir:{t}:wait -inf %lld",
                             (long long)run->now_ms));
    lost_pass(run, LATER_MS);
    push(run);
    lost_pass(run, 2);
    lost_expect(run, "what is ready", ticks + 1, stat(run, "ready"));
    expect_free_ticks(run, ticks);
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/pack.h"
#include "tests/chaos/lost/lost.h"

/* A list: entries are claimed, done or dead; the worker dies with the rest. */

enum { LEASE_MS = 5000, ROUNDS = 40 };

static const char *const keys[] = {"run",  "wait", "lease",
                                   "held", "dead", "absent"};

static redisReply *claim(struct lost_run *run, unsigned room)
{
    struct caller *caller = &run->caller;

    call_script(caller, SCRIPT_LIST_CLAIM, 9, 9);
    call_keys(caller, "meta wait run lease held past auto");
    call_str(caller, "q");
    call_keys(caller, "absent");
    call_str(caller, "list");
    call_int(caller, room);
    call_int(caller, LEASE_MS);
    call_int(caller, 0);
    for (size_t i = 0; i < 5; i++)
        call_str(caller, "");
    call_queue(caller);
    return lost_array(run, 5);
}

static redisReply *stats(struct lost_run *run)
{
    struct caller *caller = &run->caller;

    call_script(caller, SCRIPT_LIST_STATS, 8, 1);
    call_keys(caller, "meta wait run dead auto relay lease");
    call_str(caller, "q");
    call_str(caller, "");
    call_queue(caller);
    return lost_array(run, 2);
}

static long long stat(struct lost_run *run, const char *name)
{
    redisReply *reply = stats(run);
    long long number = lost_stat(reply, name);

    freeReplyObject(reply);
    return number;
}

/* Why it died is what tells a dead entry from one that waits. */
static void write_death(struct weir__buf *list, long long token, const char *id)
{
    struct weir__buf past = {0};

    weir__pack_array(&past, 9);
    for (size_t i = 0; i < 7; i++)
        weir__pack_uint(&past, 1);
    weir__pack_str(&past, "failed", 6);
    weir__pack_str(&past, "", 0);
    weir__pack_array(list, 7);
    weir__pack_uint(list, (uint64_t)token);
    weir__pack_str(list, id, strlen(id));
    weir__pack_str(list, "d", 1);
    weir__pack_uint(list, 0);
    weir__pack_str(list, past.ptr, past.len);
    weir__pack_str(list, "", 0);
    weir__pack_uint(list, 0);
    weir__buf_fini(&past);
}

static void settle(struct lost_run *run, long long token, const char *id,
                   bool dies)
{
    struct caller *caller = &run->caller;
    struct weir__buf list = {0};
    redisReply *reply;

    if (dies) {
        write_death(&list, token, id);
    } else {
        weir__pack_array(&list, 2);
        weir__pack_uint(&list, (uint64_t)token);
        weir__pack_str(&list, id, strlen(id));
    }
    call_script(caller, SCRIPT_LIST_SETTLE, 10, 7);
    call_keys(caller, "meta wait run lease held past dead auto");
    call_str(caller, "q");
    call_keys(caller, "absent");
    call_str(caller, "");
    call_str(caller, "0");
    call_int(caller, 1000);
    if (dies)
        call_str(caller, "");
    else
        call_bytes(caller, &list);
    call_str(caller, "");
    if (dies)
        call_bytes(caller, &list);
    else
        call_str(caller, "");
    call_str(caller, "");
    call_queue(caller);
    reply = lost_array(run, 2);
    lost_expect(run, "a verdict", 1, reply->element[0]->integer);
    freeReplyObject(reply);
    weir__buf_fini(&list);
    run->done += dies ? 0 : 1;
}

/* Claims once. Of what came each is done, dies or stays with its worker, by
 * chance of these percents. Returns how many died. */
static long long work(struct lost_run *run, unsigned done, unsigned dead)
{
    redisReply *reply = claim(run, 1 + lost_pick(run, 20));
    long long deaths = 0;

    for (size_t i = 5; i + 3 < reply->elements; i += 4) {
        unsigned chance = lost_pick(run, 100);
        bool dies = chance >= done && chance < done + dead;

        if (chance < done + dead)
            settle(run, reply->element[1]->integer, reply->element[i]->str,
                   dies);
        deaths += dies;
    }
    freeReplyObject(reply);
    return deaths;
}

void lost_list(struct lost_run *run)
{
    long long deaths = 0, held = 0;
    bool loses_bytes;

    run->part = "a list";
    run->key = keys[run->seed / 3 % (sizeof(keys) / sizeof(keys[0]))];
    loses_bytes = strcmp(run->key, "held") == 0;
    for (unsigned i = 20 + lost_pick(run, 20); i > 0; i--, run->added++)
        (void)lost_ask(run, "RPUSH q %u", i);
    for (size_t i = 0; i < 3; i++)
        deaths += work(run, 30, 30);
    lost_pass(run, LEASE_MS + 1); /* some wait again */
    for (size_t i = 0; i < 3; i++)
        deaths += work(run, 20, 10);
    (void)stat(run, "lost");
    if (loses_bytes)
        held = lost_ask(run, "ZCARD weir:{t}:wait") +
               lost_ask(run, "ZCARD weir:{t}:run");
    (void)lost_ask(run, "DEL weir:{t}:%s", run->key);
    lost_expect(run, "running, or waiting again",
                run->added - run->done - deaths,
                stat(run, "running") + stat(run, "waiting"));
    for (size_t i = 0; i < ROUNDS; i++) {
        deaths += work(run, 100, 0);
        lost_pass(run, LEASE_MS / 4);
    }
    lost_expect(run, "running", 0, stat(run, "running"));
    lost_expect(run, "waiting", 0, stat(run, "waiting"));
    lost_expect(run, "dead", deaths, stat(run, "dead"));
    lost_expect(run, "lost", held, stat(run, "lost"));
    lost_expect(run, "done", run->added - deaths - held, run->done);
}

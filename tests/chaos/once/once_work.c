/* SPDX-License-Identifier: MIT */
#include "tests/chaos/once/once_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "core/random.h"
#include "core/text.h"

enum { FIRST_PACK_KEY = 11, ROOM = 1000 };

/* --- running -------------------------------------------------------------- */

static long long count_due(const struct once_run *run)
{
    long long due = 0;

    for (size_t i = 0; i < run->once.count; i++)
        due += run->once.list[i]->state == WAITS &&
               run->once.list[i]->due_ms <= run->once.now_ms;
    return due;
}

static int slot_at(const char *two)
{
    return (two[0] - '0') * 16 + two[1] - '0';
}

/* The jobs of a node that was claimed; returns how many. */
static long long run_node(struct once_run *run, const char *node,
                          uint64_t token)
{
    struct once_pack *pack = once_pack_named(run, node);
    int lo = slot_at(node + 12), hi = slot_at(node + 14);

    for (int slot = lo; slot <= hi; slot++) {
        struct once_job *job =
            slot < (int)pack->count ? pack->jobs[slot] : NULL;

        if (job == NULL || job->state != WAITS || job->pack != pack ||
            job->due_ms > run->once.now_ms)
            once_differs(run, "a claim", "jobs that are due", node);
        job->state = RUNS;
        job->token = token;
        memcpy(job->node, node, 16);
        run->once.waiting--;
        run->once.started++;
    }
    return hi - lo + 1;
}

void once_op_claim(struct once_run *run)
{
    unsigned room = once_chance(run, 30) ? ROOM : 1 + once_pick(run, 40);
    long long due = count_due(run), got = 0;
    redisReply *reply;

    call_claim(&run->caller, room, ROOM, "w");
    reply = call_reply(&run->caller);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 5)
        once_differs(run, "a claim", "an answer",
                     reply->type == REDIS_REPLY_ERROR ? reply->str : "none");
    for (size_t i = 5; i + 1 < reply->elements; i += 2)
        got += run_node(run, reply->element[i]->str,
                        (uint64_t)reply->element[1]->integer);
    freeReplyObject(reply);
    /* A pack of few need not be taken apart for the rest of the room. */
    if (got > due || got > room ||
        (got < due && got < (long long)room - PACK_JOBS + 1)) {
        char wanted[60], had[40];

        (void)snprintf(wanted, sizeof(wanted), "%lld due, room for %u", due,
                       room);
        (void)snprintf(had, sizeof(had), "%lld", got);
        once_differs(run, "a claim", wanted, had);
    }
}

/* One verdict: done, or moved into `moved`, or dead. */
static void settle(struct once_run *run, const struct once_job *job,
                   struct once_pack *moved, bool dies)
{
    struct caller *caller = &run->caller;
    struct weir__buf nodes = {0}, moves = {0}, ends = {0};

    weir__pack_array(&nodes, 5);
    weir__pack_uint(&nodes, FIRST_PACK_KEY);
    weir__pack_str(&nodes, job->node, 16);
    weir__pack_uint(&nodes, job->token);
    weir__pack_uint(&nodes, job->pack->header_len);
    weir__pack_str(&nodes, (const char[]){(char)job->slot}, 1);
    if (moved != NULL) {
        weir__pack_array(&moves, 7);
        weir__pack_uint(&moves, FIRST_PACK_KEY + 1);
        weir__pack_uint(&moves, 1);
        weir__pack_uint(&moves, moved->header_len);
        weir__pack_str(&moves, "r30", 3);
        weir__pack_uint(&moves, 1);
        weir__pack_array(&moves, 1);
        weir__pack_uint(&moves, job->slot);
        weir__pack_str(&moves, "", 0);
    }
    if (dies) {
        weir__pack_array(&ends, 3);
        weir__pack_uint(&ends, job->slot);
        weir__pack_str(&ends, job->id, strlen(job->id));
        weir__pack_str(&ends, "r", 1);
    }
    call_script(caller, SCRIPT_SETTLE, 12 + (moved != NULL), 8);
    call_keys(caller, "run lease ids meta wait dead rec idle held due");
    call_seq_key(&run->caller, job->pack->seq);
    if (moved != NULL)
        call_seq_key(&run->caller, moved->seq);
    call_keys(caller, "absent");
    call_str(caller, "t");
    call_bytes(caller, &nodes);
    call_str(caller, "");
    call_str(caller, "");
    call_bytes(caller, &moves);
    call_bytes(caller, &ends);
    call_int(caller, 1000000);
    call_str(caller, "0");
    call_queue(caller);
    text_str(&run->wanted, "(1)");
    weir__buf_fini(&nodes);
    weir__buf_fini(&moves);
    weir__buf_fini(&ends);
}

void once_op_finish(struct once_run *run)
{
    unsigned fate = once_pick(run, 100);
    struct once_job *job = once_job_in(run, RUNS);
    struct once_pack *moved = NULL;
    struct once_pack *from;

    if (job == NULL)
        return;
    from = job->pack;
    if (fate < 25) { /* it is retried */
        struct once_job before = *job;

        moved = once_pack_new(run);
        once_put(moved, job);
        job->has_moved = true;
        once_stage(run, moved, true);
        settle(run, &before, moved, false);
        from->jobs[before.slot] = NULL;
        once_enter(&run->once, job, run->once.now_ms + 30);
    } else {
        settle(run, job, NULL, fate < 35);
        if (fate < 35) {
            job->state = DEAD;
            job->died_ms = run->once.now_ms;
        } else {
            once_drop(&run->once, job);
        }
    }
    once_check(run);
}

/* Some dead ones wait again, in one pack. */
void once_op_requeue(struct once_run *run)
{
    struct weir__buf died = {0};
    struct once_pack *pack;
    unsigned most = 1 + once_pick(run, PACK_JOBS);
    struct once_job *jobs[PACK_JOBS] = {once_job_in(run, DEAD)};

    if (jobs[0] == NULL)
        return;
    pack = once_pack_new(run);
    once_put(pack, jobs[0]);
    for (unsigned i = 1; i < most; i++) {
        jobs[i] = once_job_in(run, DEAD);
        for (unsigned other = 0; other < i && jobs[i] != NULL; other++)
            if (jobs[i] == jobs[other])
                jobs[i] = NULL;
        if (jobs[i] == NULL)
            break;
        once_put(pack, jobs[i]);
    }
    once_stage(run, pack, true);
    weir__pack_array(&died, pack->count);
    for (size_t i = 0; i < pack->count; i++)
        weir__pack_uint(&died, (uint64_t)pack->jobs[i]->died_ms);
    call_script(&run->caller, SCRIPT_REQUEUE, 7, 4);
    call_keys(&run->caller, "wait ids meta dead rec idle");
    call_seq_key(&run->caller, pack->seq);
    call_str(&run->caller, "t");
    call_int(&run->caller, pack->count);
    call_int(&run->caller, (int64_t)pack->header_len);
    call_bytes(&run->caller, &died);
    call_queue(&run->caller);
    weir__buf_fini(&died);
    text_format(&run->wanted, "(%u)", pack->count);
    for (size_t i = 0; i < pack->count; i++) {
        pack->jobs[i]->has_moved = true;
        once_enter(&run->once, pack->jobs[i], run->once.now_ms);
    }
    once_check(run);
}

/* Somebody deletes a job, or gives it another time. */
void once_op_slot(struct once_run *run)
{
    static const enum once_state states[] = {WAITS, WAITS, WAITS, RUNS, DEAD};
    struct once_job *job = once_job_in(run, ONCE_PICK(run, states));
    bool deletes = once_chance(run, 50);
    redisReply *reply;
    const char *word;

    if (job == NULL || (!deletes && job->state != WAITS))
        return;
    call_script(&run->caller, SCRIPT_SLOT, 10, 6);
    call_keys(&run->caller, "wait run ids meta");
    call_seq_key(&run->caller, job->pack->seq);
    call_keys(&run->caller, "dead rec idle due absent");
    call_str(&run->caller, deletes ? "delete" : "reschedule");
    call_str(&run->caller, job->id);
    call_str(&run->caller, job->state == DEAD ? "D" : job->pack->seq);
    call_str(&run->caller, "");
    call_str(&run->caller, "t");
    call_str(&run->caller, "r200");
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    word =
        reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->str : reply->str;
    if (strcmp(word, job->state == DEAD               ? "dead"
                     : job->state == RUNS             ? "running"
                     : job->due_ms > run->once.now_ms ? "scheduled"
                                                      : "ready") != 0)
        once_differs(run, "a look", job->id, word);
    freeReplyObject(reply);
    if (deletes)
        once_drop(&run->once, job);
    else
        job->due_ms = run->once.now_ms + 200;
}

void once_op_max_pending(struct once_run *run)
{
    run->once.max_pending =
        once_chance(run, 50) ? 0 : run->once.waiting + once_pick(run, 6) - 2;
    if (run->once.max_pending < 1)
        run->once.max_pending = 0;
    call_command(&run->caller, run->once.max_pending > 0 ? "HSET" : "HDEL",
                 run->once.max_pending > 0 ? 3 : 2);
    call_keys(&run->caller, "meta");
    call_str(&run->caller, "max_pending");
    if (run->once.max_pending > 0)
        call_int(&run->caller, run->once.max_pending);
    call_queue(&run->caller);
    freeReplyObject(call_reply(&run->caller));
}

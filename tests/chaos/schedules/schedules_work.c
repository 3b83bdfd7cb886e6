/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/pack.h"
#include "core/text.h"
#include "tests/chaos/schedules/schedules_run.h"

/* What workers claim and lose, and what people do with single jobs. */

#define MIXED ((int64_t)1 << 45)

enum { ROOM = 1000 };

/* --- claiming ------------------------------------------------------------- */

/* The schedule in a tick's record is the model's, to the byte. */
static void read_tick(struct sched_run *run, const struct weir__pack *pack,
                      unsigned slot, const struct sched_job *tick,
                      struct weir__schedule *ret_plan)
{
    struct weir__record record = {0};
    struct weir__buf wanted = {0};
    struct weir_slice got = weir__pack_record(pack, slot);

    (void)sched_write_record(&tick->plan, &wanted);
    if (!weir__slice_equal(got, weir__buf_slice(&wanted)) ||
        weir__record_read(got, &record) < 0 ||
        weir__schedule_read(record.cron, ret_plan) < 0)
        sched_differs(run, "the record of a tick", tick->id, "another one");
    weir__buf_fini(&wanted);
}

static void hold(struct sched_run *run, const struct sched_held *what,
                 const struct weir__pack *pack, struct weir_slice id)
{
    struct sched_held *held = &run->held[run->held_count++];
    struct sched_job *job;

    if (run->held_count == MOST_HELD)
        abort();
    *held = *what;
    (void)snprintf(held->id, sizeof(held->id), "%.*s", (int)id.len,
                   (const char *)id.ptr);
    job = sched_find(&run->model, held->id);
    if (job == NULL || job->state != WAITS || job->due_ms > run->model.now_ms)
        sched_differs(run, "a claim", "what is due", held->id);
    held->due_ms = job->due_ms;
    held->is_tick = job->is_tick;
    if (job->is_tick)
        read_tick(run, pack, held->slot, job, &held->plan);
    job->state = RUNS;
    job->token = held->token;
}

/* Returns how many are in the node. */
static unsigned hold_node(struct sched_run *run, struct sched_held *held)
{
    struct weir_slice ids[WEIR__SLOTS_MAX];
    char seq[WEIR__SEQ_LEN + 1] = "";
    struct weir__pack pack;
    unsigned lo, hi;
    redisReply *reply;

    memcpy(seq, held->node, WEIR__SEQ_LEN);
    call_command(&run->caller, "GET", 1);
    call_seq_key(&run->caller, seq);
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    if (weir__node_read(weir__slice_str(held->node), &lo, &hi) < 0 ||
        reply->type != REDIS_REPLY_STRING ||
        weir__pack_read(weir__slice_of(reply->str, (size_t)reply->len), &pack) <
            0 ||
        hi >= pack.count)
        sched_differs(run, "a claim", "a node of a pack", held->node);
    weir__pack_ids(&pack, ids);
    held->header_len = pack.header_len;
    for (held->slot = lo; held->slot <= hi; held->slot++)
        hold(run, held, &pack, ids[held->slot]);
    freeReplyObject(reply);
    return hi - lo + 1;
}

static unsigned hold_all(struct sched_run *run, const redisReply *reply)
{
    unsigned count = 0;

    for (size_t i = 5; i + 1 < reply->elements; i += 2) {
        const redisReply *when = reply->element[i + 1];
        struct sched_held held = {.token = (uint64_t)reply->element[1]->integer,
                                  .claimed_ms = run->model.now_ms,
                                  .is_mixed =
                                      when->type == REDIS_REPLY_STRING ||
                                      when->integer >= MIXED * 256};

        (void)snprintf(held.node, sizeof(held.node), "%s",
                       reply->element[i]->str);
        count += hold_node(run, &held);
    }
    return count;
}

void sched_op_claim(struct sched_run *run)
{
    unsigned room = sched_chance(run, 60) ? ROOM : 1 + sched_pick(run, 6);
    unsigned due = 0, got;
    redisReply *reply;
    char wanted[60], had[40];

    for (size_t i = 0; i < run->model.top; i++)
        due += run->model.jobs[i].state == WAITS &&
               run->model.jobs[i].due_ms <= run->model.now_ms;
    call_claim(&run->caller, room, ROOM, "");
    reply = call_reply(&run->caller);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 5)
        sched_differs(run, "a claim", "an answer",
                      reply->type == REDIS_REPLY_ERROR ? reply->str : "none");
    got = hold_all(run, reply);
    freeReplyObject(reply);
    /* Some of what is due may be left for the next one. */
    if (got > due || got > room || (got == 0 && due > 0)) {
        (void)snprintf(wanted, sizeof(wanted), "some of %u, room for %u", due,
                       room);
        (void)snprintf(had, sizeof(had), "%u", got);
        sched_differs(run, "a claim", wanted, had);
    }
}

/* What one claim has left comes back; its worker does not know of that. */
void sched_op_expire(struct sched_run *run)
{
    uint64_t token;

    if (run->held_count == 0)
        return;
    token = run->held[sched_pick(run, (unsigned)run->held_count)].token;
    call_command(&run->caller, "ZADD", 4);
    call_keys(&run->caller, "lease");
    call_str(&run->caller, "XX");
    call_int(&run->caller, 1);
    call_int(&run->caller, (int64_t)token);
    call_queue(&run->caller);
    for (size_t i = 0; i < run->model.top; i++)
        if (run->model.jobs[i].state == RUNS &&
            run->model.jobs[i].token == token)
            run->model.jobs[i].state = WAITS;
    sched_op_claim(run);
}

/* --- single jobs ---------------------------------------------------------- */

static void call_add(struct sched_run *run, const char *id)
{
    struct caller *caller = &run->caller;
    struct weir__buf record = {0}, bytes = {0};
    char seq[WEIR__SEQ_LEN + 1] = "";
    struct weir__pack_job job;

    weir__record_write(&record, &(struct weir__record){.url = {0}});
    job.id = weir__slice_str(id);
    job.record = weir__buf_slice(&record);
    weir__pack_write(&bytes, &job, 1, true);
    weir__seq_next(&run->names, run->model.now_ms, seq);
    call_script(caller, SCRIPT_ADD_ONE, 9, 8);
    call_keys(caller, "wait ids meta idle seen run lease held");
    call_seq_key(caller, seq);
    call_str(caller, "t");
    call_str(caller, "delay");
    call_str(caller, "plain");
    call_int(caller, ++run->adds);
    call_str(caller, "r0");
    call_str(caller, id);
    call_bytes(caller, &bytes);
    call_str(caller, "");
    call_queue(caller);
    weir__buf_fini(&record);
    weir__buf_fini(&bytes);
}

/* Somebody's job: with the id of a tick that is not there, or of a time that a
 * schedule comes to. */
void sched_op_add(struct sched_run *run)
{
    size_t name = sched_pick(run, NAMES);
    const struct sched_schedule *schedule = &run->model.schedules[name];
    struct weir__schedule plan = sched_whats[schedule->what];
    char id[ID_CAP], tick_id[ID_CAP];
    bool is_there, is_full;

    sched_tick_id(name, tick_id);
    plan.from_ms = schedule->from_ms;
    if (schedule->state != 'A' && sched_chance(run, 60))
        memcpy(id, tick_id, sizeof(id));
    else
        (void)weir__occurrence_id(
            weir__tick_name(weir__slice_str(tick_id)),
            weir__schedule_next(&plan, NULL, run->model.now_ms), id);
    is_there = sched_find(&run->model, id) != NULL;
    is_full = run->model.is_full && sched_job_in(run, WAITS) != NULL;
    call_add(run, id);
    if (!is_there && !is_full) {
        (void)sched_enter(&run->model, id, run->model.now_ms);
        run->model.added++;
    }
    text_str(&run->wanted, is_there  ? "(0 0 0)"
                           : is_full ? "(0 0 256)"
                                     : "(1)");
    sched_check(run, "the answer");
}

/* Neither ticks nor their jobs mind. */
void sched_op_full(struct sched_run *run)
{
    run->model.is_full = sched_chance(run, 50);
    call_command(&run->caller, "HSET", 3);
    call_keys(&run->caller, "meta");
    call_str(&run->caller, "max_pending");
    call_str(&run->caller, run->model.is_full ? "1" : "");
    call_queue(&run->caller);
    freeReplyObject(call_reply(&run->caller));
}

/* The first word of the answer, which is "tick" of a tick that has to stay. */
static void call_slot(struct sched_run *run, const struct sched_job *job,
                      const char *verb, const char *wanted)
{
    char place[WEIR__SEQ_LEN + 1];
    redisReply *reply;
    const char *word;

    sched_place(run, job->id, place);
    call_script(&run->caller, SCRIPT_SLOT, 10, 6);
    call_keys(&run->caller, "wait run ids meta");
    call_seq_key(&run->caller, place);
    call_keys(&run->caller, "dead rec idle due absent");
    call_str(&run->caller, verb);
    call_str(&run->caller, job->id);
    call_str(&run->caller, place);
    call_str(&run->caller, "");
    call_str(&run->caller, "t");
    call_str(&run->caller, "r200");
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    word = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0
               ? reply->element[0]->str
               : reply->str;
    if (word == NULL || strcmp(word, wanted) != 0)
        sched_differs(run, job->id, wanted, word == NULL ? "nothing" : word);
    freeReplyObject(reply);
}

static const char *state_of(const struct sched_run *run,
                            const struct sched_job *job)
{
    if (job->state == DEAD)
        return "dead";
    if (job->state == RUNS)
        return "running";
    return job->due_ms > run->model.now_ms ? "scheduled" : "ready";
}

void sched_delete_job(struct sched_run *run, struct sched_job *job)
{
    call_slot(run, job, "delete", state_of(run, job));
    sched_drop(&run->model, job);
}

void sched_op_slot(struct sched_run *run)
{
    static const enum sched_state states[] = {WAITS, RUNS, DEAD, DEAD};
    struct sched_job *job;
    char id[ID_CAP];

    sched_tick_id(sched_pick(run, NAMES), id);
    job = sched_chance(run, 30) ? sched_find(&run->model, id)
                                : sched_job_in(run, states[sched_pick(run, 4)]);
    if (job == NULL)
        return;
    if (job->is_tick) {
        call_slot(run, job,
                  job->state == WAITS && sched_chance(run, 50) ? "reschedule"
                                                               : "delete",
                  "tick");
    } else if (job->state != WAITS || sched_chance(run, 60)) {
        sched_delete_job(run, job);
    } else {
        call_slot(run, job, "reschedule", state_of(run, job));
        job->due_ms = run->model.now_ms + 200;
    }
}

static void rename_cron(struct sched_run *run, const char *keys)
{
    call_command(&run->caller, "RENAME", 2);
    call_keys(&run->caller, keys);
    call_queue(&run->caller);
    freeReplyObject(call_reply(&run->caller));
}

/* Somebody who knows of no schedules deletes a tick. */
void sched_op_lose(struct sched_run *run)
{
    struct sched_schedule *schedule =
        &run->model.schedules[sched_pick(run, NAMES)];

    if (schedule->tick == NULL)
        return;
    rename_cron(run, "cron absent");
    sched_delete_job(run, schedule->tick);
    rename_cron(run, "absent cron");
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/pack.h"
#include "core/text.h"
#include "tests/chaos/schedules/schedules_run.h"

/* Verdicts of a few runs in one call: ticks move on and bring jobs, other jobs
 * are done or die. As the store does it, what moves is in one pack, what is new
 * in another one. */

enum { FIRST_PACK_KEY = 11, OF_MIXED = 65536, SLOW_MS = 30 };

#define MIXED ((int64_t)1 << 45)

struct new_job {
    char id[ID_CAP];
    int64_t due_ms;
    size_t run;
    struct weir__buf record;
};

struct new_pack {
    char seq[WEIR__SEQ_LEN + 1];
    size_t count, header_len;
    struct new_job jobs[WEIR__SLOTS_MAX];
};

enum { MOVES, NEW };

struct settling {
    struct sched_held runs[CALL_RUNS];
    bool dies[CALL_RUNS];
    struct weir__schedule next[CALL_RUNS]; /* of ticks */
    size_t count;
    struct new_pack packs[STAGED];
};

/* --- planning ------------------------------------------------------------- */

/* In the order of due times. */
static struct new_job *put(struct new_pack *pack, int64_t due_ms, size_t run)
{
    size_t at = pack->count++;

    for (; at > 0 && pack->jobs[at - 1].due_ms > due_ms; at--)
        pack->jobs[at] = pack->jobs[at - 1];
    pack->jobs[at] = (struct new_job){.due_ms = due_ms, .run = run};
    return &pack->jobs[at];
}

/* As the tick's worker saw it, perhaps a while ago (core/tick.c). */
static void plan(struct sched_run *run, struct settling *settling, size_t index)
{
    const struct sched_held *held = &settling->runs[index];
    struct weir__schedule *next = &settling->next[index];
    struct weir_slice name = weir__tick_name(weir__slice_str(held->id));
    int64_t now_ms = run->model.now_ms - sched_pick(run, SLOW_MS);
    struct weir__tick_plan planned;
    struct new_job *job;
    const char *fault;

    if (now_ms < held->claimed_ms)
        now_ms = held->claimed_ms;
    weir__schedule_plan(&held->plan, NULL, now_ms, &planned);
    fault = sched_plan_fault(&held->plan, &planned, now_ms);
    if (fault != NULL)
        sched_differs(run, "a plan", held->id, fault);
    *next = held->plan;
    next->last_ms = planned.last_ms;
    next->after_ms = planned.after_ms;
    next->before_ms = planned.before_ms;
    for (size_t i = 0; i < planned.count; i++) {
        job = put(&settling->packs[NEW],
                  weir__schedule_due_ms(next, name, planned.times[i]), index);
        (void)weir__occurrence_id(name, planned.times[i], job->id);
        weir__record_write(&job->record, &(struct weir__record){.url = {0}});
        next->made_ms = planned.times[i];
    }
    job = put(&settling->packs[MOVES], planned.next_ms, index);
    memcpy(job->id, held->id, sizeof(job->id));
    (void)sched_write_record(next, &job->record);
}

/* --- writing -------------------------------------------------------------- */

static void append_le(struct weir__buf *buf, size_t len, int64_t value)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    weir__buf_append(buf, bytes, len);
}

static void write_when(const struct new_pack *pack, struct weir__buf *list)
{
    int64_t first = pack->jobs[0].due_ms;
    struct weir__buf when = {0};
    char text[32];

    if (pack->jobs[pack->count - 1].due_ms == first) {
        (void)snprintf(text, sizeof(text), "a%lld", (long long)first);
        weir__buf_append(&when, text, strlen(text));
    } else {
        weir__buf_append(&when, "t", 1);
        append_le(&when, 6, first);
        for (size_t i = 0; i < pack->count; i++)
            append_le(&when, 4, pack->jobs[i].due_ms - first);
    }
    weir__pack_str(list, when.ptr, when.len);
    weir__buf_fini(&when);
}

static uint64_t source_of(const struct settling *settling, size_t run)
{
    return run * WEIR__SLOTS_MAX + settling->runs[run].slot;
}

static void write_moves(const struct settling *settling, struct weir__buf *list)
{
    static const uint64_t forms[] = {[MOVES] = 0, [NEW] = 2};
    size_t packs = 0;

    for (size_t i = 0; i < STAGED; i++)
        packs += settling->packs[i].count > 0;
    if (packs > 0)
        weir__pack_array(list, 7 * packs);
    for (size_t i = 0; i < packs; i++) { /* new ones come with moves */
        const struct new_pack *pack = &settling->packs[i];

        weir__pack_uint(list, FIRST_PACK_KEY + settling->count + i);
        weir__pack_uint(list, pack->count);
        weir__pack_uint(list, pack->header_len);
        write_when(pack, list);
        weir__pack_uint(list, forms[i]);
        weir__pack_array(list, pack->count);
        for (size_t slot = 0; slot < pack->count; slot++)
            weir__pack_uint(list, source_of(settling, pack->jobs[slot].run));
        weir__pack_str(list, "", 0);
    }
}

static void write_nodes(const struct settling *settling,
                        struct weir__buf *nodes, struct weir__buf *closed)
{
    weir__pack_array(nodes, 5 * settling->count);
    weir__pack_array(closed, settling->count);
    for (size_t i = 0; i < settling->count; i++) {
        const struct sched_held *held = &settling->runs[i];

        weir__pack_uint(nodes,
                        FIRST_PACK_KEY + i + (held->is_mixed ? OF_MIXED : 0));
        weir__pack_str(nodes, held->node, WEIR__NODE_LEN);
        weir__pack_uint(nodes, held->token);
        weir__pack_uint(nodes, held->header_len);
        weir__pack_str(nodes, (const char[]){(char)held->slot}, 1);
        weir__pack_uint(closed, held->token);
    }
}

static void write_ends(const struct settling *settling, struct weir__buf *list)
{
    size_t count = 0;

    for (size_t i = 0; i < settling->count; i++)
        count += settling->dies[i];
    if (count > 0)
        weir__pack_array(list, 3 * count);
    for (size_t i = 0; i < settling->count; i++) {
        const char *id = settling->runs[i].id;

        if (!settling->dies[i])
            continue;
        weir__pack_uint(list, source_of(settling, i));
        weir__pack_str(list, id, strlen(id));
        weir__pack_str(list, "r", 1);
    }
}

/* What was written goes there and not yet to the server. */
static void keep(struct sched_run *run, struct text *ret_bytes)
{
    text_add(ret_bytes, run->caller.bytes.ptr, run->caller.bytes.len);
    weir__buf_reset(&run->caller.bytes);
}

static void write_pack(struct sched_run *run, struct new_pack *pack,
                       struct text *ret_bytes)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX];
    struct weir__buf bytes = {0};

    if (pack->count == 0)
        return;
    for (size_t i = 0; i < pack->count; i++) {
        jobs[i].id = weir__slice_str(pack->jobs[i].id);
        jobs[i].record = weir__buf_slice(&pack->jobs[i].record);
    }
    weir__seq_next(&run->names, run->model.now_ms, pack->seq);
    weir__pack_write(&bytes, jobs, pack->count, true);
    pack->header_len = weir__pack_measure(jobs, pack->count, true).header_len;
    call_stage(&run->caller, pack->seq, &bytes);
    keep(run, ret_bytes);
    weir__buf_fini(&bytes);
    for (size_t i = 0; i < pack->count; i++)
        weir__buf_fini(&pack->jobs[i].record);
}

static void write_node_key(struct sched_run *run, const char *node)
{
    char seq[WEIR__SEQ_LEN + 1] = "";

    memcpy(seq, node, WEIR__SEQ_LEN);
    call_seq_key(&run->caller, seq);
}

/* The keys of the topic, of the runs' packs and of new ones. */
static void write_keys(struct sched_run *run, const struct settling *settling)
{
    size_t packs = 0;

    for (size_t i = 0; i < STAGED; i++)
        packs += settling->packs[i].count > 0;
    call_script(&run->caller, SCRIPT_SETTLE,
                FIRST_PACK_KEY + settling->count + packs, 8);
    call_keys(&run->caller, "run lease ids meta wait dead rec idle held due");
    for (size_t i = 0; i < settling->count; i++)
        write_node_key(run, settling->runs[i].node);
    for (size_t i = 0; i < packs; i++)
        call_seq_key(&run->caller, settling->packs[i].seq);
    call_keys(&run->caller, "absent");
    call_str(&run->caller, "t");
}

static void write_call(struct sched_run *run, struct settling *settling,
                       struct sched_sent *ret_sent)
{
    struct weir__buf nodes = {0}, closed = {0}, moves = {0}, ends = {0};

    for (size_t i = 0; i < STAGED; i++)
        write_pack(run, &settling->packs[i], &ret_sent->staged[i]);
    write_nodes(settling, &nodes, &closed);
    write_moves(settling, &moves);
    write_ends(settling, &ends);
    write_keys(run, settling);
    call_bytes(&run->caller, &nodes);
    call_str(&run->caller, "");
    call_bytes(&run->caller, &closed);
    call_bytes(&run->caller, &moves);
    call_bytes(&run->caller, &ends);
    call_int(&run->caller, 1000000);
    call_str(&run->caller, "0");
    keep(run, &ret_sent->call);
    weir__buf_fini(&nodes);
    weir__buf_fini(&closed);
    weir__buf_fini(&moves);
    weir__buf_fini(&ends);
}

static void send(struct sched_run *run, const struct text *bytes)
{
    if (bytes->len == 0)
        return;
    weir__buf_append(&run->caller.bytes, bytes->ptr, bytes->len);
    call_queue(&run->caller);
}

static void send_all(struct sched_run *run, const struct sched_sent *sent)
{
    for (size_t i = 0; i < STAGED; i++)
        send(run, &sent->staged[i]);
    send(run, &sent->call);
}

/* --- the model's side ----------------------------------------------------- */

static void settle_one(struct sched_run *run, const struct settling *settling,
                       size_t index)
{
    struct sched_job *job = sched_find(&run->model, settling->runs[index].id);

    if (job->is_tick) {
        job->plan = settling->next[index];
        job->state = WAITS;
    } else if (settling->dies[index]) {
        job->state = DEAD;
    } else {
        sched_drop(&run->model, job);
    }
}

static void add_new(struct sched_run *run, const struct new_job *job,
                    long long *duplicates)
{
    if (sched_find(&run->model, job->id) != NULL) {
        ++*duplicates;
        return;
    }
    (void)sched_enter(&run->model, job->id, job->due_ms);
    run->model.added++;
    run->model.made++;
}

/* No time before the last one of a schedule ever has a job again. */
static void check_made(struct sched_run *run, const struct sched_held *held,
                       int64_t made_ms)
{
    int64_t *before = &run->model.schedules[held->id[1] - '0'].made_ms;

    if (made_ms == held->plan.made_ms)
        return;
    if (made_ms <= *before)
        sched_differs(run, "a plan", "times without jobs", held->id);
    *before = made_ms;
}

static void settle_model(struct sched_run *run, const struct settling *settling)
{
    bool counts[CALL_RUNS];
    long long settled = 0, duplicates = 0;
    struct text refused = {0};

    for (size_t i = 0; i < settling->count; i++) {
        counts[i] = sched_is_held(run, &settling->runs[i]);
        settled += counts[i];
        if (!counts[i])
            text_format(&refused, " %zu %u", i, settling->runs[i].slot);
    }
    run->refused += (long long)settling->count - settled;
    for (size_t i = 0; i < settling->count; i++) {
        if (!counts[i])
            continue;
        if (settling->runs[i].is_tick)
            check_made(run, &settling->runs[i], settling->next[i].made_ms);
        settle_one(run, settling, i);
    }
    for (size_t i = 0; i < settling->packs[MOVES].count; i++) {
        const struct new_job *tick = &settling->packs[MOVES].jobs[i];

        if (counts[tick->run])
            sched_find(&run->model, tick->id)->due_ms =
                tick->due_ms > run->model.now_ms ? tick->due_ms
                                                 : run->model.now_ms;
    }
    for (size_t i = 0; i < settling->packs[NEW].count; i++)
        if (counts[settling->packs[NEW].jobs[i].run])
            add_new(run, &settling->packs[NEW].jobs[i], &duplicates);
    run->duplicates += duplicates;
    text_format(&run->wanted, "(%lld%s", settled, text_of(&refused));
    if (duplicates > 0)
        text_format(&run->wanted, " -1 %lld", duplicates);
    text_str(&run->wanted, ")");
    text_free(&refused);
}

/* --- operations ----------------------------------------------------------- */

static void take_runs(struct sched_run *run, struct settling *settling)
{
    size_t most = 1 + sched_pick(run, CALL_RUNS);

    while (settling->count < most && run->held_count > 0) {
        size_t at = sched_pick(run, (unsigned)run->held_count);
        size_t index = settling->count++;

        settling->runs[index] = run->held[at];
        run->held[at] = run->held[--run->held_count];
        if (settling->runs[index].is_tick)
            plan(run, settling, index);
        else
            settling->dies[index] = sched_chance(run, 10);
    }
}

void sched_op_settle(struct sched_run *run)
{
    static struct settling settling; /* large */
    struct sched_sent old = run->before;

    if (run->held_count == 0)
        return;
    settling = (struct settling){0};
    run->before = run->last;
    run->last = old;
    text_clear(&run->last.call);
    text_clear(&run->last.refused);
    for (size_t i = 0; i < STAGED; i++)
        text_clear(&run->last.staged[i]);
    take_runs(run, &settling);
    for (size_t i = 0; i < settling.count; i++)
        text_format(&run->last.refused, " %zu %u", i, settling.runs[i].slot);
    write_call(run, &settling, &run->last);
    if (settling.packs[MOVES].count > 0 && sched_chance(run, 5)) {
        send(run, &run->last.call);
        text_str(&run->wanted, "(-1)");
        sched_check(run, "the answer without packs");
    }
    send_all(run, &run->last);
    settle_model(run, &settling);
    sched_check(run, "the answer");
}

/* The answer was lost: all is refused, and nothing is added. */
void sched_op_again(struct sched_run *run)
{
    const struct sched_sent *sent =
        sched_chance(run, 60) ? &run->last : &run->before;

    if (sent->call.len == 0)
        return;
    run->repeats++;
    send_all(run, sent);
    text_format(&run->wanted, "(0%s)", text_of(&sent->refused));
    sched_check(run, "the answer");
}

/* One that was not started. */
void sched_op_back(struct sched_run *run)
{
    struct weir__buf back = {0};
    struct settling none = {.count = 0};
    struct sched_held held;
    size_t at;

    if (run->held_count == 0)
        return;
    at = sched_pick(run, (unsigned)run->held_count);
    held = run->held[at];
    run->held[at] = run->held[--run->held_count];
    weir__pack_array(&back, 4);
    weir__pack_str(&back, held.node, WEIR__NODE_LEN);
    weir__pack_uint(&back, held.token);
    weir__pack_uint(&back,
                    (uint64_t)(held.due_ms + (held.is_mixed ? MIXED : 0)));
    weir__pack_str(&back, (const char[]){(char)held.slot}, 1);
    write_keys(run, &none);
    call_str(&run->caller, "");
    call_bytes(&run->caller, &back);
    for (int i = 0; i < 3; i++)
        call_str(&run->caller, "");
    call_int(&run->caller, 1000000);
    call_str(&run->caller, "0");
    call_queue(&run->caller);
    weir__buf_fini(&back);
    if (sched_is_held(run, &held))
        sched_find(&run->model, held.id)->state = WAITS;
    text_str(&run->wanted, "(0)");
    sched_check(run, "the answer");
}

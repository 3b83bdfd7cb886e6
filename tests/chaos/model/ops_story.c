/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/run.h"

/* Short stories that chance alone would tell too seldom. */

/* One job with this id, due now. */
static struct pack *add_one(struct run *run, struct id id)
{
    struct add_call call = {.kind = "delay", .count = 1};

    call.packs[0] = model_pack_new(&run->model, 1, true);
    call.packs[0]->form = 'r';
    call.packs[0]->jobs[0].id = id;
    run_fill(run, call.packs[0]);
    run_stage(run, call.packs[0]);
    run_add(run, &call);
    return call.packs[0];
}

static void claim_most(struct run *run, int64_t lease_ms)
{
    struct claim_call call = {.kind = "delay",
                              .room = 1000,
                              .most_nodes = 1000,
                              .lease_ms = lease_ms,
                              .worker = -1};

    run_claim(run, &call);
}

/* A dead job is deleted and added anew, but for one whose id weir made. */
void op_add_dead(struct run *run)
{
    struct slot_call slot = {.verb = DELETE, .slot = BY_INDEX};

    if (run->model.dead_count == 0)
        return;
    slot.id = run->model.dead[pick(run, (unsigned)run->model.dead_count)].id;
    run_slot(run, &slot);
    if (slot.id.pack == 0)
        (void)add_one(run, slot.id); /* nobody holds it yet */
}

static struct job *running_user_job(const struct model *model)
{
    for (size_t i = 0; i < model->live_count; i++)
        if (model->live[i]->state == RUNS && model->live[i]->is_indexed &&
            model->live[i]->id.pack == 0)
            return model->live[i];
    return NULL;
}

static void set_twin(struct settle_call *call, unsigned index,
                     const struct job *job, struct node node, uint64_t token)
{
    struct entry *entry = &call->entry[index];

    *entry = (struct entry){.node = node, .token = token};
    entry->is_whole = node.lo == node.hi;
    entry->slots[job->slot] = true;
    call->move[0].sources[index] = (struct source){index, job->slot};
    call->move[0].pack->jobs[index].id = job->id;
}

/* An id is deleted while its job runs and used again; then old and new job
 * are retried in one pack. */
void op_duplicates(struct run *run)
{
    struct slot_call slot = {.verb = DELETE, .slot = BY_INDEX};
    struct job *old = running_user_job(&run->model), *new;
    struct settle_call *call = run->settle;
    struct node node;
    uint64_t token;

    if (old == NULL || run->model.is_paused)
        return;
    node = (struct node){old->pack->number, old->lo, old->hi};
    token = old->token;
    slot.id = old->id;
    slot.place = old->pack->number;
    run_slot(run, &slot);
    new = &add_one(run, slot.id)->jobs[0];
    claim_most(run, 1000);
    if (new->state != RUNS)
        return;
    call->entries = 2;
    call->moves = 1;
    call->ends = call->closed = 0;
    call->move[0].pack = model_pack_new(&run->model, 2, true);
    call->move[0].pack->form = 'r';
    call->move[0].is_retry = true;
    set_twin(call, 0, old, node, token);
    set_twin(call, 1, new, (struct node){new->pack->number, 0, 0}, new->token);
    run_fill(run, call->move[0].pack);
    run_stage(run, call->move[0].pack);
    run_settle(run, call);
    slot.place = call->move[0].pack->number;
    slot.verb = chance(run, 50) ? DELETE : SHOW;
    run_slot(run, &slot);
}

/* So many single nodes under one lease that a call does not give them all
 * back: it is released, runs out, or is kept. Those of mixed packs are single
 * ones from when they are suspects. */
void op_large_lease(struct run *run)
{
    struct add_call call = {.kind = "delay", .count = 3};
    unsigned kind = pick(run, 3);
    bool are_mixed = chance(run, 50);

    for (size_t i = 0; i < call.count; i++) {
        struct pack *pack = model_pack_new(&run->model, SLOTS, false);

        pack->form = 'p';
        if (are_mixed)
            run_set_rising(run, pack, 500);
        run_fill(run, pack);
        run_stage(run, pack);
        call.packs[i] = pack;
    }
    run_add(run, &call);
    if (are_mixed) {
        run_pass(run, 2000000);
        claim_most(run, 1);
        run_pass(run, 2000);
    }
    claim_most(run, kind == 0 ? 1 : 30000);
    if (run->held_count == 0)
        return;
    if (kind == 0)
        run_pass(run, 2000);
    else if (kind == 1)
        run_release(run, run->held[run->held_count - 1].token);
}

/* The mark comes to lie within a node that was claimed in the same millisecond,
 * and the node comes back. */
void op_back_at_mark(struct run *run)
{
    struct add_call call = {.kind = "delay", .count = 1};
    struct pack *pack = model_pack_new(&run->model, 1 + pick(run, 20), false);

    pack->form = 's';
    for (unsigned slot = 0; slot < pack->count; slot++)
        pack->jobs[slot].ms = 1 + (slot >= pack->count / 2);
    run_fill(run, pack);
    run_stage(run, pack);
    call.packs[0] = pack;
    run_add(run, &call);
    run_pass(run, 2000);
    claim_most(run, 1);
    op_stats(run);
    if (run->held_count == 0)
        return;
    if (chance(run, 50))
        run_release(run, run->held[run->held_count - 1].token);
    run_pass(run, 2000);
    claim_most(run, 30000);
}

/* Packs of which one job each is due: what a claim puts back is bounded. */
void op_many_split(struct run *run)
{
    enum { CALLS = 6, JOBS = 64 };

    for (int i = 0; i < CALLS; i++) {
        struct add_call call = {.kind = "delay", .count = CALL_PACKS};

        for (size_t at = 0; at < call.count; at++) {
            struct pack *pack = model_pack_new(&run->model, JOBS, false);

            pack->form = 's';
            for (unsigned slot = 1; slot < JOBS; slot++)
                pack->jobs[slot].ms = 1000 + slot;
            run_fill(run, pack);
            run_stage(run, pack);
            call.packs[at] = pack;
        }
        run_add(run, &call);
    }
    claim_most(run, 30000);
    claim_most(run, 30000);
    run_pass(run, 1020000);
    claim_most(run, 30000);
}

/* The node claimed last, if it is a single job. */
static bool start_last(struct run *run, int worker)
{
    const struct held *last;
    struct start_call call;

    if (run->held_count == 0)
        return false;
    last = &run->held[run->held_count - 1];
    if (last->node.lo != last->node.hi)
        return false;
    call = (struct start_call){last->node, last->token, worker};
    run_start(run, &call);
    return true;
}

/* Few jobs whose workers die again and again. What comes last ended most often
 * so far, and it is started again. */
void op_many_crashes(struct run *run)
{
    if (run->model.live_count > 150)
        return;
    for (int i = 0; i < MOST_ENDED + 3; i++) {
        claim_most(run, 1);
        (void)start_last(run, 0);
        run_pass(run, 2000);
    }
}

/* A run that a worker started is given back; then another one starts it. */
void op_start_twice(struct run *run)
{
    claim_most(run, 30000);
    if (start_last(run, 0)) {
        run_release(run, run->held[run->held_count - 1].token);
        claim_most(run, 30000);
        (void)start_last(run, 1);
    }
    run_recall(run, 0);
}

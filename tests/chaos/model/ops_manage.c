/* SPDX-License-Identifier: MIT */
#include "adapters/redis/pack.h"
#include "tests/chaos/model/run.h"

/* Managing: dead jobs, purging, pausing. */

static void requeue(struct run *run, const struct requeue_call *call)
{
    struct caller *caller = &run->caller;
    struct weir__buf died = {0};

    weir__pack_array(&died, call->pack->count);
    for (unsigned slot = 0; slot < call->pack->count; slot++)
        weir__pack_uint(&died, (uint64_t)call->died_ms[slot]);
    call_script(caller, SCRIPT_REQUEUE, 7, 4);
    call_keys(caller, "wait ids meta dead rec idle");
    call_pack_key(caller, call->pack->number);
    call_str(caller, "t");
    call_int(caller, call->pack->count);
    call_int(caller, call->pack->header_len);
    call_bytes(caller, &died);
    call_queue(caller);
    weir__buf_fini(&died);
    model_requeue(&run->model, call, &run->wanted);
    run_check(run);
    run_check_woken(run);
}

/* Some of the dead, of which some were not read right: they died again, or are
 * not dead any more. Sometimes the pack never came, or the call is repeated. */
void op_requeue(struct run *run)
{
    struct model *model = &run->model;
    struct requeue_call call;
    unsigned count, first;

    if (model->dead_count == 0)
        return;
    first = pick(run, (unsigned)model->dead_count);
    count = 1 + pick(run, (unsigned)model->dead_count - first);
    if (count > SLOTS)
        count = SLOTS;
    call.pack = model_pack_new(model, count, true);
    call.pack->form = 'r';
    for (unsigned slot = 0; slot < count; slot++) {
        const struct dead *dead = &model->dead[first + slot];

        call.pack->jobs[slot].id = dead->id;
        call.died_ms[slot] = dead->died_ms - (chance(run, 15) ? 1 : 0);
    }
    run_fill(run, call.pack);
    if (chance(run, 95))
        run_stage(run, call.pack);
    requeue(run, &call);
    if (chance(run, 70))
        return;
    run_stage(run, call.pack);
    requeue(run, &call);
}

void op_forget(struct run *run)
{
    const struct model *model = &run->model;
    int64_t latest_ms = INT64_MAX;
    unsigned most = 1 + pick(run, 30);

    if (model->dead_count > 0 && chance(run, 60))
        latest_ms = model->dead[pick(run, (unsigned)model->dead_count)].died_ms;
    call_script(&run->caller, SCRIPT_FORGET, 4, 2);
    call_keys(&run->caller, "ids meta dead rec");
    if (latest_ms == INT64_MAX)
        call_str(&run->caller, "");
    else
        call_int(&run->caller, latest_ms);
    call_int(&run->caller, most);
    call_queue(&run->caller);
    model_forget(&run->model, latest_ms, most, &run->wanted);
    run_check(run);
}

/* Nodes as they were read before, some of them have changed since. */
static size_t pick_nodes(struct run *run, struct node nodes[CALL_NODES])
{
    const struct model *model = &run->model;
    size_t count = 0, most = 1 + pick(run, chance(run, 20) ? 200 : 5);

    for (size_t i = 0; i < model->live_count && count < most; i++) {
        const struct job *job = model->live[i];

        if (job->slot == job->lo && chance(run, 50))
            nodes[count++] = (struct node){job->pack->number, job->lo, job->hi};
    }
    for (size_t i = 0; i < count; i++)
        if (chance(run, 10)) /* it was larger then */
            nodes[i].lo = 0;
    return count;
}

static bool is_listed(const struct node *nodes, size_t count,
                      const struct node *node)
{
    for (size_t i = 0; i < count; i++)
        if (nodes[i].pack == node->pack && nodes[i].lo == node->lo &&
            nodes[i].hi == node->hi)
            return true;
    return false;
}

void op_purge(struct run *run)
{
    struct node read[CALL_NODES], nodes[CALL_NODES];
    size_t got = pick_nodes(run, read), count = 0;
    char name[SEQ_LEN + 5];

    for (size_t i = 0; i < got; i++)
        if (!is_listed(nodes, count, &read[i]))
            nodes[count++] = read[i];
    if (count == 0)
        return;
    call_script(&run->caller, SCRIPT_PURGE, 7 + count, count);
    call_keys(&run->caller, "wait run lease ids meta held due");
    for (size_t i = 0; i < count; i++)
        call_pack_key(&run->caller, nodes[i].pack);
    for (size_t i = 0; i < count; i++) {
        node_text(nodes[i], name);
        call_str(&run->caller, name);
    }
    call_queue(&run->caller);
    model_purge(&run->model, nodes, count, &run->wanted);
    run_check(run);
}

void op_pause(struct run *run)
{
    bool pauses = !run->model.is_paused && chance(run, 25);
    const char *kind =
        chance(run, 10) && run->model.exists ? "stream" : "delay";

    call_script(&run->caller, SCRIPT_PAUSE, 3, 3);
    call_keys(&run->caller, "ids meta idle");
    call_str(&run->caller, "t");
    call_str(&run->caller, kind);
    call_int(&run->caller, pauses);
    call_queue(&run->caller);
    model_pause(&run->model, kind, pauses, &run->wanted);
    run_check(run);
    run_check_woken(run);
}

/* Few jobs more than there are, or as many as one likes. */
void op_max_pending(struct run *run)
{
    long long most = 0;

    if (chance(run, 40))
        most = 1 + pick(run, (unsigned)run->model.live_count + 40);
    call_script(&run->caller, SCRIPT_SET, 6, 3);
    call_keys(&run->caller, "options ids meta wait run dead");
    call_str(&run->caller, "delay");
    call_str(&run->caller, "max_pending");
    if (most > 0)
        call_int(&run->caller, most);
    else
        call_str(&run->caller, "");
    call_queue(&run->caller);
    model_set(&run->model, most, &run->wanted);
    run_check(run);
}

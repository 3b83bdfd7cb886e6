/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "tests/chaos/model/run.h"

/* Adding. */

static int by_number(const void *left, const void *right)
{
    const unsigned *one = left, *two = right;

    return (*one > *two) - (*one < *two);
}

void run_set_rising(struct run *run, struct pack *pack, unsigned span_ms)
{
    static const unsigned delays[] = {0, 0, 10, 700};
    static const unsigned leads[] = {0, 0, 0, 1, 5000};
    unsigned steps[SLOTS];
    int64_t first_ms = PICK(run, delays);

    pack->form = chance(run, 50) ? 's' : 't';
    if (pack->form == 't')
        first_ms += model_now_ms(&run->model) - (chance(run, 30) ? 1500 : 0);
    for (unsigned slot = 0; slot < pack->count; slot++)
        steps[slot] = pick(run, span_ms + 1);
    qsort(steps, pack->count, sizeof(steps[0]), by_number);
    for (unsigned slot = 0; slot < pack->count; slot++)
        pack->jobs[slot].ms = first_ms + steps[slot];
    pack->lead_ms = PICK(run, leads);
    if (pack->lead_ms > pack->jobs[0].ms) /* times are not below 0 */
        pack->lead_ms = 0;
}

/* What a call says about when jobs are due. */
static void set_times(struct run *run, struct pack *pack, char form)
{
    static const int64_t delays[] = {0, 0, 0, 50, 100, 1000, 3000, 60000};
    static const unsigned spans[] = {0, 1, 5, 50, 1000, 4000, 20000};
    bool is_one = form == 'r' || form == 'a';
    bool is_absolute = form == 'a' || form == 'q';
    int64_t ms = 0;

    pack->form = form;
    if (is_rising(pack)) {
        run_set_rising(run, pack, PICK(run, spans));
        return;
    }
    for (unsigned slot = 0; slot < pack->count; slot++) {
        if (slot == 0 || !is_one)
            ms = chance(run, 30) ? pick(run, 3000) : PICK(run, delays);
        if (is_absolute && (slot == 0 || !is_one))
            ms += model_now_ms(&run->model) - (chance(run, 30) ? 1500 : 0);
        pack->jobs[slot].ms = ms;
    }
}

static struct pack *new_pack(struct run *run)
{
    static const unsigned sizes[] = {1, 1, 1, 2, 3, 5, 8, 13, 16, 17, 40};
    static const char forms[] = {'r', 'r', 'a', 'p', 'q', 's', 's', 's', 's'};
    bool is_large = run->model.live_count < 500 && chance(run, 6);
    unsigned count = is_large ? 1 + pick(run, SLOTS) : PICK(run, sizes);
    struct pack *pack = model_pack_new(&run->model, count, chance(run, 65));

    for (unsigned slot = 0; slot < count && pack->has_ids; slot++)
        pack->jobs[slot].id = (struct id){0, pick(run, USERS)};
    set_times(run, pack, PICK(run, forms));
    run_fill(run, pack);
    return pack;
}

static void write_when(struct caller *caller, const struct pack *pack)
{
    struct weir__buf when = {0};

    run_when(pack, &when);
    call_bytes(caller, &when);
    weir__buf_fini(&when);
}

static void write_packs(struct caller *caller, const struct add_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        call_int(caller, call->packs[i]->count);
        call_int(caller, call->packs[i]->header_len);
        write_when(caller, call->packs[i]);
    }
}

static void write_lone(struct run *run, const struct add_call *call)
{
    struct pack *pack = call->packs[0];
    char id[24] = "", server[24] = "";

    write_when(&run->caller, pack);
    if (pack->has_ids)
        id_text(pack->jobs[0].id, id);
    call_str(&run->caller, id);
    run_bring(run, pack);
    if (call->server > 0)
        (void)snprintf(server, sizeof(server), "%016x", call->server);
    call_str(&run->caller, server);
}

static void send_add(struct run *run, const struct add_call *call)
{
    struct caller *caller = &run->caller;
    char call_slot[16], number[32];

    call_script(caller, call->is_lone ? SCRIPT_ADD_ONE : SCRIPT_ADD,
                call->is_lone ? 9 : 6 + call->count,
                call->is_lone ? 8 : 4 + 3 * call->count);
    call_keys(caller, "wait ids meta idle seen");
    if (call->is_lone)
        call_keys(caller, "run lease held");
    for (size_t i = 0; i < call->count; i++)
        call_pack_key(caller, call->packs[i]->number);
    if (!call->is_lone)
        call_keys(caller, "due");
    call_str(caller, "t");
    call_str(caller, call->kind);
    (void)snprintf(call_slot, sizeof(call_slot), "s%u", call->call_slot);
    call_str(caller, call_slot);
    (void)snprintf(number, sizeof(number), "%lld.0", call->number);
    call_str(caller, number);
    if (call->is_lone)
        write_lone(run, call);
    else
        write_packs(caller, call);
    call_queue(caller);
    run->model.handed = 0;
    model_add(&run->model, call, &run->wanted);
    run_check(run);
    run_check_woken(run);
    if (run->model.handed == 0)
        return;
    run_hold(run, (struct node){call->packs[0]->number, 0, 0},
             run->model.handed);
    run->handed_seen++;
}

/* From some call slot, with a number of its own. */
void run_add(struct run *run, struct add_call *call)
{
    struct add_call *last;

    call->call_slot = pick(run, ADD_CALL_SLOTS);
    call->number = ++run->adds_made;
    last = &run->adds[call->call_slot];
    if (chance(run, 20))
        run->late_add = *last;
    *last = *call;
    send_add(run, call);
}

void op_add(struct run *run)
{
    static const size_t counts[] = {1, 1, 1, 2, 3, 8};
    struct add_call call = {.kind = "delay", .count = PICK(run, counts)};

    for (size_t i = 0; i < call.count; i++)
        call.packs[i] = new_pack(run);
    call.is_lone = call.count == 1 && call.packs[0]->count == 1 &&
                   (call.packs[0]->form == 'r' || call.packs[0]->form == 'a') &&
                   chance(run, 60);
    if (call.is_lone && chance(run, 90))
        call.server = run->model.server;
    for (size_t i = 0; i < call.count && !call.is_lone; i++)
        run_stage(run, call.packs[i]);
    run_add(run, &call);
}

/* A job alone, which is due at once, mostly. */
static void add_lone(struct run *run)
{
    struct add_call call = {.kind = "delay", .count = 1, .is_lone = true};
    struct pack *pack = model_pack_new(&run->model, 1, chance(run, 65));

    if (pack->has_ids)
        pack->jobs[0].id = (struct id){0, pick(run, USERS)};
    pack->form = 'r';
    pack->jobs[0].ms = chance(run, 10) ? 5 : 0;
    run_fill(run, pack);
    call.packs[0] = pack;
    if (chance(run, 95))
        call.server = run->model.server;
    run_add(run, &call);
}

/* A worker takes all that is due and offers itself; something may come in
 * between. */
void op_hand_over(struct run *run)
{
    struct claim_call claim = {.kind = "delay",
                               .room = 1000,
                               .most_nodes = 1000,
                               .lease_ms = chance(run, 30) ? 200 : 30000,
                               .server = run->model.server};

    claim.worker = (int)pick(run, WORKERS);
    for (int i = 0; i < 9 && !run->model.workers[claim.worker].is_subscribed;
         i++)
        claim.worker = (int)pick(run, WORKERS);
    if (run->model.grace_ms > 0 && chance(run, 70))
        run_pass(run, 5001000);
    if (claim.server == 0)
        claim.server = 1;
    for (int i = 0; i < 5; i++) {
        claim.offer = ++run->offers;
        run_claim(run, &claim);
    }
    if (chance(run, 30))
        run_pass(run, pick(run, 20000));
    if (chance(run, 10))
        op_pause(run);
    if (chance(run, 10))
        op_subscribe(run);
    if (chance(run, 20))
        op_claim(run);
    add_lone(run);
    if (chance(run, 30))
        op_settle(run);
    for (int i = 0; i < 3 && chance(run, 60); i++) {
        if (chance(run, 20))
            op_pause(run);
        op_finish(run);
        if (chance(run, 20))
            run_pass(run, pick(run, 20000));
        add_lone(run);
    }
}

/* The reply was lost, or a pack never came; whatever happened since. */
void op_add_again(struct run *run)
{
    struct add_call *call = chance(run, 20)
                                ? &run->late_add
                                : &run->adds[pick(run, ADD_CALL_SLOTS)];
    bool is_staged = !call->is_lone && chance(run, 70);

    for (size_t i = 0; i < call->count && is_staged; i++)
        run_stage(run, call->packs[i]);
    if (call->count > 0)
        send_add(run, call);
}

void op_add_other_kind(struct run *run)
{
    struct add_call call = {.kind = "stream", .count = 1};

    if (!run->model.exists)
        return;
    call.packs[0] = new_pack(run);
    run_stage(run, call.packs[0]);
    run_add(run, &call);
    run->adds[call.call_slot].kind = "delay"; /* later it may come right */
}

/* The client went away in between. */
void op_stage_only(struct run *run)
{
    struct pack *pack = new_pack(run);

    run_stage(run, pack);
    text_str(&run->wanted, "OK");
    run_check(run);
}

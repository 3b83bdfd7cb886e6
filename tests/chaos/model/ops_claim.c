/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/chaos/model/run.h"

/* Claiming, and keeping or giving back what was claimed. */

static const char *const workers[WORKERS] = {"w0", "w1", "w2",
                                             "w3", "w4", "w5"};

/* No job is overtaken by one that is less than half as late, but for what is
 * late by less than a second. */
static void check_order(const struct run *run, uint64_t token)
{
    const struct model *model = &run->model;
    int64_t now_ms = model_now_ms(model), taken_ms = now_ms, left_ms = 0;

    for (size_t i = 0; i < model->live_count; i++) {
        const struct job *job = model->live[i];
        int64_t late_ms = now_ms - job->due_ms;

        if (job->state == WAITS && late_ms > left_ms)
            left_ms = late_ms;
        if (job->state == RUNS && job->token == token && late_ms < taken_ms)
            taken_ms = late_ms;
    }
    if (left_ms > 1000 && left_ms > 2 * taken_ms + 1)
        run_differs(run, "the order", "the latest first", "others before");
}

void run_offer(struct run *run, const struct claim_call *call)
{
    char server[24] = "";

    if (call->server > 0)
        (void)snprintf(server, sizeof(server), "%016x", call->server);
    call_int(&run->caller, call->lease_ms);
    call_int(&run->caller, call->offer);
    call_str(&run->caller, workers[call->worker]);
    call_str(&run->caller, server);
}

void run_claim(struct run *run, const struct claim_call *call)
{
    struct node nodes[CALL_NODES];
    struct caller *caller = &run->caller;
    struct text limits = {0};
    char server[48] = "";
    int len = 0;
    uint64_t token;
    size_t count;

    call_script(caller, SCRIPT_CLAIM, 8,
                call->says_limits ? 11 : 7 + (call->offer != 0));
    call_keys(caller, "wait run lease ids meta idle held due");
    call_int(caller, call->room);
    call_int(caller, call->lease_ms);
    call_int(caller, call->most_nodes);
    call_str(caller, call->worker >= 0 ? workers[call->worker] : "");
    call_int(caller,
             call->is_registered + 2 * call->is_busy + 4 * call->is_slow);
    call_str(caller, call->kind);
    if (call->server > 0)
        len = snprintf(server, sizeof(server), "%016x", call->server);
    if (call->floor > 0)
        (void)snprintf(server + len, sizeof(server) - (size_t)len, " %lld",
                       call->floor);
    call_str(caller, server);
    if (call->offer != 0)
        call_int(caller, call->offer);
    else if (call->says_limits)
        call_str(caller, "");
    if (call->says_limits) {
        call_str(caller, "");
        model_limits_text(call->rate, call->parallel, &limits);
        call_str(caller, text_of(&limits));
        text_free(&limits);
        call_int(caller, call->revision);
    }
    call_queue(caller);
    token = model_claim(&run->model, call, &run->wanted, nodes, &count);
    run_check(run);
    run_check_woken(run);
    if (token != 0)
        check_order(run, token);
    for (size_t i = 0; i < count; i++)
        run_hold(run, nodes[i], token);
}

void op_claim(struct run *run)
{
    static const unsigned rooms[] = {0, 1, 1, 2, 3, 7, 30, 30, 200, 1000};
    static const unsigned limits[] = {1000, 1000, 1000, 1000, 1000, 1, 2, 5};
    static const int64_t leases[] = {200, 1000, 3000, 30000};
    struct claim_call call = {.kind = "delay", .worker = -1};

    call.room = chance(run, 40) ? 1 + pick(run, 20) : PICK(run, rooms);
    call.most_nodes = PICK(run, limits);
    call.lease_ms = PICK(run, leases);
    if (chance(run, 80)) {
        call.worker = (int)pick(run, WORKERS);
        call.is_registered = run->model.workers[call.worker].is_idle;
    }
    if (chance(run, 10))
        call.is_registered = !call.is_registered;
    call.is_busy = call.worker >= WORKERS - 2;
    call.is_slow = chance(run, 30);
    if (chance(run, 80))
        call.server = run->model.server;
    if (chance(run, 2)) /* it failed over, or was started again */
        call.server = run->model.server + 1;
    if (run->model.grace_ms > model_now_ms(&run->model) && chance(run, 50))
        call.server = 0;
    if (chance(run, 10))
        call.floor = run->model.count.claimed - pick(run, 100);
    if (chance(run, 2))
        call.floor = run->model.count.claimed + pick(run, 1000);
    if (chance(run, 50))
        call.offer = ++run->offers;
    run_say_limits(run, &call);
    if (chance(run, 2) && run->model.exists)
        call.kind = "stream";
    run_claim(run, &call);
}

void run_start(struct run *run, const struct start_call *call)
{
    char name[SEQ_LEN + 5];

    node_text(call->node, name);
    call_script(&run->caller, SCRIPT_START, 2, 3);
    call_keys(&run->caller, "run started");
    call_str(&run->caller, name);
    call_int(&run->caller, (int64_t)call->token);
    call_str(&run->caller, workers[call->worker]);
    call_queue(&run->caller);
    model_start(&run->model, call, &run->wanted);
    run_check(run);
}

/* Of the nodes claimed lately, perhaps in vain. */
void op_start(struct run *run)
{
    unsigned from = run->held_count > 60 && chance(run, 80)
                        ? (unsigned)run->held_count - 60
                        : 0;
    struct start_call call;

    for (unsigned i = from; i < run->held_count; i++) {
        const struct held *held = &run->held[i];

        if (held->node.lo != held->node.hi || !chance(run, 20))
            continue;
        call = (struct start_call){held->node, held->token,
                                   (int)pick(run, WORKERS)};
        run_start(run, &call);
        if (chance(run, 10))
            run_start(run, &call);
        if (chance(run, 30))
            return;
    }
}

void run_recall(struct run *run, int worker)
{
    call_script(&run->caller, SCRIPT_RECALL, 4, 1);
    call_keys(&run->caller, "wait run started cron");
    call_str(&run->caller, workers[worker]);
    call_queue(&run->caller);
    model_recall(&run->model, worker, &run->wanted);
    run_check(run);
}

void op_recall(struct run *run)
{
    run_recall(run, (int)pick(run, WORKERS));
}

/* As of a worker that renewed it while the clock was an hour ahead. */
static void put_ahead(struct run *run, struct lease *lease)
{
    lease->deadline_ms += 3600000;
    call_command(&run->caller, "ZADD", 4);
    call_keys(&run->caller, "lease");
    call_str(&run->caller, "XX");
    call_int(&run->caller, lease->deadline_ms);
    call_int(&run->caller, (int64_t)lease->token);
    call_queue(&run->caller);
    text_int(&run->wanted, 0);
    run_check(run);
}

void op_renew(struct run *run)
{
    static const int64_t leases[] = {200, 1000, 30000};
    struct model *model = &run->model;
    uint64_t tokens[8];
    size_t count = 1 + pick(run, 8);
    struct renewal renewal = {PICK(run, leases), count == 7};

    for (size_t i = 0; i < count; i++) {
        tokens[i] = 1000000000000 + pick(run, 3);
        if (run->held_count > 0 && chance(run, 30))
            tokens[i] = run->held[pick(run, (unsigned)run->held_count)].token;
        else if (model->lease_count > 0 && chance(run, 90))
            tokens[i] =
                model->leases[pick(run, (unsigned)model->lease_count)].token;
    }
    call_script(&run->caller, SCRIPT_RENEW, 2, 1 + renewal.is_crash + count);
    call_keys(&run->caller, "lease held");
    call_int(&run->caller, renewal.lease_ms);
    if (renewal.is_crash)
        call_str(&run->caller, "!SIGBUS");
    for (size_t i = 0; i < count; i++)
        call_int(&run->caller, (int64_t)tokens[i]);
    call_queue(&run->caller);
    model_renew(model, tokens, count, &renewal, &run->wanted);
    run_check(run);
    if (count == 8 && model->lease_count > 0)
        put_ahead(run, &model->leases[0]);
}

/* Give back what is held under a token: all of it, or some. */
static void give_back(struct run *run, uint64_t token, bool is_all)
{
    static struct settle_call call; /* large */
    size_t slots = 0;

    memset(&call, 0, sizeof(call));
    call.most_dead = 40;
    for (size_t i = 0; i < run->held_count && call.backs < CALL_NODES; i++) {
        struct back *back = &call.back[call.backs];
        unsigned lo = run->held[i].node.lo, hi = run->held[i].node.hi;

        if (run->held[i].token != token || slots + hi - lo >= CALL_SLOTS ||
            (!is_all && chance(run, 30)))
            continue;
        back->node = run->held[i].node;
        back->token = token;
        back->due_ms = model_now_ms(&run->model) - pick(run, 2000);
        back->is_whole = is_all || chance(run, 50);
        for (unsigned slot = lo; slot <= hi; slot++)
            back->slots[slot] = slot == lo || chance(run, 50);
        slots += hi - lo + 1;
        call.backs++;
    }
    if (is_all || chance(run, 70))
        call.close[call.closed++] = token;
    run_settle(run, &call);
}

void run_release(struct run *run, uint64_t token)
{
    give_back(run, token, true);
}

void op_release(struct run *run)
{
    uint64_t token = 999999999999;

    if (run->held_count > 0 && chance(run, 90))
        token = run->held[pick(run, (unsigned)run->held_count)].token;
    give_back(run, token, chance(run, 30));
}

/* --- the end ------------------------------------------------------------ */

/* Settle the oldest nodes held, as done. */
static void settle_held(struct run *run)
{
    struct settle_call *call = run->settle;

    call->moves = call->ends = call->closed = call->entries = 0;
    call->most_dead = 0;
    for (size_t i = 0; i < run->held_count && i < CALL_NODES; i++) {
        struct entry *entry = &call->entry[call->entries++];

        *entry = (struct entry){.node = run->held[i].node,
                                .token = run->held[i].token,
                                .is_whole = true};
        call->close[call->closed++] = entry->token;
    }
    run_settle(run, call);
    run->held_count = 0;
}

void run_drain(struct run *run)
{
    struct claim_call call = {.kind = "delay",
                              .room = 1000,
                              .most_nodes = 1000,
                              .lease_ms = 1000, /* time is the subject */
                              .worker = -1};

    while (run->model.is_paused)
        op_pause(run);
    run_lift_limits(run);
    while (run->model.live_count + run->model.lease_count > 0) {
        run->held_count = 0;
        run->model.now_us += INT64_C(100000000);
        run_set_clock(run);
        run_claim(run, &call);
        if (run->held_count > 0)
            settle_held(run);
    }
    run_walk(run);
}

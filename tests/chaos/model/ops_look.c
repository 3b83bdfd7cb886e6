/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/chaos/model/run.h"

/* Looking: one job, statistics; and what happens around a topic. */

void run_slot(struct run *run, const struct slot_call *call)
{
    struct caller *caller = &run->caller;
    static const char *const verbs[] = {"show", "delete", "reschedule"};
    char id[24], seq[SEQ_LEN + 1], slot[12] = "", when[32];

    id_text(call->id, id);
    seq_text(call->place, seq);
    if (call->slot != BY_INDEX)
        (void)snprintf(slot, sizeof(slot), "%d", call->slot);
    call_script(caller, SCRIPT_SLOT, 9, call->verb == RESCHEDULE ? 6 : 4);
    call_keys(caller, "wait run ids meta");
    if (call->place == 0)
        call_keys(caller, "p:");
    else
        call_pack_key(caller, call->place);
    call_keys(caller, "dead rec idle due");
    call_str(caller, verbs[call->verb]);
    call_str(caller, id);
    call_str(caller, call->place == 0 ? "D" : seq);
    call_str(caller, slot);
    if (call->verb == RESCHEDULE) {
        call_str(caller, "t");
        (void)snprintf(when, sizeof(when), "%c%lld",
                       call->is_absolute ? 'a' : 'r', (long long)call->ms);
        call_str(caller, when);
    }
    call_queue(caller);
    model_slot(&run->model, call, &run->wanted);
    run_check(run);
    run_check_woken(run);
}

static struct id pick_id(struct run *run)
{
    const struct model *model = &run->model;
    unsigned kind = pick(run, 10);

    if (kind < 3 && model->live_count > 0)
        return job_id(model->live[pick(run, (unsigned)model->live_count)]);
    if (kind < 4 && model->dead_count > 0)
        return model->dead[pick(run, (unsigned)model->dead_count)].id;
    if (kind < 6 && model->pack_count > 0)
        return (struct id){1 + pick(run, (unsigned)model->pack_count),
                           pick(run, chance(run, 80) ? 8 : SLOTS)};
    return (struct id){0, pick(run, USERS)};
}

/* What the index says, as a client asks for it first. */
static bool look_up(struct run *run, struct id id, uint32_t *ret_place)
{
    char text[24], seq[SEQ_LEN + 1];
    bool is_indexed = model_place(&run->model, id, ret_place);

    id_text(id, text);
    call_command(&run->caller, "HGET", 2);
    call_keys(&run->caller, "ids");
    call_str(&run->caller, text);
    call_queue(&run->caller);
    seq_text(*ret_place, seq);
    text_str(&run->wanted, !is_indexed ? "nil" : *ret_place == 0 ? "D" : seq);
    run_check(run);
    return is_indexed;
}

static struct slot_call new_slot_call(struct run *run)
{
    struct slot_call call = {.slot = BY_INDEX};
    unsigned kind = pick(run, 10);

    call.verb = kind < 3 ? SHOW : kind < 7 ? DELETE : RESCHEDULE;
    call.is_absolute = chance(run, 50);
    call.ms = pick(run, 3000);
    if (call.is_absolute)
        call.ms += model_now_ms(&run->model) - 1000;
    return call;
}

void op_slot(struct run *run)
{
    struct slot_call call = new_slot_call(run);

    call.id = pick_id(run);
    if (!look_up(run, call.id, &call.place)) {
        if (call.id.pack == 0)
            return; /* there is no such job */
        call.place = call.id.pack;
        call.slot = (int)call.id.number;
    }
    run_slot(run, &call);
}

/* The job moved, ended or began anew since it was looked up. */
void op_slot_late(struct run *run)
{
    struct slot_call call = new_slot_call(run);

    call.id = pick_id(run);
    if (run->model.pack_count == 0)
        return;
    call.place = 1 + pick(run, (unsigned)run->model.pack_count);
    if (chance(run, 10))
        call.place = 0;
    if (call.id.pack != 0 && chance(run, 50)) {
        call.place = call.id.pack;
        call.slot = (int)call.id.number;
    }
    run_slot(run, &call);
}

/* --- statistics --------------------------------------------------------- */

/* Leave out the number behind `ready`. */
static void blank_ready(struct text *text)
{
    struct text result = {0};
    const char *at = strstr(text_of(text), " ready ") + 7;

    text_add(&result, text->ptr, (size_t)(at - text->ptr));
    text_str(&result, "ready");
    text_str(&result, strchr(at, ' '));
    text_free(text);
    *text = result;
}

void op_stats(struct run *run)
{
    static const unsigned limits[] = {1000, 1000, 20, 3, 1};
    unsigned limit = PICK(run, limits);

    call_script(&run->caller, SCRIPT_STATS, 6, 1);
    call_keys(&run->caller, "wait meta dead relay due lease");
    call_int(&run->caller, limit);
    call_queue(&run->caller);
    model_stats(&run->model, limit, &run->wanted);
    if (!run->options->clock_goes_back) {
        run_check(run);
        return;
    }
    text_clear(&run->got);
    call_answer(&run->caller, &run->got);
    blank_ready(&run->wanted);
    blank_ready(&run->got);
    run_compare(run);
}

void op_lateness(struct run *run)
{
    int buckets[6];
    long long counts[6], max = pick(run, 1000000);
    size_t count = pick(run, 7);

    call_script(&run->caller, SCRIPT_LATENESS, 1, 1 + 2 * count);
    call_keys(&run->caller, "late");
    call_int(&run->caller, max);
    for (size_t i = 0; i < count; i++) {
        buckets[i] = (int)pick(run, BUCKETS);
        counts[i] = 1 + pick(run, 100);
        call_int(&run->caller, buckets[i]);
        call_int(&run->caller, counts[i]);
    }
    call_queue(&run->caller);
    model_lateness(&run->model, max, buckets, counts, count);
    text_str(&run->wanted, "1");
    run_check(run);
}

/* --- around ------------------------------------------------------------- */

/* A worker comes, or goes without a word. */
void op_subscribe(struct run *run)
{
    unsigned number = pick(run, WORKERS);
    struct worker *worker = &run->model.workers[number];
    char channel[32];
    const char *words[] = {worker->is_subscribed ? "UNSUBSCRIBE" : "SUBSCRIBE",
                           channel, NULL};

    worker->is_subscribed = !worker->is_subscribed;
    (void)snprintf(channel, sizeof(channel), "weir:wake:w%u", number);
    local_say(run->listener, words);
    run_check_woken(run);
}

/* Exactly then: when a lease ends or a job is due, or a millisecond beside. */
static bool pick_moment(struct run *run, int64_t *ret_ms)
{
    const struct model *model = &run->model;
    const struct job *job;

    if (model->lease_count > 0 && chance(run, 60)) {
        *ret_ms =
            model->leases[pick(run, (unsigned)model->lease_count)].deadline_ms;
    } else if (model->live_count > 0) {
        job = model->live[pick(run, (unsigned)model->live_count)];
        *ret_ms = job->state == WAITS ? job->due_ms : 0;
    } else {
        return false;
    }
    *ret_ms += (int64_t)pick(run, 3) - 1;
    return *ret_ms > model_now_ms(model) &&
           *ret_ms < model_now_ms(model) + 5000;
}

void op_time(struct run *run)
{
    static const int64_t steps[] = {0, 1, 5, 30, 100, 300, 1500};
    int64_t ms = PICK(run, steps);
    int64_t moment_ms;

    if (chance(run, 30) && pick_moment(run, &moment_ms)) {
        run_pass(run, moment_ms * 1000 - run->model.now_us + pick(run, 1000));
        return;
    }
    if (run->options->clock_goes_back && chance(run, 15))
        ms = -(int64_t)pick(run, 3000);
    else if (chance(run, 2))
        ms = (int64_t)pick(run, 200000);
    run_pass(run, ms * 1000 + pick(run, 1000));
}

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "tests/chaos/model/model.h"

/* One job by its id, and the statistics. */

/* --- slot --------------------------------------------------------------- */

static void bury_again(struct model *model, struct id id, bool deletes,
                       struct text *answer)
{
    for (size_t i = 0; i < model->dead_count; i++) {
        struct dead *dead = &model->dead[i];

        if (dead->id.pack != id.pack || dead->id.number != id.number)
            continue;
        text_format(answer, "(dead %lld 0 -1)", (long long)dead->died_ms);
        if (deletes)
            *dead = model->dead[--model->dead_count];
        return;
    }
}

/* The job that the place and the slot of a call name, or NULL. */
static struct job *named(const struct model *model,
                         const struct slot_call *call)
{
    struct pack *pack = model->packs[call->place - 1];

    for (unsigned slot = 0; slot < pack->count; slot++) {
        struct job *job = &pack->jobs[slot];

        if (job->state != GONE && job->is_indexed == (call->slot == BY_INDEX) &&
            (job->is_indexed ? job->id.pack == call->id.pack &&
                                   job->id.number == call->id.number
                             : (int)slot == call->slot))
            return job;
    }
    return NULL;
}

static void describe(const struct model *model, const struct job *job,
                     int64_t due_ms, bool tells_crashes, struct text *answer)
{
    bool is_due = job->due_ms <= model_now_ms(model);

    text_format(answer, "(%s %lld %u %u",
                job->state == RUNS ? "running"
                : is_due           ? "ready"
                                   : "scheduled",
                job->state == RUNS ? -1LL : (long long)due_ms, job->ended,
                job->slot);
    if (tells_crashes && job->ended > 0) {
        struct text crashes = {0};

        model_tell_crashes(job, &crashes);
        text_format(answer, " '' '' '' (%s)",
                    crashes.len > 0 ? text_of(&crashes) + 1 : "");
        text_free(&crashes);
    }
    text_str(answer, ")");
}

/* Its own node, and what is left of the one that it was in. */
static void take_apart(const struct model *model, struct job *job)
{
    struct pack *pack = job->pack;
    bool fates[SLOTS] = {false};
    unsigned slot = job->lo, hi = job->hi, next;

    fates[job->slot] = true;
    model_split(pack, slot, hi, fates);
    for (; slot <= hi && job->state == WAITS; slot = next) {
        next = pack->jobs[slot].hi + 1;
        model_split_at_mark(model, pack, slot, next - 1);
    }
}

static void reschedule(struct model *model, struct job *job, int64_t due_ms)
{
    take_apart(model, job);
    job->lo = job->hi = job->slot;
    job->due_ms = due_ms;
    model_wake(model, due_ms);
}

static void change(struct model *model, const struct slot_call *call,
                   struct job *job, struct text *answer)
{
    int64_t now_ms = model_now_ms(model), due_ms = job->due_ms;
    bool runs;

    if (call->verb == RESCHEDULE)
        due_ms = call->is_absolute ? call->ms : now_ms + call->ms;
    if (call->verb == RESCHEDULE && due_ms < now_ms)
        due_ms = now_ms;
    describe(model, job, due_ms, call->verb == SHOW, answer);
    if (call->verb == RESCHEDULE && job->state == WAITS)
        reschedule(model, job, due_ms);
    if (call->verb != DELETE)
        return;
    runs = job->state == RUNS;
    model->count.delrun += runs;
    model->count.delwait += !runs;
    if (runs && job->ended > 0 && !job->is_started)
        model_spare(model, model_lease(model, job->token), 1);
    take_apart(model, job);
    model_drop(model, job);
    if (runs && model_has_ready(model))
        model_wake(model, now_ms);
}

void model_slot(struct model *model, const struct slot_call *call,
                struct text *answer)
{
    uint32_t place;
    bool is_indexed = model_place(model, call->id, &place);
    bool by_index = call->slot == BY_INDEX;
    struct job *job;

    if (by_index != is_indexed || (by_index && place != call->place)) {
        text_str(answer, is_indexed ? "(moved)" : "(none)");
        return;
    }
    if (call->place == 0) {
        bury_again(model, call->id, call->verb == DELETE, answer);
        return;
    }
    job = named(model, call);
    if (job == NULL)
        text_str(answer, "(none)");
    else
        change(model, call, job, answer);
}

enum { MOST_MARKED = 400 }; /* nodes of mixed packs in a call */

/* --- stats -------------------------------------------------------------- */

static bool is_past_mark(const struct job *job, int64_t mark)
{
    return job->state == WAITS && !job->pack->is_mixed && job->due_ms > mark;
}

static bool is_past_mixed_mark(const struct job *job, int64_t mark)
{
    return job->state == WAITS && job->pack->is_mixed && job->due_ms > mark;
}

/* Move a mark, which says up to when `ready` counts: to the last millisecond
 * that is over, or as far as `most` nodes go. No node lies across it then. True
 * when it is all. */
static bool move_mark(struct model *model, bool is_mixed, size_t most)
{
    int64_t now_ms = model_now_ms(model) - 1, stop;
    int64_t *mark = is_mixed ? &model->mixed_mark : &model->mark;
    struct job **nodes;
    size_t count, due = 0;

    if (!model->exists || now_ms <= *mark || (is_mixed && model->mixed < 2))
        return true;
    nodes = model_nodes(model, is_mixed ? is_past_mixed_mark : is_past_mark,
                        *mark, &count);
    while (due < count && nodes[due]->due_ms <= now_ms)
        due++;
    stop = due >= most ? nodes[most - 1]->due_ms - 1 : now_ms;
    if (due >= most && stop <= *mark)
        stop = nodes[most - 1]->due_ms;
    *mark = stop;
    for (size_t i = 0; i < due && nodes[i]->due_ms <= stop; i++)
        model_split_at_mark(model, nodes[i]->pack, nodes[i]->lo, nodes[i]->hi);
    free(nodes);
    return due < most;
}

/* For how long the first of those that are due has been so; -1: none is. */
static long long oldest(const struct model *model)
{
    int64_t now_ms = model_now_ms(model), since_ms = now_ms;

    for (size_t i = 0; i < model->live_count; i++)
        if (model->live[i]->state == WAITS && model->live[i]->due_ms < since_ms)
            since_ms = model->live[i]->due_ms;
    return since_ms < now_ms ? now_ms - since_ms : -1;
}

/* For how long the first of the leases has been over; 0: none is. */
static long long ended(const struct model *model)
{
    int64_t now_ms = model_now_ms(model), first_ms = now_ms;

    for (size_t i = 0; i < model->lease_count; i++)
        if (model->leases[i].deadline_ms < first_ms)
            first_ms = model->leases[i].deadline_ms;
    return now_ms - first_ms;
}

void model_stats(struct model *model, size_t most_nodes, struct text *answer)
{
    bool is_complete = move_mark(model, false, most_nodes);
    const struct counters *count = &model->count;
    long long waiting = 0, ready = 0, running = 0;

    if (most_nodes > MOST_MARKED)
        most_nodes = MOST_MARKED;
    if (!move_mark(model, true, most_nodes))
        is_complete = false;
    for (size_t i = 0; i < model->live_count; i++) {
        const struct job *job = model->live[i];

        running += job->state == RUNS;
        waiting += job->state == WAITS;
        ready +=
            job->state == WAITS && job->due_ms <= model_mark(model, job->pack);
    }
    text_format(answer,
                "(time %lld kind %s paused %d waiting %lld ready %lld "
                "running %lld dead %zu relaying %lld exact %d oldest %lld",
                (long long)model_now_ms(model), model->exists ? "delay" : "''",
                model->is_paused, waiting, ready, running, model->dead_count,
                model->relaying, is_complete, oldest(model));
    text_format(answer,
                " added %lld done %lld retried %lld failed %lld expired %lld "
                "crashed %lld dropped %lld",
                count->added,
                count->settled - count->retried - count->snoozed -
                    count->failed - count->expired,
                count->retried, count->failed, count->expired, count->crashed,
                count->dropped);
    if (running > 0 && ended(model) > 0)
        text_format(answer, " ended %lld", ended(model));
    if (oldest(model) >= 0 && model_has_limits(model) &&
        model_limited(model) > 0)
        text_format(answer, " limited %d", model_limited(model));
    text_str(answer, ")");
}

/* --- lateness ----------------------------------------------------------- */

void model_lateness(struct model *model, long long max, const int *buckets,
                    const long long *counts, size_t count)
{
    int64_t number = model->now_us / 60000000;
    struct minute *minute = &model->late[number % MINUTES];

    if (minute->minute != number) {
        *minute = (struct minute){.minute = number, .max = -1};
    }
    if (max > minute->max)
        minute->max = max;
    for (size_t i = 0; i < count; i++)
        minute->buckets[buckets[i]] += counts[i];
}

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "tests/chaos/model/model.h"

/* Jobs come and go: add and settle. */

/* --- add ---------------------------------------------------------------- */

static void refuse(struct text *answer, size_t index, int slot)
{
    text_str(answer, " ");
    text_int(answer, (long long)index);
    text_str(answer, " ");
    text_int(answer, slot);
}

static bool is_earlier_in_pack(const struct pack *pack, unsigned slot)
{
    for (unsigned i = 0; i < slot; i++)
        if (same_id(pack->jobs[i].id, pack->jobs[slot].id))
            return true;
    return false;
}

/* Likewise, where those of `refused` do not count. */
static bool comes_twice(const struct pack *pack, unsigned slot,
                        const bool *refused)
{
    for (unsigned i = 0; i < slot; i++)
        if (!refused[i] && same_id(pack->jobs[i].id, pack->jobs[slot].id))
            return true;
    return false;
}

/* How many more jobs may wait. */
static long long room_left(const struct model *model)
{
    long long left = model->max_pending;

    if (left == 0)
        return INT64_MAX;
    for (size_t i = 0; i < model->live_count && left > 0; i++)
        left -= model->live[i]->state == WAITS;
    return left;
}

/* One staged pack; returns how many of its jobs are new. */
static unsigned add_pack(struct model *model, struct pack *pack, size_t index,
                         struct text *refusals, int64_t *first_ms)
{
    bool refused[SLOTS] = {false};
    long long left = room_left(model);
    unsigned added = 0;
    uint32_t place;

    for (unsigned slot = 0; slot < pack->count; slot++) {
        refused[slot] =
            pack->has_ids && (model_place(model, pack->jobs[slot].id, &place) ||
                              is_earlier_in_pack(pack, slot));
        if (refused[slot]) {
            refuse(refusals, index, (int)slot);
        } else if (added == left) {
            refused[slot] = true;
            refuse(refusals, index, (int)slot + 256);
        } else {
            added++;
        }
    }
    pack->is_staged = false;
    if (added > 0)
        model_enter(model, pack, refused, first_ms);
    return added;
}

static void say_added(long long added, const struct text *refusals,
                      long long revision, struct text *answer)
{
    text_format(answer, "(%lld", added);
    text_add(answer, text_of(refusals), refusals->len);
    if (revision > 0)
        text_format(answer, " %lld", revision);
    text_str(answer, ")");
}

static void refuse_late(long long revision, struct text *answer)
{
    struct text late = {0};

    refuse(&late, 0, -4);
    say_added(0, &late, revision, answer);
    text_free(&late);
}

/* The call, or a later one from its call slot, was answered before: whatever
 * became of its jobs, nothing happens. A call that is late hears that. */
static bool is_repeat(const struct model *model, const struct add_call *call,
                      struct text *answer)
{
    const struct call_slot *call_slot = &model->call_slots[call->call_slot];

    if (call_slot->number < call->number)
        return false;
    for (size_t i = 0; i < call->count; i++)
        call->packs[i]->is_staged = false;
    if (call_slot->number == call->number)
        say_added(0, &call_slot->refusals, model->revision, answer);
    else
        refuse_late(model->revision, answer);
    return true;
}

void model_add(struct model *model, const struct add_call *call,
               struct text *answer)
{
    struct call_slot *call_slot = &model->call_slots[call->call_slot];
    int64_t first_ms = INT64_MAX;
    long long added = 0;
    bool is_mixed = false;

    if (is_repeat(model, call, answer))
        return;
    if (model->exists && strcmp(call->kind, "delay") != 0) {
        text_str(answer, "(-1 delay)");
        return;
    }
    model->exists = true;
    call_slot->number = call->number;
    for (size_t i = 0; i < call->count; i++)
        is_mixed = is_mixed || is_rising(call->packs[i]);
    is_mixed = is_mixed && model_takes_mixed(model);
    text_clear(&call_slot->refusals);
    for (size_t i = 0; i < call->count; i++) {
        struct pack *pack = call->packs[i];

        if (pack->is_in_use)
            refuse(&call_slot->refusals, i, -1);
        else if (!pack->is_staged)
            refuse(&call_slot->refusals, i, -2);
        else
            added += add_pack(model, pack, i, &call_slot->refusals, &first_ms);
    }
    model->count.added += added;
    if (is_mixed && added > 0)
        model->mixed = 2;
    model->lone = call->count == 1 ? call->packs[0]->number : 0;
    model->handed = 0;
    if (added > 0 && !(call->is_lone && model_hand_over(model, call)))
        model_wake(model, first_ms);
    model->lone = 0;
    say_added(added, &call_slot->refusals, model->revision, answer);
}

/* --- settle: who may ---------------------------------------------------- */

static bool is_listed(const struct entry *entry, unsigned slot)
{
    return entry->is_whole || entry->slots[slot];
}

struct deciding {
    struct model *model;
    struct text refusals;
    long long settled;
    struct job **met; /* first jobs of the nodes that entries reached */
    size_t met_count, met_cap;
    bool (*gone)[SLOTS]; /* settled slots of each node in `met` */
    size_t gone_cap;
};

static size_t place_of(struct deciding *deciding, struct job *first)
{
    size_t at = 0;

    while (at < deciding->met_count && deciding->met[at] != first)
        at++;
    if (at < deciding->met_count)
        return at;
    deciding->met =
        list_room(deciding->met, at, &deciding->met_cap, sizeof(struct job *));
    deciding->gone = list_room(deciding->gone, at, &deciding->gone_cap,
                               sizeof(deciding->gone[0]));
    memset(deciding->gone[at], 0, sizeof(deciding->gone[at]));
    deciding->met[at] = first;
    deciding->met_count++;
    return at;
}

/* The slots of a node that still lies under the token, but for those that an
 * entry before this one settles. */
static void decide_node(struct deciding *deciding, size_t index,
                        struct entry *entry, struct job *first)
{
    size_t at = place_of(deciding, first);
    bool *gone = deciding->gone[at];

    for (unsigned slot = first->lo; slot <= first->hi; slot++) {
        if (!is_listed(entry, slot))
            continue;
        entry->refused[slot] = gone[slot];
        if (gone[slot])
            refuse(&deciding->refusals, index, (int)slot);
        else
            deciding->settled++;
        gone[slot] = true;
    }
}

static void decide_entry(struct deciding *deciding, size_t index,
                         struct entry *entry)
{
    struct pack *pack = deciding->model->packs[entry->node.pack - 1];
    unsigned slot = entry->node.lo;

    while (slot <= entry->node.hi) {
        struct job *job = &pack->jobs[slot];

        if (job->state == RUNS && job->token == entry->token) {
            decide_node(deciding, index, entry, &pack->jobs[job->lo]);
            slot = job->hi + 1;
            continue;
        }
        if (is_listed(entry, slot)) {
            entry->refused[slot] = true;
            refuse(&deciding->refusals, index, (int)slot);
        }
        slot++;
    }
}

static void take_out(struct deciding *deciding)
{
    for (size_t i = 0; i < deciding->met_count; i++) {
        struct job *first = deciding->met[i];
        struct pack *pack = first->pack;
        unsigned lo = first->lo, hi = first->hi;

        model_split(pack, lo, hi, deciding->gone[i]);
        for (unsigned slot = lo; slot <= hi; slot++)
            if (deciding->gone[i][slot])
                model_drop(deciding->model, &pack->jobs[slot]);
    }
    free(deciding->met);
    free(deciding->gone);
}

/* --- settle: what becomes of them --------------------------------------- */

bool model_is_out(const struct settle_call *call, struct source source)
{
    return call->entry[source.entry].refused[source.slot];
}

/* Jobs that live on keep their ids, also before they are written. */
static bool is_kept(const struct settle_call *call, struct id id)
{
    for (size_t i = 0; i < call->moves; i++)
        for (unsigned slot = 0; slot < call->move[i].pack->count; slot++)
            if (!call->move[i].is_new &&
                !model_is_out(call, call->move[i].sources[slot]) &&
                same_id(call->move[i].pack->jobs[slot].id, id))
                return true;
    for (size_t i = 0; i < call->ends; i++)
        if (!model_is_out(call, call->end[i].source) &&
            same_id(call->end[i].id, id))
            return true;
    return false;
}

static bool is_free(const struct model *model, const struct settle_call *call,
                    struct id id)
{
    uint32_t place;

    return !model_place(model, id, &place) && !is_kept(call, id);
}

/* Returns how many of the jobs are not new although they should be. */
static long long move_pack(struct model *model, const struct settle_call *call,
                           const struct move *move, int64_t *first_ms)
{
    bool refused[SLOTS] = {false};
    unsigned moved = 0;
    long long duplicates = 0;

    for (unsigned slot = 0; slot < move->pack->count; slot++) {
        struct job *job = &move->pack->jobs[slot];
        struct source source = move->sources[slot];

        refused[slot] = model_is_out(call, source);
        if (!refused[slot] && move->is_new && move->pack->has_ids &&
            (!is_free(model, call, job->id) ||
             comes_twice(move->pack, slot, refused))) {
            refused[slot] = true;
            duplicates++;
        }
        moved += !refused[slot];
    }
    move->pack->is_staged = false;
    if (moved == 0)
        return duplicates;
    model_enter(model, move->pack, refused, first_ms);
    if (move->pack->is_mixed)
        model->mixed = 2;
    if (move->is_new)
        model->count.added += moved;
    else if (move->is_retry)
        model->count.retried += moved;
    else
        model->count.snoozed += moved;
    return duplicates;
}

static int by_death(const void *left, const void *right)
{
    const struct dead *one = left, *two = right;
    char one_id[24], two_id[24];

    if (one->died_ms != two->died_ms)
        return one->died_ms < two->died_ms ? -1 : 1;
    id_text(one->id, one_id);
    id_text(two->id, two_id);
    return strcmp(one_id, two_id);
}

void model_sort_dead(struct model *model)
{
    if (model->dead_count > 1)
        qsort(model->dead, model->dead_count, sizeof(struct dead), by_death);
}

void model_die(struct model *model, struct id id, uint32_t body)
{
    model->dead = list_room(model->dead, model->dead_count, &model->dead_cap,
                            sizeof(struct dead));
    model->dead[model->dead_count++] =
        (struct dead){id, model_now_ms(model), body};
}

size_t model_drop_oldest(struct model *model, long long most)
{
    size_t over;

    if (model->dead_count <= (size_t)most)
        return 0;
    over = model->dead_count - (size_t)most;
    model_sort_dead(model);
    memmove(model->dead, model->dead + over,
            (model->dead_count - over) * sizeof(struct dead));
    model->dead_count -= over;
    model->count.dropped += (long long)over;
    return over;
}

/* Returns how many dead jobs went. */
static size_t end_jobs(struct model *model, const struct settle_call *call)
{
    size_t before = model->dead_count;

    for (size_t i = 0; i < call->ends; i++) {
        const struct end *end = &call->end[i];

        if (model_is_out(call, end->source))
            continue;
        if (end->body == 0) {
            model->count.expired++;
            continue;
        }
        model->count.failed++;
        model_die(model, end->id, end->body);
    }
    return model->dead_count > before
               ? model_drop_oldest(model, call->most_dead)
               : 0;
}

bool model_runs_under(const struct model *model, uint64_t token)
{
    for (size_t i = 0; i < model->live_count; i++)
        if (model->live[i]->state == RUNS && model->live[i]->token == token)
            return true;
    return false;
}

static bool is_there(const struct pack *pack)
{
    return pack->is_staged || pack->is_in_use;
}

static bool all_are_staged(const struct settle_call *call)
{
    for (size_t i = 0; i < call->moves; i++)
        if (!is_there(call->move[i].pack))
            return false;
    for (size_t i = 0; i < call->outs; i++)
        if (!call->out[i].pack->is_staged && !call->out[i].is_recorded)
            return false;
    return true;
}

/* The node that the job runs in goes back, as far as it is wanted. */
static long long back_node(const struct model *model, struct pack *pack,
                           const struct job *first, const struct back *back)
{
    unsigned lo = first->lo, hi = first->hi;
    bool goes[SLOTS] = {false};
    long long count = 0;

    for (unsigned slot = lo; slot <= hi; slot++)
        goes[slot] = back->is_whole || back->slots[slot];
    model_split(pack, lo, hi, goes);
    for (unsigned slot = lo; slot <= hi; slot++) {
        struct job *job = &pack->jobs[slot];

        if (!goes[slot])
            continue;
        job->state = WAITS;
        if (!pack->is_mixed || back->node.lo == back->node.hi)
            job->due_ms = back->due_ms;
        job->is_started = false;
        count++;
    }
    for (unsigned slot = lo; slot <= hi; slot = pack->jobs[slot].hi + 1)
        if (goes[slot])
            model_split_at_mark(model, pack, slot, pack->jobs[slot].hi);
    return count;
}

static void take_backs(struct model *model, const struct settle_call *call,
                       int64_t *first_ms)
{
    for (size_t i = 0; i < call->backs; i++) {
        const struct back *back = &call->back[i];
        struct pack *pack = model->packs[back->node.pack - 1];
        long long count = 0;

        for (unsigned slot = back->node.lo; slot <= back->node.hi; slot++) {
            const struct job *job = &pack->jobs[slot];

            if (job->state == RUNS && job->token == back->token &&
                (back->is_whole || back->slots[slot]))
                count += back_node(model, pack, job, back);
        }
        model->count.returned += count;
        if (count > 0 && back->due_ms < *first_ms)
            *first_ms = back->due_ms;
    }
}

void model_settle(struct model *model, struct settle_call *call,
                  struct text *answer)
{
    struct deciding deciding = {.model = model};
    bool is_new[CALL_PACKS];
    int64_t first_ms = INT64_MAX;
    long long duplicates = 0;
    long long before = model->count.settled + model->count.returned;
    size_t evicted;

    if (!all_are_staged(call)) {
        text_str(answer, "(-1)");
        return;
    }
    for (size_t i = 0; i < call->moves; i++)
        is_new[i] = !call->move[i].pack->is_in_use;
    for (size_t i = 0; i < call->entries; i++)
        decide_entry(&deciding, i, &call->entry[i]);
    take_out(&deciding);
    model->count.settled += deciding.settled;
    take_backs(model, call, &first_ms);
    for (size_t i = 0; i < call->closed; i++)
        if (!model_runs_under(model, call->close[i]))
            model_lease_end(model, call->close[i]);
    for (size_t i = 0; i < call->moves; i++)
        if (is_new[i])
            duplicates += move_pack(model, call, &call->move[i], &first_ms);
    evicted = end_jobs(model, call);
    if (call->wakes && model->count.settled + model->count.returned > before &&
        model_has_ready(model) && first_ms > model_now_ms(model))
        first_ms = model_now_ms(model);
    if (first_ms != INT64_MAX)
        model_wake(model, first_ms);
    text_format(answer, "(%lld", deciding.settled);
    text_add(answer, text_of(&deciding.refusals), deciding.refusals.len);
    if (duplicates > 0)
        text_format(answer, " -1 %lld", duplicates);
    model_record(model, call, answer);
    if (evicted > 0)
        text_format(answer, " -4 %zu", evicted);
    if (call->offers.offer != 0 && deciding.settled > 0)
        model_offer(model, &call->offers, answer);
    text_str(answer, ")");
    text_free(&deciding.refusals);
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/chaos/model/model.h"

/* Claiming. */

/* --- suspects ----------------------------------------------------------- */

void model_start(struct model *model, const struct start_call *call,
                 struct text *answer)
{
    struct job *job = &model->packs[call->node.pack - 1]->jobs[call->node.lo];

    if (job->state != RUNS || job->token != call->token || job->lo != job->hi) {
        text_str(answer, "(0)");
        return;
    }
    job->is_started = true;
    model->started[call->worker] =
        (struct start){call->node, call->token, job->ended};
    text_str(answer, "(1");
    model_tell_crashes(job, answer);
    text_str(answer, ")");
}

/* What recall says where nobody ran anything, and there are no schedules. */
#define NOBODY "('' 0)"

void model_recall(struct model *model, int worker, struct text *answer)
{
    struct start start = model->started[worker];
    const struct job *job;
    char name[SEQ_LEN + 5];

    model->started[worker].node.pack = 0;
    if (start.node.pack == 0) {
        text_str(answer, NOBODY);
        return;
    }
    job = &model->packs[start.node.pack - 1]->jobs[start.node.lo];
    node_text(start.node, name);
    if (job->state == GONE ||
        (job->ended <= start.ended &&
         !(job->state == RUNS && job->token == start.token)))
        text_str(answer, NOBODY);
    else
        text_format(answer, "(%s 0)", name);
}

/* --- the server --------------------------------------------------------- */

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* What is skipped was given back. */
static void raise_tokens(struct model *model, long long to)
{
    long long more = to - model->count.claimed;

    if (more <= 0)
        return;
    model->count.claimed += more;
    model->count.returned += more;
}

/* Until when no lease ends; 0: they do. */
static int64_t meet_server(struct model *model, const struct claim_call *call)
{
    int64_t now_ms = model_now_ms(model), lost = 1 << 26, by_time;
    long long last = model->count.claimed;

    raise_tokens(model, call->floor);
    if (call->server == 0 || call->server == model->server) {
        if (model->grace_ms > now_ms && model->grace_ms <= now_ms + 5000)
            return model->grace_ms;
        if (call->server != 0)
            model->grace_ms = 0;
        return 0;
    }
    if (model->met_ms > 0)
        lost = between(1 << 19, (now_ms - model->met_ms) * 512, 1 << 26);
    by_time = (now_ms - INT64_C(1577836800000)) * 32;
    raise_tokens(model, last + lost);
    raise_tokens(model, by_time);
    model->grace_ms = 0;
    if (model->server != 0)
        model->grace_ms = now_ms + between(1000, call->lease_ms / 2, 5000);
    model->server = call->server;
    model->met_ms = now_ms;
    return model->grace_ms;
}

/* --- the claim ---------------------------------------------------------- */

enum { MOST_MIXED = 200, MOST_PUT_BACK = 200, SHORTLY_MS = 1000 };

struct taking {
    int64_t now_ms;
    unsigned room; /* left */
    uint64_t jobs;
    size_t put_back;     /* nodes */
    int64_t put_back_ms; /* the first due time of those; INT64_MAX: none */
    struct node *nodes;  /* taken */
    struct text text;    /* their names and scores */
    struct text held;    /* their names and due times */
    size_t count;
};

static bool is_due(const struct job *job, int64_t now_ms)
{
    return job->state == WAITS && job->due_ms <= now_ms;
}

static void take_node(struct taking *taking, const struct job *first)
{
    struct node node = {first->pack->number, first->lo, first->hi};
    int64_t mixed_score = first->pack->is_mixed ? MIXED_SCORE : 0;
    struct text table = {0};
    char name[SEQ_LEN + 5];

    node_text(node, name);
    text_format(&taking->text, " %s ", name);
    if (first->pack->is_mixed && node.lo < node.hi) {
        add_little(&table, 2 * first->ended, 1);
        table_text(first->pack, node.lo, node.hi, &table);
        text_bytes(&taking->text, table.ptr, table.len);
        text_free(&table);
    } else {
        text_int(&taking->text,
                 (mixed_score + first->due_ms) * 256 + 2 * first->ended);
    }
    text_format(&taking->held, "%s@%lld ", name, (long long)first->due_ms);
    taking->nodes[taking->count++] = node;
}

/* The first `count` slots of the node that begins with `first`; as single
 * jobs, or as few nodes as the tree allows. */
static void take(struct taking *taking, struct job *first, unsigned count,
                 bool as_singles)
{
    struct pack *pack = first->pack;
    bool fates[SLOTS] = {false};
    unsigned lo = first->lo, end = lo + count, old_end = first->hi + 1;

    memset(fates + lo, true, count);
    model_split(pack, lo, first->hi, fates);
    for (unsigned slot = lo; slot < end; slot++) {
        struct job *job = &pack->jobs[slot];

        if (as_singles)
            job->lo = job->hi = slot;
        job->state = RUNS;
        job->is_single = job->lo == job->hi;
        if (slot == job->lo)
            take_node(taking, job);
    }
    for (unsigned slot = end; slot < old_end; slot++)
        taking->put_back += pack->jobs[slot].lo == slot;
    if (end < old_end && pack->is_mixed &&
        pack->jobs[end].due_ms < taking->put_back_ms)
        taking->put_back_ms = pack->jobs[end].due_ms;
    taking->room -= count;
    taking->jobs += count;
}

/* How many slots of a node may be taken: those that are due, but none that is
 * less than half as late as the first one, beyond a second. */
static unsigned ripe_slots(const struct taking *taking, const struct job *first)
{
    int64_t late_ms = taking->now_ms - first->due_ms;
    int64_t last_ms = taking->now_ms - (late_ms > SHORTLY_MS ? late_ms / 2 : 0);
    unsigned slot = first->lo;

    while (slot <= first->hi && first->pack->jobs[slot].due_ms <= last_ms)
        slot++;
    return slot - first->lo;
}

/* False when the rest of the room is too small to split the next node, or what
 * is put back comes first. */
static bool take_next(struct taking *taking, struct job *first, unsigned room)
{
    unsigned size = first->hi - first->lo + 1;
    unsigned ripe = ripe_slots(taking, first);
    unsigned fitting = ripe < taking->room ? ripe : taking->room;
    bool is_suspect = first->ended > 0;

    if (taking->room == 0 || first->due_ms > taking->put_back_ms ||
        taking->put_back > MOST_PUT_BACK)
        return false;
    if ((!is_suspect || first->pack->is_mixed) && fitting < ripe &&
        taking->jobs * 2 >= room)
        return false;
    if (size == 1 || !is_suspect)
        take(taking, first, fitting, false);
    else
        take(taking, first, fitting, true);
    return true;
}

/* -1: a worker without a name. */
static void run_under(struct model *model, struct taking *taking, int worker,
                      int64_t lease_ms)
{
    uint64_t token = (uint64_t)model->count.claimed + taking->jobs;
    int64_t now_ms = model_now_ms(model);

    for (size_t i = 0; i < taking->count; i++) {
        struct node node = taking->nodes[i];

        for (unsigned slot = node.lo; slot <= node.hi; slot++)
            model->packs[node.pack - 1]->jobs[slot].token = token;
    }
    model->count.claimed = (long long)token;
    if (worker < 0)
        text_format(&taking->held, "@@%lld ", (long long)now_ms);
    else
        text_format(&taking->held, "@w%d@%lld ", worker, (long long)now_ms);
    model->leases = list_room(model->leases, model->lease_count,
                              &model->lease_cap, sizeof(struct lease));
    model->leases[model->lease_count++] =
        (struct lease){token, now_ms + lease_ms, lease_ms, taking->held};
    taking->held = (struct text){0}; /* the lease has it */
}

/* When a job is due. */
static int64_t next_due_ms(const struct model *model)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < model->live_count; i++)
        if (model->live[i]->state == WAITS && model->live[i]->due_ms < next)
            next = model->live[i]->due_ms;
    return next;
}

bool model_has_ready(const struct model *model)
{
    return next_due_ms(model) <= model_now_ms(model);
}

/* When there is something to do: a job may start, at `next`, or a lease has run
 * out. */
static int64_t or_end_ms(const struct model *model, int64_t next,
                         int64_t grace_ms)
{
    int64_t end = INT64_MAX;

    for (size_t i = 0; i < model->lease_count; i++)
        if (model->leases[i].deadline_ms + 1 < end)
            end = model->leases[i].deadline_ms + 1;
    if (end < grace_ms)
        end = grace_ms;
    return end < next ? end : next;
}

static void fall_asleep(struct worker *worker, int64_t wake_ms, bool is_busy)
{
    worker->is_idle = true;
    worker->is_busy = is_busy;
    worker->wake_ms = wake_ms;
}

/* What a worker leaves that does not sleep until then is for the next one. */
static void leave_to_next(struct model *model, int64_t next_ms)
{
    int64_t now_ms = model_now_ms(model);

    if (next_ms != INT64_MAX)
        model_wake(model, next_ms > now_ms ? next_ms : now_ms);
}

static int64_t ms_of(int64_t us)
{
    return us == INT64_MAX ? INT64_MAX : (us + 999) / 1000;
}

/* How many ms later than that the worker comes, and who comes in its place. */
static int64_t ms_behind(struct model *model, const struct claim_call *call,
                         bool has_jobs, int64_t due_ms, int64_t at_ms)
{
    int registered = 0;

    for (size_t i = 0; i < WORKERS; i++)
        registered += model->workers[i].is_idle;
    if (at_ms == INT64_MAX || registered <= (int)call->is_registered)
        return 0;
    if (!has_jobs || !call->is_slow)
        return model_behind(model, &model->workers[call->worker], at_ms);
    if (due_ms == INT64_MAX)
        return 0;
    return model_behind_idle(model, &model->workers[call->worker], due_ms);
}

/* `wake_us`: something is to be done then. Returns when the worker is to ask
 * again. */
static int64_t note_idle(struct model *model, const struct claim_call *call,
                         uint64_t jobs, struct next next, int64_t grace_ms,
                         int64_t wake_us)
{
    bool is_more = wake_us <= model->now_us;
    struct worker *worker =
        call->worker < 0 ? NULL : &model->workers[call->worker];
    bool sleeps = jobs == 0 || (jobs < call->room && !is_more);
    int64_t behind_ms = 0;

    if (sleeps && worker != NULL && next.waits)
        fall_asleep(worker, INT64_MIN, false);
    else if (sleeps && worker != NULL) {
        int64_t at_ms = or_end_ms(model, ms_of(next.us), grace_ms);
        bool has_jobs = jobs > 0 || call->is_busy;

        if (!is_more)
            behind_ms = ms_behind(model, call, has_jobs, ms_of(next.us), at_ms);
        fall_asleep(worker, at_ms == INT64_MAX ? at_ms : at_ms + behind_ms,
                    has_jobs);
    } else if (worker != NULL && call->is_registered)
        worker->is_idle = false;
    if (!sleeps)
        leave_to_next(model, ms_of(next.us));
    return wake_us + behind_ms * 1000;
}

/* How many jobs were taken, and which nodes. */
static void say_taken(const struct model *model, const struct taking *taking,
                      int64_t next, struct text *answer)
{
    if (next == INT64_MAX)
        next = -1;
    else
        next = next > model->now_us ? next - model->now_us : 0;
    text_format(answer, "(%lld %lld %lld %llu %lld", (long long)model->now_us,
                taking->jobs > 0 ? model->count.claimed : 0LL, (long long)next,
                (unsigned long long)taking->jobs, model->revision * 2);
    text_add(answer, text_of(&taking->text), taking->text.len);
    text_str(answer, ")");
}

/* Of plain and of mixed packs so many nodes are looked at. What is due behind
 * the last of them waits where there may be more. */
static size_t look_at(struct taking *taking, struct job **due, size_t count,
                      const struct claim_call *call)
{
    size_t most[] = {call->room < call->most_nodes ? call->room
                                                   : call->most_nodes,
                     MOST_MIXED};
    size_t seen = 0;

    if (most[true] > most[false])
        most[true] = most[false];
    for (size_t i = 0; i < count; i++) {
        size_t *left = &most[due[i]->pack->is_mixed];

        if (*left == 0)
            continue;
        due[seen++] = due[i];
        if (--*left == 0 && due[i]->due_ms < taking->put_back_ms)
            taking->put_back_ms = due[i]->due_ms;
    }
    return seen;
}

static void take_due(struct model *model, const struct claim_call *call,
                     struct taking *taking)
{
    size_t count;
    struct job **due = model_nodes(model, is_due, model_now_ms(model), &count);

    count = look_at(taking, due, count, call);
    for (size_t i = 0; i < count; i++)
        if (!take_next(taking, due[i], call->room))
            break;
    free(due);
    if (taking->jobs > 0)
        run_under(model, taking, call->worker, call->lease_ms);
}

/* --- handing over ------------------------------------------------------- */

static void note_offer(struct model *model, const struct claim_call *call,
                       bool is_offered)
{
    if (call->worker < 0)
        return;
    if (is_offered && call->offer != 0)
        model->offer = (struct offer){call->offer, call->worker, call->lease_ms,
                                      model->now_us};
    else if (model->offer.worker == call->worker)
        model->offer.number = 0;
}

/* It is what a claim would take first, and a claim would not meet a server. */
static bool is_handed(const struct model *model, const struct add_call *call,
                      const struct job *job)
{
    int64_t now_ms = model_now_ms(model);

    if (model->offer.number == 0 || call->server == 0 ||
        call->server != model->server || model->grace_ms > 0 ||
        model->is_paused || job->due_ms > now_ms || model->count.claimed <= 0)
        return false;
    for (size_t i = 0; i < model->live_count; i++)
        if (model->live[i] != job && is_due(model->live[i], now_ms))
            return false;
    return true;
}

static void tell(struct model *model, const struct job *job)
{
    const struct offer *offer = &model->offer;
    struct node node = {job->pack->number, 0, 0};
    char name[SEQ_LEN + 5];

    node_text(node, name);
    text_format(&model->woken, "%d=%s %lld %lld %lld %lld %lld %lld %016x W1 ",
                offer->worker, name, model->count.claimed,
                (long long)job->due_ms, (long long)model->now_us,
                (long long)model->now_us - offer->us, offer->number,
                model->revision, model->server);
}

bool model_hand_over(struct model *model, const struct add_call *call)
{
    struct job *job = &call->packs[0]->jobs[0];
    struct worker *worker = &model->workers[model->offer.worker];
    struct taking taking = {.nodes = &(struct node){0}};

    if (!is_handed(model, call, job))
        return false;
    if (!worker->is_subscribed) { /* the token is burnt */
        model->count.claimed++;
        model->count.returned++;
        model->offer.number = 0;
        return false;
    }
    take(&taking, job, 1, false);
    run_under(model, &taking, model->offer.worker, model->offer.lease_ms);
    text_free(&taking.text);
    tell(model, job);
    model->handed = job->token;
    model->offer.number = 0;
    worker->is_idle = false;
    return true;
}

void model_offer(struct model *model, const struct claim_call *call,
                 struct text *answer)
{
    int64_t next = or_end_ms(model, next_due_ms(model), 0);
    bool is_due = next != INT64_MAX && next * 1000 <= model->now_us;

    if (is_due || model->is_paused || model->grace_ms > 0 ||
        model_has_limits(model) || call->server == 0 ||
        call->server != model->server) {
        text_str(answer, " 0");
        return;
    }
    fall_asleep(&model->workers[call->worker], next, false);
    note_offer(model, call, true);
    text_format(answer, " %lld",
                next == INT64_MAX ? -1
                                  : (long long)(next * 1000 - model->now_us));
}

/* Limits that held for one claim: nothing held before. */
static void end_lent(struct model *model, bool is_lent)
{
    if (is_lent) {
        model->rate = 0;
        model->parallel = 0;
    }
}

uint64_t model_claim(struct model *model, const struct claim_call *call,
                     struct text *answer, struct node *ret_nodes,
                     size_t *ret_count)
{
    struct taking taking = {.now_ms = model_now_ms(model),
                            .room = call->room,
                            .put_back_ms = INT64_MAX,
                            .nodes = ret_nodes};
    struct claim_call less = *call;
    struct limit limit;
    struct next next;
    int64_t wake_us, grace_ms;
    bool is_lent;

    *ret_count = 0;
    if (model->exists && strcmp(call->kind, "delay") != 0) {
        text_str(answer, "(-1 delay)");
        return 0;
    }
    model->exists = true;
    grace_ms = meet_server(model, call);
    model_expire(model, grace_ms);
    is_lent = model_hear_limits(model, call);
    if (model->is_paused) { /* asleep until it is resumed */
        end_lent(model, is_lent);
        if (call->worker >= 0)
            fall_asleep(&model->workers[call->worker], INT64_MIN, false);
        note_offer(model, call, false);
        text_format(answer, "(%lld 0 -1 0 %lld)", (long long)model->now_us,
                    model->revision * 2 + 1);
        return 0;
    }
    limit = model_limit(model);
    less.room = taking.room = model_room(model, &limit, call);
    take_due(model, &less, &taking);
    model_heal_leases(model, call->lease_ms, taking.jobs);
    next = model_next(model, &limit, taking.jobs, next_due_ms(model),
                      taking.jobs == 0 || taking.jobs < call->room);
    wake_us = or_end_ms(model, INT64_MAX, grace_ms);
    wake_us = wake_us == INT64_MAX ? wake_us : wake_us * 1000;
    wake_us = next.us < wake_us ? next.us : wake_us;
    wake_us = note_idle(model, call, taking.jobs, next, grace_ms, wake_us);
    note_offer(model, call, taking.jobs == 0 && !model_has_limits(model));
    end_lent(model, is_lent);
    if (model->mixed == 0)
        model->mixed = 1;
    say_taken(model, &taking, wake_us, answer);
    text_free(&taking.text);
    *ret_count = taking.count;
    return taking.jobs > 0 ? (uint64_t)model->count.claimed : 0;
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/chaos/model/model.h"

/* Managing: dead jobs, purging, pausing. */

/* --- dead jobs ---------------------------------------------------------- */

static struct dead *find_dead(struct model *model, struct id id,
                              int64_t died_ms)
{
    for (size_t i = 0; i < model->dead_count; i++)
        if (model->dead[i].id.pack == id.pack &&
            model->dead[i].id.number == id.number &&
            model->dead[i].died_ms == died_ms)
            return &model->dead[i];
    return NULL;
}

void model_requeue(struct model *model, const struct requeue_call *call,
                   struct text *answer)
{
    struct pack *pack = call->pack;
    bool refused[SLOTS] = {false};
    int64_t first_ms = INT64_MAX;
    unsigned count = 0;

    if (!pack->is_in_use && !pack->is_staged) {
        text_str(answer, "(-1)");
        return;
    }
    if (pack->is_in_use) {
        text_format(answer, "(%u)", pack->live);
        return;
    }
    for (unsigned slot = 0; slot < pack->count; slot++) {
        struct dead *dead =
            find_dead(model, pack->jobs[slot].id, call->died_ms[slot]);

        refused[slot] = dead == NULL;
        if (dead == NULL)
            continue;
        *dead = model->dead[--model->dead_count];
        count++;
    }
    pack->is_staged = false;
    if (count > 0) {
        model_enter(model, pack, refused, &first_ms);
        model->count.requeued += count;
        model_wake(model, model_now_ms(model));
    }
    text_format(answer, "(%u)", count);
}

void model_forget(struct model *model, int64_t latest_ms, size_t most,
                  struct text *answer)
{
    size_t count = 0;

    if (!model->exists) {
        text_str(answer, "(-1)");
        return;
    }
    model_sort_dead(model);
    if (latest_ms == INT64_MAX) {
        latest_ms = model_now_ms(model);
        if (model->dead_count > 0 && /* the clock was ahead */
            model->dead[model->dead_count - 1].died_ms > latest_ms)
            latest_ms = model->dead[model->dead_count - 1].died_ms;
    }
    while (count < model->dead_count && count < most &&
           model->dead[count].died_ms <= latest_ms)
        count++;
    if (count > 0)
        memmove(model->dead, model->dead + count,
                (model->dead_count - count) * sizeof(struct dead));
    model->dead_count -= count;
    text_format(answer, "(%zu %d %lld)", count, count == most,
                (long long)latest_ms);
}

/* --- purging ------------------------------------------------------------ */

static long long purge_node(struct model *model, struct node node)
{
    struct pack *pack = model->packs[node.pack - 1];
    const struct job *first = &pack->jobs[node.lo];
    bool runs = first->state == RUNS;
    uint64_t token = first->token;

    if (first->state == GONE || first->lo != node.lo || first->hi != node.hi)
        return 0;
    for (unsigned slot = node.lo; slot <= node.hi; slot++) {
        model_drop(model, &pack->jobs[slot]);
        model->count.delrun += runs;
        model->count.delwait += !runs;
    }
    if (runs && !model_runs_under(model, token) && model->rate == 0 &&
        model->parallel == 0)
        model_lease_end(model, token); /* else its worker ends it */
    return node.hi - node.lo + 1;
}

void model_purge(struct model *model, const struct node *nodes, size_t count,
                 struct text *answer)
{
    long long purged = 0;

    for (size_t i = 0; i < count; i++)
        purged += purge_node(model, nodes[i]);
    text_format(answer, "(%lld)", purged);
}

/* --- pausing ------------------------------------------------------------ */

/* Whoever sleeps is told, first who would wake first. */
static void wake_all(struct model *model)
{
    for (;;) {
        struct worker *first = NULL;

        for (size_t i = 0; i < WORKERS; i++)
            if (model->workers[i].is_idle &&
                (first == NULL ||
                 model_rank(&model->workers[i]) < model_rank(first)))
                first = &model->workers[i];
        if (first == NULL)
            return;
        first->is_idle = false;
        if (first->is_subscribed)
            text_format(&model->woken, "%d ", (int)(first - model->workers));
    }
}

void model_set(struct model *model, long long max_pending, struct text *answer)
{
    model->exists = true;
    model->max_pending = max_pending;
    model->revision++;
    text_format(answer, "(%lld)", model->revision);
}

void model_pause(struct model *model, const char *kind, bool pauses,
                 struct text *answer)
{
    if (model->exists && strcmp(kind, "delay") != 0) {
        text_str(answer, "(-1 delay)");
        return;
    }
    model->exists = true;
    if (!pauses && model->is_paused)
        wake_all(model);
    model->is_paused = pauses;
    text_str(answer, "(1)");
}

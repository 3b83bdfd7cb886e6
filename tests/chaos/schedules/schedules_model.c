/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/chaos/schedules/schedules.h"

enum { GRACE_MS = 60000, LEAD_MS = WEIR__AHEAD_MS / 2 };

const struct weir__schedule sched_whats[WHATS] = {
    {.every_ms = 20, .missed = WEIR_CRON_ONCE},
    {.every_ms = 70, .missed = WEIR_CRON_SKIP},
    {.every_ms = 500, .missed = WEIR_CRON_ALL},
    {.every_ms = 90, .missed = WEIR_CRON_ONCE, .jitter_ms = 300},
    {.every_ms = 61000, .missed = WEIR_CRON_SKIP},
    {.every_ms = 300, .missed = WEIR_CRON_ALL, .jitter_ms = 500},
    {.every_ms = 50, .missed = WEIR_CRON_ONCE, .skips_overlap = true},
};

void sched_tick_id(size_t name, char ret_id[ID_CAP])
{
    (void)snprintf(ret_id, ID_CAP, "s%zu" WEIR__TICK_SUFFIX, name);
}

struct sched_job *sched_find(struct sched_model *model, const char *id)
{
    for (size_t i = 0; i < model->top; i++)
        if (model->jobs[i].state != GONE && strcmp(model->jobs[i].id, id) == 0)
            return &model->jobs[i];
    return NULL;
}

struct sched_job *sched_enter(struct sched_model *model, const char *id,
                              int64_t due_ms)
{
    struct sched_job *job = model->jobs;

    while (job < model->jobs + model->top && job->state != GONE)
        job++;
    if (job == model->jobs + MOST_JOBS)
        abort();
    model->top += job == model->jobs + model->top;
    *job = (struct sched_job){.state = WAITS, .due_ms = due_ms};
    (void)snprintf(job->id, sizeof(job->id), "%s", id);
    if (due_ms < model->now_ms)
        job->due_ms = model->now_ms;
    return job;
}

void sched_drop(struct sched_model *model, struct sched_job *job)
{
    job->state = GONE;
    while (model->top > 0 && model->jobs[model->top - 1].state == GONE)
        model->top--;
    for (size_t i = 0; i < NAMES; i++)
        if (model->schedules[i].tick == job)
            model->schedules[i].tick = NULL;
}

/* What was missed before now is over, and what a tick before may have made. */
static void add_tick(struct sched_model *model, size_t name)
{
    struct sched_schedule *schedule = &model->schedules[name];
    char id[ID_CAP];

    sched_tick_id(name, id);
    schedule->tick = sched_enter(model, id, model->now_ms);
    schedule->tick->is_tick = true;
    schedule->tick->plan = sched_whats[schedule->what];
    schedule->tick->plan.from_ms = schedule->from_ms;
    schedule->tick->plan.last_ms = model->now_ms + WEIR__AHEAD_MS;
    schedule->tick->plan.before_ms = schedule->from_ms;
    model->added++;
}

const char *sched_change(struct sched_model *model, size_t name,
                         enum sched_verb verb, size_t what)
{
    static const char states[] = {[RESUME] = 'A', [PAUSE] = 'P', [DELETE] = 0};
    struct sched_schedule *schedule = &model->schedules[name];
    char before = schedule->state, wants = states[verb], id[ID_CAP];

    sched_tick_id(name, id);
    if (before == 0 && verb != SET)
        return "none";
    if (before != 'A' && (before == 0 || verb == RESUME) &&
        sched_find(model, id) != NULL)
        return "taken"; /* somebody's job has the id */
    if (verb == SET)
        wants = before == 0 ? 'A' : before;
    if (verb == SET && (before == 0 || schedule->what != what)) {
        schedule->what = what;
        schedule->from_ms = model->now_ms;
    } else if (wants == before && (wants == 'P' || schedule->tick != NULL)) {
        if (schedule->tick != NULL && schedule->tick->state == WAITS &&
            schedule->tick->due_ms > model->now_ms)
            schedule->tick->due_ms = model->now_ms;
        return "same";
    }
    if (schedule->tick != NULL)
        sched_drop(model, schedule->tick);
    schedule->state = wants;
    if (wants == 'A')
        add_tick(model, name);
    return "done";
}

long long sched_mend(struct sched_model *model)
{
    long long mended = 0;

    for (size_t i = 0; i < NAMES; i++)
        if (model->schedules[i].state == 'A' &&
            model->schedules[i].tick == NULL) {
            add_tick(model, i);
            mended++;
        }
    return mended;
}

/* The first of its times behind `ms`. */
static int64_t time_behind(const struct weir__schedule *schedule, int64_t ms)
{
    return schedule->from_ms +
           ((ms - schedule->from_ms) / schedule->every_ms + 1) *
               schedule->every_ms;
}

static int64_t comes_ms(const struct weir__schedule *schedule, int64_t ms)
{
    return schedule->skips_overlap ? ms : ms / LEAD_MS * LEAD_MS - LEAD_MS;
}

const char *sched_plan_fault(const struct weir__schedule *schedule,
                             const struct weir__tick_plan *plan, int64_t now_ms)
{
    int64_t every = schedule->every_ms, last = schedule->last_ms;
    int64_t first = time_behind(schedule, last), next;
    size_t count = 0;

    if (first <= now_ms && schedule->missed == WEIR_CRON_ALL) {
        while (count < WEIR__TICK_TIMES &&
               first + (int64_t)count * every <= now_ms)
            count++;
        last = first + (int64_t)(count - 1) * every;
    } else if (first <= now_ms) {
        first = last = time_behind(schedule, now_ms) - every;
        count = schedule->missed == WEIR_CRON_ONCE || now_ms - last <= GRACE_MS;
    }
    next = time_behind(schedule, last);
    if (count == 0 && comes_ms(schedule, next) <= now_ms) { /* ahead */
        count = 1;
        first = last = next;
        next += every;
    }
    if (plan->count != count)
        return "another number of times is due";
    for (size_t i = 0; i < count; i++)
        if (plan->times[i] != first + (int64_t)i * every)
            return "another time is due";
    if (plan->last_ms != last)
        return "times are over up to another one";
    if (plan->next_ms != (next > now_ms ? comes_ms(schedule, next) : now_ms))
        return "its tick comes at another time";
    return NULL;
}

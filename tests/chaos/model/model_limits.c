/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/chaos/model/model.h"

/* How many jobs may start and run, over all workers. */

#define FAR_US  1e5
#define SOON_US 1000.0

const struct rate rates[RATES] = {
    {"", 0, 0},
    {"1000/s", 1000, 100},
    {"10/s burst 3", 1e5, 3},
    {"11/s", 1e6 / 11, 2},
    {"3/10ms burst 50", 1e4 / 3, 50},
    {"20/m", 3e6, 1},
    {"1/s burst 0", 1e6, 1}, /* no worker would say so */
};

void model_limits_text(int rate, long long parallel, struct text *ret_text)
{
    if (rate == 0 && parallel == 0)
        return;
    text_format(ret_text, "%s|", rates[rate].text);
    if (parallel > 0)
        text_int(ret_text, parallel);
}

/* Claims so far give no token of this rate back. */
static void change_rate(struct model *model, int rate)
{
    if (rate == model->rate)
        return;
    model->rate = rate;
    model->rated = model->count.claimed;
    model->has_rated = true;
}

/* Its tokens come from now on. */
static void set_rate(struct model *model, int rate)
{
    double all_us = rates[rate].step_us * rates[rate].burst;

    change_rate(model, rate);
    if (rate != 0 && model->has_bucket)
        model->full_us =
            fmin(model->full_us, round((double)model->now_us + all_us));
}

/* What a worker says holds from now on where it knows what is stored. Else,
 * where nothing holds, it holds for this claim alone: true then. */
bool model_hear_limits(struct model *model, const struct claim_call *call)
{
    bool has_some = model->rate != 0 || model->parallel != 0;
    bool is_current = call->revision == model->revision;

    if (!call->says_limits || (!is_current && has_some) ||
        (call->rate == model->rate && call->parallel == model->parallel))
        return false;
    if (is_current)
        change_rate(model, call->rate);
    model->rate = call->rate;
    model->parallel = call->parallel;
    if (is_current && (call->rate != 0 || call->parallel != 0))
        model->offer.number = 0;
    return !is_current;
}

struct limit model_limit(const struct model *model)
{
    const struct rate *rate = &rates[model->rate];
    double now_us = (double)model->now_us, all = rate->step_us * rate->burst;
    struct limit limit = {.tokens = DBL_MAX, .places = DBL_MAX};
    long long running = 0;

    if (model->rate != 0) {
        limit.is_ahead = model->full_us > now_us + all;
        limit.full_us = fmin(fmax(model->full_us, now_us), now_us + all);
        limit.tokens =
            floor((now_us + all - limit.full_us) / rate->step_us + 1e-6);
    }
    for (size_t i = 0; model->parallel != 0 && i < model->live_count; i++)
        running += model->live[i]->state == RUNS;
    if (model->parallel != 0)
        limit.places =
            running < model->parallel ? (double)(model->parallel - running) : 0;
    return limit;
}

unsigned model_room(const struct model *model, const struct limit *limit,
                    const struct claim_call *call)
{
    double room = fmin(call->room, fmin(limit->tokens, limit->places));

    if (call->says_limits && call->revision != model->revision &&
        model->parallel != 0)
        room = fmin(room, 1);
    return (unsigned)room;
}

static void keep(struct model *model, double full_us)
{
    model->full_us = round(full_us);
    model->visit_us = round(model->visit_us);
    model->has_bucket = true;
}

struct next model_next(struct model *model, const struct limit *limit,
                       uint64_t jobs, int64_t due_ms, bool comes)
{
    const struct rate *rate = &rates[model->rate];
    double due_us = due_ms == INT64_MAX ? DBL_MAX : (double)due_ms * 1000;
    double full_us = limit->full_us + (double)jobs * rate->step_us, token_us;

    if (model->rate != 0 && jobs > 0 && limit->tokens * 2 >= rate->burst)
        model->high_us = (double)model->now_us;
    if (model->rate != 0 && (jobs > 0 || limit->is_ahead))
        keep(model, full_us);
    if (due_us == DBL_MAX || limit->places <= (double)jobs)
        return (struct next){INT64_MAX, false};
    if (limit->tokens > (double)jobs)
        return (struct next){due_ms * 1000, false};
    token_us = ceil(full_us - (rate->burst - 1) * rate->step_us);
    if (due_us >= token_us)
        return (struct next){due_ms * 1000, false};
    if (comes && rate->step_us < FAR_US) {
        model->visit_us =
            fmin(fmax(model->visit_us + fmax(rate->step_us, SOON_US), token_us),
                 token_us + FAR_US);
        token_us = ceil(model->visit_us);
        keep(model, full_us);
    }
    return (struct next){(int64_t)token_us, true};
}

void model_spare(struct model *model, const struct lease *lease, long long jobs)
{
    const struct rate *rate = &rates[model->rate];
    const char *since = strrchr(text_of(&lease->held), '@');
    double since_us = 0, gained_us, over_us;

    if (lease == NULL || jobs == 0 || model->rate == 0 || !model->has_bucket ||
        (long long)lease->token <= model->rated)
        return;
    if (since != NULL)
        since_us = (double)strtoll(since + 1, NULL, 10) * 1000;
    gained_us = fmax((double)model->now_us - since_us, 0);
    over_us = fmax((double)jobs - (double)rate->burst / 2, 0) * rate->step_us;
    if (since_us > model->high_us)
        gained_us = fmin(gained_us, over_us);
    model->full_us -= fmax((double)jobs * rate->step_us - gained_us, 0);
    model->full_us = floor(fmax(model->full_us, 0));
    for (int i = 0; i < WORKERS && jobs > 0 && !model->is_paused; i++) {
        struct worker *worker = &model->workers[i];

        if (!worker->is_idle || worker->wake_ms != INT64_MIN)
            continue;
        worker->is_idle = false;
        if (worker->is_subscribed)
            text_format(&model->woken, "%d ", i);
        jobs--;
    }
}

/* For what ready jobs wait, as stats tell it; 0: nothing. */
int model_limited(const struct model *model)
{
    struct limit limit = model_limit(model);

    if (limit.places <= 0)
        return 2;
    return limit.tokens <= 0 ? 1 : 0;
}

void model_set_limit(struct model *model, bool is_rate, long long value,
                     struct text *answer)
{
    model->exists = true;
    if (is_rate)
        set_rate(model, (int)value);
    else
        model->parallel = value;
    model->offer.number = 0;
    model->revision++;
    text_format(answer, "(%lld)", model->revision);
}

/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/run.h"

static void set(struct run *run, bool is_rate, long long value)
{
    call_script(&run->caller, SCRIPT_SET, 6, 3);
    call_keys(&run->caller, "options ids meta wait run dead");
    call_str(&run->caller, "delay");
    call_str(&run->caller, is_rate ? "rate" : "parallel");
    if (value == 0)
        call_str(&run->caller, chance(run, 50) ? "none" : "");
    else if (is_rate)
        call_str(&run->caller, rates[value].text);
    else
        call_int(&run->caller, value);
    call_queue(&run->caller);
    model_set_limit(&run->model, is_rate, value, &run->wanted);
    run_check(run);
}

/* Mostly there are none: others would starve what the run is to come by. */
void op_limits(struct run *run)
{
    bool is_rate = chance(run, 50);

    if (chance(run, 70))
        set(run, is_rate, 0);
    else
        set(run, is_rate, is_rate ? pick(run, RATES) : 1 + pick(run, 60));
}

void run_lift_limits(struct run *run)
{
    set(run, true, 0);
    set(run, false, 0);
}

/* What a worker says with its claim. */
void run_say_limits(struct run *run, struct claim_call *call)
{
    const struct model *model = &run->model;

    call->says_limits = chance(run, 20);
    call->rate = model->rate;
    call->parallel = model->parallel;
    if (chance(run, 20)) {
        call->rate = chance(run, 70) ? 0 : (int)pick(run, RATES);
        call->parallel = chance(run, 70) ? 0 : 1 + pick(run, 60);
    }
    call->revision = model->revision - (chance(run, 20) ? 1 : 0);
}

/* SPDX-License-Identifier: MIT */
#include "core/assert.h"
#include "core/lane.h"

/* Suspects: jobs that a worker had when it died. Which of them killed it is not
 * known, so each start is noted on the server first, and one of them at a time
 * is started, noted or pending: should this process die, the note names the
 * one that was running. While a note is on its way no other handler runs. */

void weir__suspect_put_aside(struct weir__run *run)
{
    struct weir__lane *lane = run->lane;

    WEIR_ASSERT(run->is_suspect && !run->is_noted);
    weir__run_push(&lane->suspects, run);
    weir__lane_list_push(lane, WEIR__LANES_SUSPECT);
}

/* Note the start of the next one, unless one is under way. */
void weir__suspect_next(struct weir__reactor *reactor)
{
    struct weir__lane *lane;
    struct weir__run *run;

    if (reactor->suspect != NULL)
        return;
    lane = weir__lane_list_pop(reactor, WEIR__LANES_SUSPECT);
    if (lane == NULL)
        return;
    run = weir__run_pop(&lane->suspects);
    if (lane->suspects.count > 0)
        weir__lane_list_push(lane, WEIR__LANES_SUSPECT);
    if (run == NULL)
        return; /* they were given back */
    WEIR_ASSERT(lane->store->ops->start != NULL);
    reactor->suspect = run;
    reactor->is_noting = true;
    lane->has_suspect = true;
    lane->store->ops->start(lane->topic, run);
}

/* It never runs here. */
static void forgo(struct weir__run *run, enum weir__outcome outcome)
{
    struct weir__lane *lane = run->lane;

    WEIR_ASSERT(lane->has_suspect && run->phase == WEIR__PHASE_READY);
    lane->has_suspect = false;
    run->outcome = outcome;
    weir__lane_settle(lane, run);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
}

void weir__suspect_started(void *user, struct weir__run *run, int code)
{
    struct weir__lane *lane = user;
    struct weir__reactor *reactor = lane->reactor;

    WEIR_ASSERT(reactor->suspect == run && reactor->is_noting);
    reactor->is_noting = false;
    if (code == WEIR_ENOTFOUND)
        forgo(run, WEIR__OUTCOME_TAKEN);
    else if (code < 0 || reactor->is_stopping)
        forgo(run, WEIR__OUTCOME_RETURN);
    else
        run->is_noted = true;
}

void weir__suspect_give_back(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    struct weir__run *run;

    if (lane->has_suspect && !reactor->is_noting)
        forgo(reactor->suspect, WEIR__OUTCOME_RETURN);
    for (;;) {
        run = weir__run_pop(&lane->suspects);
        if (run == NULL)
            return;
        run->outcome = WEIR__OUTCOME_RETURN;
        weir__lane_settle(lane, run);
    }
}

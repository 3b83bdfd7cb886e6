/* SPDX-License-Identifier: MIT */
#include "core/assert.h"
#include "core/lane.h"

/* Suspects: jobs that a worker had when it died. Which of them killed it is not
 * known, so each start is noted on the server first, and one of them at a time
 * is started: should this process die, the note names the one that was running.
 * While a note is on its way no other handler runs.
 *
 * Those that are pending may be many, or it would take long until a worker's
 * jobs in flight are under way again. Then more than one has a note when a
 * process dies; but who was blamed once, or may be blamed only once, is pending
 * alone from then on, so the innocent are blamed once at most. */

static bool must_be_alone(const struct weir__run *run)
{
    return run->blamed > 0 || run->lane->options->max_crashes < 2;
}

/* Its handler left it pending. */
void weir__suspect_pends(struct weir__run *run)
{
    struct weir__reactor *reactor = run->lane->reactor;

    if (reactor->suspect != run || must_be_alone(run))
        return;
    run->is_loose = true;
    reactor->suspect = NULL;
    reactor->loose_suspects++;
}

/* It is about to be handed to the store. */
void weir__suspect_settled(struct weir__run *run)
{
    struct weir__reactor *reactor = run->lane->reactor;

    if (reactor->suspect == run)
        reactor->suspect = NULL; /* the next one may start */
    if (run->is_loose)
        reactor->loose_suspects--;
}

/* Must the lane's next one wait for others? */
static bool must_wait(const struct weir__lane *lane)
{
    const struct weir__run *run = lane->suspects.first;

    return weir__lane_is_full(lane) || (run != NULL && must_be_alone(run) &&
                                        lane->reactor->loose_suspects > 0);
}

/* Those that wait for others have all of the room; nothing else is to come. */
bool weir__suspect_blocks(const struct weir__lane *lane)
{
    const struct weir__run *run = lane->reactor->suspect;

    if (lane->suspects.count == 0 || lane->coming + lane->ready.count > 0 ||
        lane->suspects.count < *lane->handler->wanted)
        return false;
    return run == NULL ? must_wait(lane) : !run->lane->has_suspect;
}

void weir__suspect_put_aside(struct weir__run *run)
{
    struct weir__lane *lane = run->lane;

    WEIR_ASSERT(run->is_suspect && !run->is_noted);
    weir__run_push(&lane->suspects, run);
    weir__lane_list_push(lane, WEIR__LANES_SUSPECT);
}

/* The next one whose lane need not wait; NULL: none. Each lane is looked at
 * once. */
static struct weir__run *take_next(struct weir__reactor *reactor)
{
    struct weir__lane *lane, *first_waiting = NULL;
    struct weir__run *run;

    for (;;) {
        lane = weir__lane_list_pop(reactor, WEIR__LANES_SUSPECT);
        if (lane == NULL)
            return NULL;
        run = must_wait(lane) ? NULL : weir__run_pop(&lane->suspects);
        if (lane->suspects.count > 0)
            weir__lane_list_push(lane, WEIR__LANES_SUSPECT);
        if (run != NULL || lane == first_waiting)
            return run;
        if (first_waiting == NULL && lane->suspects.count > 0)
            first_waiting = lane;
    }
}

/* Note the start of the next one, unless one is under way. */
void weir__suspect_next(struct weir__reactor *reactor)
{
    struct weir__lane *lane;
    struct weir__run *run =
        reactor->suspect != NULL ? NULL : take_next(reactor);

    if (run == NULL)
        return;
    lane = run->lane;
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
    else if (reactor->is_stopping || lane->is_leaving)
        forgo(run, WEIR__OUTCOME_RETURN);
    else if (code < 0)
        forgo(run, WEIR__OUTCOME_TAKEN); /* until its lease ends: what goes back
                                            wakes, and comes again at once */
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

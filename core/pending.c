/* SPDX-License-Identifier: MIT */
#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/probe.h"
#include "core/text.h"
#include "core/verdict.h"

#include <string.h>

/* Runs that finish later: from the handler's WEIR_PENDING until somebody
 * completes them, their timeout passes, or they are given up. */

/* --- the list ------------------------------------------------------------- */

void weir__lane_arm_timeout(struct weir__lane *lane)
{
    weir__lane_arm(&lane->timeout_at, lane->pending.first->started_ns +
                                          lane->options->timeout * WEIR__MS_NS);
}

void weir__run_pend(struct weir__run *run)
{
    struct weir__lane *lane = run->lane;

    WEIR_ASSERT(run->ticket != 0 && run->phase == WEIR__PHASE_RUNNING);
    run->phase = WEIR__PHASE_PENDING;
    run->previous = lane->pending.last;
    weir__run_push(&lane->pending, run);
    if (!lane->is_async) {
        lane->is_async = true;
        lane->window_ns = lane->reactor->now_ns;
    }
    if (lane->pending.first == run)
        weir__lane_arm_timeout(lane);
    weir__suspect_pends(run);
}

void weir__run_unpend(struct weir__run *run)
{
    struct weir__run_list *list = &run->lane->pending;

    WEIR_ASSERT(run->phase == WEIR__PHASE_PENDING && list->count > 0);
    if (run->previous == NULL)
        list->first = run->next;
    else
        run->previous->next = run->next;
    if (run->next == NULL)
        list->last = run->previous;
    else
        run->next->previous = run->previous;
    list->count--;
    run->previous = NULL;
    run->next = NULL;
    run->phase = WEIR__PHASE_RAN;
}

void weir__run_drop_ticket(struct weir__run *run)
{
    if (run->ticket == 0)
        return;
    weir__ticket_drop(&run->lane->reactor->tickets, run->ticket);
    run->ticket = 0;
}

/* --- completing ----------------------------------------------------------- */

/* How fast runs end, over no less than WEIR__HOLD_NS. */
static void note_end(struct weir__lane *lane)
{
    int64_t now_ns = lane->reactor->now_ns;

    lane->window_count++;
    if (now_ns - lane->window_ns < WEIR__HOLD_NS)
        return;
    lane->per_run_ns =
        (now_ns - lane->window_ns) / (int64_t)lane->window_count + 1;
    lane->window_ns = now_ns;
    lane->window_count = 0;
}

/* The verdict of a pending run is known. */
static void end(struct weir__run *run, enum weir_verdict verdict)
{
    struct weir__lane *lane = run->lane;

    weir__run_unpend(run);
    note_end(lane);
    weir__run_ended(run, verdict);
    weir__lane_list_push(lane, WEIR__LANES_RAN);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
    if (lane->ready.count > 0)
        weir__lane_list_push(lane, WEIR__LANES_READY);
}

/* `name` is name_of's, or NULL where nobody gave the run up, or it is not known
 * any more. */
static void warn_late(struct weir__reactor *reactor, const char *name)
{
    struct weir_log_line about = {.level = WEIR_LEVEL_WARN, .event = "late"};

    reactor->totals.late++;
    if (reactor->now_ns < reactor->late_warn_ns)
        return;
    reactor->late_warn_ns = reactor->now_ns + WEIR__WARN_NS;
    if (name != NULL) {
        about.topic = name;
        about.id = weir__slice_str(name + strlen(name) + 1);
    }
    weir__log_about(reactor->options.log, &about,
                    "a run was completed that is over (%s); %llu such "
                    "completions so far",
                    name == NULL ? "twice, too late, or given up"
                                 : "too late, or given up",
                    (unsigned long long)reactor->totals.late);
}

static void note_late(struct weir__reactor *reactor, uint64_t ticket)
{
    char *name = weir__ticket_shown(&reactor->tickets, ticket);

    if (ticket != reactor->canceling) /* its callback says: nothing will come */
        warn_late(reactor, name);
    weir__mem_free(name);
}

void weir__reactor_complete(struct weir__reactor *reactor, uint64_t ticket,
                            const struct weir__completion *completion)
{
    struct weir__run *run = weir__ticket_find(&reactor->tickets, ticket);

    if (run == NULL || run->phase == WEIR__PHASE_COMPLETED) {
        note_late(reactor, ticket);
        return;
    }
    if (completion->verdict == WEIR_RETRY_AFTER ||
        completion->verdict == WEIR_SNOOZE)
        run->job.host->job_set_delay(&run->job, completion->delay_ms);
    if (completion->why != NULL)
        run->job.host->job_set_reason(&run->job, completion->why);
    if (run->phase == WEIR__PHASE_PENDING) {
        end(run, completion->verdict);
        return;
    }
    WEIR_ASSERT(run->phase == WEIR__PHASE_RUNNING);
    run->phase = WEIR__PHASE_COMPLETED;
    run->verdict = completion->verdict;
}

/* --- giving up ------------------------------------------------------------ */

/* Topic, NUL, id, NUL; NULL when out of memory. */
static char *name_of(const struct weir__run *run)
{
    size_t len = strlen(run->lane->name);
    char *name = weir__mem_new(len + 1 + run->id.len + 1);

    if (name == NULL)
        return NULL;
    memcpy(name, run->lane->name, len);
    name[len] = '\0';
    memcpy(name + len + 1, run->id.ptr, run->id.len);
    return name;
}

/* What is completed from now on is late. Whoever has the handle may still do
 * it, which is remembered for so many. */
static void orphan(struct weir__run *run)
{
    struct weir__reactor *reactor = run->lane->reactor;

    if (reactor->tickets.orphans < WEIR__ORPHANS_MAX) {
        weir__ticket_orphan(&reactor->tickets, run->ticket, name_of(run));
        run->ticket = 0;
        return;
    }
    reactor->has_lost_track = true;
    weir__run_drop_ticket(run);
}

/* Maybe by a handler that frees the reactor or gives its runs back. */
static void call_cancel(struct weir__run *run, enum weir_cancel why)
{
    struct weir__reactor *reactor = run->lane->reactor;
    const struct weir__run *caller = reactor->calling;
    struct weir__call call = {.what = "the cancel callback",
                              .handler = run->handler->name,
                              .topic = run->lane->name};
    const struct weir__store *store = run->lane->store;

    weir__call_begin(store, &call);
    reactor->calling = run;
    run->cancel(&run->job, why, run->cancel_arg);
    reactor->calling = caller;
    (void)weir__call_end(store, &call); /* has no run */
}

/* The callback may complete other runs, add jobs, free the reactor. */
static void cancel(struct weir__run *run, enum weir_cancel why)
{
    struct weir__reactor *reactor = run->lane->reactor;

    reactor->canceling = run->ticket;
    if (run->handler->blocks) {
        weir__run_drop_ticket(run);
        weir__thread_run_forget(run);
    } else {
        orphan(run);
    }
    if (run->cancel != NULL)
        call_cancel(run, why);
    run->cancel = NULL;
    reactor->canceling = 0;
}

void weir__run_let_go(struct weir__run *run, enum weir__outcome outcome)
{
    struct weir__lane *lane = run->lane;

    weir__run_drop_ticket(run);
    weir__run_unpend(run);
    run->outcome = outcome;
    weir__lane_settle(lane, run);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
    if (lane->ready.count > 0)
        weir__lane_list_push(lane, WEIR__LANES_READY);
}

/* Ends a pending run without a verdict. */
static void give_up(struct weir__run *run, enum weir_cancel why,
                    enum weir__outcome outcome)
{
    cancel(run, why);
    weir__run_let_go(run, outcome);
}

/* It waited for a thread: the time counts from when one began with it, and
 * where none did it goes back as if it had not been claimed. */
static bool is_spared(struct weir__run *run, int64_t timeout_ns)
{
    struct weir__lane *lane = run->lane;
    int64_t began_ns = 0;

    if (run->thread_run != NULL)
        began_ns = weir__thread_run_began_ns(run);
    if (run->thread_run == NULL && run->handler->blocks) {
        give_up(run, WEIR_CANCEL_STOP, WEIR__OUTCOME_RETURN);
        return true;
    }
    if (began_ns + timeout_ns <= lane->reactor->now_ns)
        return false;
    weir__run_unpend(run);
    run->started_ns = began_ns;
    run->phase = WEIR__PHASE_RUNNING;
    weir__run_pend(run);
    return true;
}

void weir__lane_time_out(struct weir__lane *lane)
{
    int64_t timeout_ns = lane->options->timeout * WEIR__MS_NS;
    struct weir__run *run;

    for (;;) {
        run = lane->pending.first;
        if (run == NULL || lane->reactor->is_halted)
            return;
        if (run->started_ns + timeout_ns > lane->reactor->now_ns)
            break;
        if (is_spared(run, timeout_ns))
            continue;
        cancel(run, WEIR_CANCEL_TIMEOUT);
        run->is_timed_out = true;
        weir__follows_fini(&run->follows);
        lane->reactor->totals.timed_out++;
        run->job.host->job_set_reason(&run->job, WEIR__TIMEOUT_TEXT);
        end(run, WEIR_RETRY);
    }
    weir__lane_arm_timeout(lane);
}

static void give_up_all(struct weir__lane *lane, enum weir_cancel why,
                        enum weir__outcome outcome)
{
    while (lane->pending.first != NULL)
        give_up(lane->pending.first, why, outcome);
}

void weir__reactor_abort(struct weir__reactor *reactor)
{
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        give_up_all(lane, WEIR_CANCEL_STOP, WEIR__OUTCOME_RETURN);
}

size_t weir__reactor_drop_pending(struct weir__reactor *reactor)
{
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        give_up_all(lane, WEIR_CANCEL_STOP, WEIR__OUTCOME_TAKEN);
    return reactor->tickets.taken + reactor->tickets.orphans +
           reactor->has_lost_track;
}

static struct weir__run *find_token(const struct weir__run_list *list,
                                    uint64_t token)
{
    struct weir__run *run = list->first;

    while (run != NULL && run->token != token)
        run = run->next;
    return run;
}

/* What was not started under the token is kept from starting. */
static void drop_ready(struct weir__lane *lane, uint64_t token)
{
    struct weir__run_list ready = lane->ready;
    struct weir__run *run;

    lane->ready = (struct weir__run_list){0};
    for (;;) {
        run = weir__run_pop(&ready);
        if (run == NULL)
            return;
        if (run->token != token) {
            weir__run_push(&lane->ready, run);
            continue;
        }
        run->outcome = WEIR__OUTCOME_TAKEN;
        weir__lane_settle(lane, run);
    }
}

void weir__lane_lost(void *user, uint64_t token)
{
    struct weir__lane *lane = user;
    struct weir__run *run;

    lane->reactor->totals.lost++;
    WEIR__PROBE2(lease_lost, lane->name, token);
    drop_ready(lane, token);
    weir__ticks_lost(lane, token);
    for (;;) {
        run = find_token(&lane->pending, token);
        if (run == NULL)
            break;
        give_up(run, WEIR_CANCEL_LOST, WEIR__OUTCOME_TAKEN);
    }
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
}

/* SPDX-License-Identifier: MIT */
#include "core/lane.h"

#include "core/assert.h"
#include "core/chaos.h"
#include "core/mem.h"
#include "core/outcome_log.h"
#include "core/probe.h"
#include "core/random.h"
#include "core/verdict.h"

/* Running handlers, and what follows at the end of the turn. */

static int64_t clock_of(const struct weir__reactor *reactor)
{
    return reactor->options.clock(reactor->options.clock_arg);
}

/* NULL without memory: statistics are not worth a failure. */
static struct weir__times *times_of(struct weir__lane *lane)
{
    WEIR_ASSERT(lane->reactor->is_measuring);
    if (lane->times == NULL)
        lane->times = weir__mem_new(sizeof(*lane->times));
    return lane->times;
}

static void measure_lateness(struct weir__lane *lane, int64_t late_us)
{
    struct weir__times *times = times_of(lane);

    if (times == NULL)
        return;
    WEIR_ASSERT(late_us >= 0);
    times->late[weir__bucket_of(late_us)]++;
    times->late_sum_us += (uint64_t)late_us;
}

static void measure_run(const struct weir__run *run)
{
    struct weir__times *times = times_of(run->lane);
    int64_t us = (clock_of(run->lane->reactor) - run->started_ns) / 1000;

    if (times == NULL || us < 0 || run->handler == NULL)
        return; /* without a handler it was not run */
    times->took[weir__bucket_of(us)]++;
    times->took_sum_us += (uint64_t)us;
}

static void note_lateness(struct weir__lane *lane, int64_t late_us)
{
    if (lane->reactor->is_measuring)
        measure_lateness(lane, late_us);
    if (lane->late_counts == NULL)
        lane->late_counts = weir__mem_new(sizeof(uint32_t) * WEIR__BUCKETS);
    if (lane->late_counts == NULL)
        return; /* statistics are not worth a failure */
    lane->late_counts[weir__bucket_of(late_us)]++;
    if (late_us > lane->late_max_us)
        lane->late_max_us = late_us;
}

/* A running mean that follows a change within some ten runs. */
static void note_duration(struct weir__lane *lane, int64_t ns)
{
    if (ns < 1)
        ns = 1;
    if (lane->per_run_ns == 0)
        lane->per_run_ns = ns;
    lane->per_run_ns += (ns - lane->per_run_ns) / 8;
    if (lane->per_run_ns < 1)
        lane->per_run_ns = 1;
}

static bool is_verdict(enum weir_verdict verdict)
{
    return (int)verdict >= WEIR_DONE && (int)verdict <= WEIR_FAIL;
}

/* A job may start within its ttl after it became due, and not later. Its own
 * ttl beats that of the topic. */
static bool is_too_late(const struct weir__run *run)
{
    const struct weir__options *options = run->lane->options;
    int64_t ttl_ms = options->max_age > 0 ? options->max_age : options->ttl;

    if (run->record.ttl_ms > 0)
        ttl_ms = run->record.ttl_ms;
    return ttl_ms > 0 && run->start_late_us / 1000 > ttl_ms;
}

void weir__run_ended(struct weir__run *run, enum weir_verdict verdict)
{
    weir__run_drop_ticket(run);
    run->cancel = NULL;
    run->phase = WEIR__PHASE_RAN;
    run->verdict = verdict;
    if (!is_verdict(verdict)) {
        weir__log_job(run->lane->reactor->options.log, WEIR_LEVEL_ERROR,
                      run->lane->name, run->id,
                      "the handler gave %d, which is no verdict; the job fails",
                      (int)verdict);
        run->verdict = WEIR_FAIL;
        run->job.host->job_set_reason(&run->job,
                                      "the handler returned no verdict");
    }
    weir__run_push(&run->lane->ran, run);
    WEIR__PROBE4(verdict, run->lane->name, run->id.ptr, run->id.len,
                 run->verdict);
    if (run->lane->reactor->is_measuring)
        measure_run(run);
}

/* What the handler returned, unless it was completed while it ran. */
void weir__run_returned(struct weir__run *run, enum weir_verdict verdict)
{
    if (verdict != WEIR_PENDING) {
        weir__run_ended(run, verdict);
        return;
    }
    if (run->phase == WEIR__PHASE_COMPLETED) {
        weir__run_ended(run, run->verdict);
        return;
    }
    if (run->ticket != 0) {
        weir__run_pend(run);
        return;
    }
    weir__log_job(
        run->lane->reactor->options.log, WEIR_LEVEL_ERROR, run->lane->name,
        run->id,
        "the handler is pending without a handle, so nobody can finish it; "
        "the job is retried");
    run->job.host->job_set_reason(&run->job, "pending without a handle");
    weir__run_ended(run, WEIR_RETRY);
}

struct weir__call weir__run_call(struct weir__run *run)
{
    const struct weir__lane *lane = run->lane;

    return (struct weir__call){
        .handler = run->handler == NULL ? NULL : run->handler->name,
        .topic = lane->name,
        .run = run,
        .run_topic = lane->topic,
        .deadline_ns = run->started_ns + lane->options->timeout * WEIR__MS_NS,
    };
}

/* Code that is not weir's must not hold the loop: one warning a second names
 * what did. */
static void watch(struct weir__reactor *reactor, const struct weir__call *call,
                  int64_t ns)
{
    int64_t most_ms = reactor->options.block_warn_ms;
    struct weir__held held;

    if (most_ms == 0 || ns <= most_ms * WEIR__MS_NS ||
        reactor->now_ns < reactor->blocked_warn_ns)
        return;
    reactor->blocked_warn_ns = reactor->now_ns + WEIR__WARN_NS;
    weir__call_copy(call, &held);
    weir__held_log_ended(&held, reactor->options.log, ns, most_ms);
}

/* A handler of `count` runs, the first of which is `run`, held the loop. */
void weir__lane_took(struct weir__lane *lane, const struct weir__call *call,
                     size_t count, bool is_pending)
{
    struct weir__reactor *reactor = lane->reactor;
    int64_t ns;

    WEIR_ASSERT(count > 0 && call->run->lane == lane);
    reactor->now_ns = clock_of(reactor);
    ns = reactor->now_ns - call->run->started_ns;
    watch(reactor, call, ns);
    if (!lane->is_async && !is_pending)
        note_duration(lane, ns / (int64_t)count);
}

static void call(struct weir__lane *lane, struct weir__run *run)
{
    struct weir__call holding = weir__run_call(run);
    enum weir_verdict verdict;
    bool is_taken;

    run->phase = WEIR__PHASE_RUNNING;
    if (lane->handler->blocks) {
        weir__thread_run_begin(run);
        return;
    }
    weir__call_begin(lane->store, &holding);
    lane->reactor->calling = run;
    WEIR__STEP("run");
    verdict = run->handler->run(run->handler->self, &run->job);
    WEIR__STEP("ran");
    lane->reactor->calling = NULL;
    is_taken = weir__call_end(lane->store, &holding);
    weir__lane_took(lane, &holding, 1, is_taken || verdict == WEIR_PENDING);
    if (is_taken)
        weir__run_taken(run);
    else
        weir__run_returned(run, verdict);
}

/* Jobs that must not run have their verdict by what they are. */
static bool may_run(const struct weir__run *run)
{
    return !run->is_malformed && !run->is_expired && !run->is_crashed;
}

/* True if its handler is to be called; else it has ended. */
bool weir__run_begin(struct weir__lane *lane, struct weir__run *run)
{
    WEIR_ASSERT(run->lane == lane && run->magic == WEIR__RUN_MAGIC);
    run->started_ns = lane->reactor->now_ns;
    run->start_late_us = weir__run_late_us(run, run->started_ns);
    if (!run->is_adopted) {
        note_lateness(lane, run->start_late_us);
        run->is_expired = is_too_late(run);
    }
    if (!may_run(run)) {
        weir__run_ended(run, WEIR_DONE);
        return false;
    }
    lane->reactor->totals.started++;
    WEIR__PROBE4(start, lane->name, run->id.ptr, run->id.len,
                 run->start_late_us);
    weir__handler_hold(run, lane->handler);
    return true;
}

/* Returns how many ran: a handler of many jobs takes others along. */
static size_t run_one(struct weir__lane *lane, struct weir__run *run)
{
    if (!weir__run_begin(lane, run))
        return 1;
    if (lane->handler->run_batch != NULL && !lane->handler->blocks)
        return weir__batch_run(lane, run);
    call(lane, run);
    return 1;
}

bool weir__lane_is_full(const struct weir__lane *lane)
{
    return lane->pending.count >= weir__lane_limit(lane) ||
           weir__thread_run_is_full(lane);
}

/* One visit: at most the lane's share of runs. Returns how many ran. */
static size_t visit(struct weir__lane *lane, int64_t until_ns)
{
    const struct weir__reactor *reactor = lane->reactor;
    size_t quantum = (size_t)lane->options->weight * WEIR__QUANTUM, ran = 0;

    /* They may have come late: the process was stopped after the claim. Claims
     * of stores that keep no lease by themselves may wait for long. */
    if (lane->store->ops->kept_ns != NULL)
        weir__lane_give_back_stale(lane);
    while (ran < quantum && !reactor->is_halted && !weir__lane_is_full(lane)) {
        struct weir__run *run = weir__run_pop(&lane->ready);

        if (run == NULL)
            break;
        ran += run_one(lane, run);
        if (reactor->now_ns >= until_ns)
            break;
    }
    return ran;
}

static void after_visit(struct weir__lane *lane)
{
    weir__lane_list_push(lane, WEIR__LANES_RAN);
    weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
    if (lane->ready.count == 0)
        return;
    if (!weir__lane_is_full(lane))
        weir__lane_list_push(lane, WEIR__LANES_READY);
}

/* The suspect whose start is noted goes before everything else. */
static void run_suspect(struct weir__reactor *reactor)
{
    struct weir__run *run = reactor->suspect;

    if (run == NULL || !run->is_noted || run->phase != WEIR__PHASE_READY)
        return;
    run->lane->has_suspect = false;
    (void)run_one(run->lane, run);
    after_visit(run->lane);
}

bool weir__dispatch(struct weir__reactor *reactor)
{
    int64_t until_ns = reactor->now_ns + WEIR__TURN_NS;
    size_t ran = 0;

    run_suspect(reactor);
    weir__suspect_next(reactor);
    while (ran < WEIR__TURN_RUNS && reactor->now_ns < until_ns &&
           !reactor->is_halted && !reactor->is_noting) {
        struct weir__lane *lane =
            weir__lane_list_pop(reactor, WEIR__LANES_READY);

        if (lane == NULL)
            break;
        ran += visit(lane, until_ns);
        after_visit(lane);
        weir__suspect_next(reactor);
    }
    return reactor->lists[WEIR__LANES_READY].first != NULL &&
           !reactor->is_noting;
}

/* What the handler promised with DONE is not durable: run it again. */
static void flush_failed(struct weir__lane *lane,
                         const struct weir__handler *handler, bool is_short)
{
    weir__log(lane->reactor->options.log, WEIR_LEVEL_ERROR,
              "%s: the handler could not flush, its finished jobs %s",
              lane->name,
              is_short ? "wait for 1 s and lose no attempt" : "are retried");
    for (struct weir__run *run = lane->ran.first; run != NULL;
         run = run->next) {
        if (run->handler != handler || run->verdict != WEIR_DONE)
            continue;
        weir__follows_fini(&run->follows);
        run->verdict = is_short ? weir_snooze(&run->job, WEIR__SHORT_MS)
                                : weir_retry(&run->job, "flush failed");
    }
}

static void report_lateness(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;

    if (lane->late_counts == NULL || lane->late_max_us < 0 ||
        reactor->now_ns < lane->late_at_ns)
        return;
    lane->store->ops->lateness(lane->topic, lane->late_counts,
                               lane->late_max_us);
    for (size_t i = 0; i < WEIR__BUCKETS; i++)
        lane->late_counts[i] = 0;
    lane->late_max_us = -1;
    lane->late_at_ns = reactor->now_ns + WEIR__LATENESS_NS;
}

static void count(struct weir_totals *totals, const struct weir__run *run)
{
    if (run->outcome == WEIR__OUTCOME_DONE)
        totals->done++;
    else if (run->outcome == WEIR__OUTCOME_RETRY)
        totals->retried++;
    else if (run->outcome == WEIR__OUTCOME_SNOOZE)
        totals->snoozed++;
    else if (run->outcome == WEIR__OUTCOME_DEAD && run->is_expired)
        totals->expired++;
    else if (run->outcome == WEIR__OUTCOME_DEAD)
        totals->dead++;
    else if (run->outcome == WEIR__OUTCOME_RETURN)
        totals->returned++;
}

void weir__lane_settle(struct weir__lane *lane, struct weir__run *run)
{
    WEIR_ASSERT(run->lane == lane && run->magic == WEIR__RUN_MAGIC);
    count(&lane->reactor->totals, run);
    if (run->outcome == WEIR__OUTCOME_RETRY ||
        run->outcome == WEIR__OUTCOME_DEAD)
        weir__lane_log_outcome(lane, run);
    weir__suspect_settled(run);
    run->is_unstarted = run->is_unstarted || run->handler == NULL;
    weir__handler_release(run);
    WEIR__PROBE4(settle, lane->name, run->id.ptr, run->id.len, run->outcome);
    lane->store->ops->settle(lane->topic, run);
}

/* The store settled it under its token while the handler held the loop, and
 * decided what becomes of it as it is decided here. */
void weir__run_taken(struct weir__run *run)
{
    const struct weir_log_field timeout = {"timeout_ms", NULL,
                                           run->lane->options->timeout};
    const struct weir_log_line about = {
        .level = WEIR_LEVEL_WARN,
        .topic = run->lane->name,
        .id = run->id,
        .event = "late",
        .fields = &timeout,
        .field_count = 1,
    };
    struct weir_totals *totals = &run->lane->reactor->totals;
    char why[] = WEIR__TIMEOUT_TEXT;
    struct weir__run settled;

    weir__log_about(
        run->lane->reactor->options.log, &about,
        "it ran longer than its timeout of %lld ms and was settled as timed "
        "out; its verdict is ignored",
        (long long)timeout.number);
    weir__run_overdue(run, &settled);
    settled.reason = why;
    totals->timed_out++;
    count(totals, &settled);
    weir__lane_log_outcome(run->lane, &settled);
    weir__run_drop_ticket(run);
    run->outcome = WEIR__OUTCOME_TAKEN;
    weir__lane_settle(run->lane, run);
}

static void flush(struct weir__lane *lane, const struct weir__handler *handler)
{
    struct weir__reactor *reactor = lane->reactor;
    struct weir__call call = {
        .what = "the flush", .handler = handler->name, .topic = lane->name};
    int64_t began_ns;
    int rc;

    if (handler->flush == NULL)
        return;
    began_ns = clock_of(reactor);
    weir__call_begin(lane->store, &call);
    reactor->flushing = handler;
    rc = handler->flush(handler->self);
    reactor->flushing = NULL;
    (void)weir__call_end(lane->store, &call); /* has no run */
    reactor->now_ns = clock_of(reactor);
    watch(reactor, &call, reactor->now_ns - began_ns);
    if (rc != 0)
        flush_failed(lane, handler, rc == WEIR_SNOOZE);
}

static void flush_all(struct weir__lane *lane)
{
    if (lane->handler != NULL)
        flush(lane, lane->handler);
    for (const struct weir__handler *handler = lane->reactor->replaced;
         handler != NULL; handler = handler->next)
        if (handler->lane == lane)
            flush(lane, handler);
}

static void finish_lane(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    struct weir__run *run;

    flush_all(lane);
    for (;;) {
        run = weir__run_pop(&lane->ran);
        if (run == NULL)
            break;
        weir__run_decide(run, &lane->options->retry,
                         lane->options->retry_jitter,
                         weir__random_next(&reactor->random));
        weir__lane_settle(lane, run);
    }
    report_lateness(lane);
}

/* The end of a turn: instances make durable what they promised, outcomes are
 * decided, the store gets them. */
void weir__dispatch_finish(struct weir__reactor *reactor)
{
    struct weir__lane *lane;

    for (;;) {
        lane = weir__lane_list_pop(reactor, WEIR__LANES_RAN);
        if (lane == NULL)
            return;
        finish_lane(lane);
    }
}

/* SPDX-License-Identifier: MIT */
#include "core/lane.h"

#include "core/assert.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/verdict.h"

/* Running handlers, and what follows at the end of the turn. */

static int64_t clock_of(const struct weir__reactor *reactor)
{
    return reactor->options.clock(reactor->options.clock_arg);
}

static void note_lateness(struct weir__lane *lane, int64_t late_us)
{
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
static bool is_too_late(const struct weir__run *run, int64_t late_us)
{
    int64_t ttl_ms =
        run->record.ttl_ms > 0 ? run->record.ttl_ms : run->lane->options.ttl_ms;

    return ttl_ms > 0 && late_us / 1000 > ttl_ms;
}

static void run_one(struct weir__lane *lane, struct weir__run *run)
{
    struct weir__reactor *reactor = lane->reactor;
    int64_t start_ns = reactor->now_ns;
    int64_t late_us = weir__run_late_us(run, start_ns);

    note_lateness(lane, late_us);
    run->is_expired = is_too_late(run, late_us);
    if (!run->is_malformed && !run->is_expired)
        run->verdict = lane->options.run(lane->options.self, &run->job);
    reactor->now_ns = clock_of(reactor);
    note_duration(lane, reactor->now_ns - start_ns);
    if (!is_verdict(run->verdict)) {
        weir__log(reactor->options.log, WEIR_LEVEL_ERROR,
                  "%s %.*s: the handler returned %d, which is no verdict; the "
                  "job fails",
                  lane->name, (int)run->id.len, (const char *)run->id.ptr,
                  (int)run->verdict);
        run->verdict = WEIR_FAIL;
        run->job.host->job_set_reason(&run->job,
                                      "the handler returned no verdict");
    }
    weir__run_push(&lane->ran, run);
}

/* One visit: at most the lane's share of runs. Returns how many ran. */
static size_t visit(struct weir__lane *lane, int64_t until_ns)
{
    const struct weir__reactor *reactor = lane->reactor;
    size_t quantum = (size_t)lane->options.weight * WEIR__QUANTUM, ran = 0;

    while (ran < quantum && !reactor->is_halted) {
        struct weir__run *run = weir__run_pop(&lane->ready);

        if (run == NULL)
            break;
        run_one(lane, run);
        ran++;
        if (reactor->now_ns >= until_ns)
            break;
    }
    return ran;
}

bool weir__dispatch(struct weir__reactor *reactor)
{
    int64_t until_ns = reactor->now_ns + WEIR__TURN_NS;
    size_t ran = 0;

    while (ran < WEIR__TURN_RUNS && reactor->now_ns < until_ns &&
           !reactor->is_halted) {
        struct weir__lane *lane =
            weir__lane_list_pop(reactor, WEIR__LANES_READY);

        if (lane == NULL)
            return false;
        ran += visit(lane, until_ns);
        weir__lane_list_push(lane, WEIR__LANES_RAN);
        weir__lane_list_push(lane, WEIR__LANES_HUNGRY);
        if (lane->ready.count > 0)
            weir__lane_list_push(lane, WEIR__LANES_READY);
    }
    return reactor->lists[WEIR__LANES_READY].first != NULL;
}

/* What the handler promised with DONE is not durable: run it again. */
static void flush_failed(struct weir__lane *lane)
{
    weir__log(lane->reactor->options.log, WEIR_LEVEL_ERROR,
              "%s: the handler could not flush, its finished jobs are retried",
              lane->name);
    for (struct weir__run *run = lane->ran.first; run != NULL;
         run = run->next) {
        if (run->verdict != WEIR_DONE || run->is_malformed)
            continue;
        run->verdict = WEIR_RETRY;
        run->job.host->job_set_reason(&run->job, "flush failed");
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

static void finish_lane(struct weir__lane *lane)
{
    struct weir__reactor *reactor = lane->reactor;
    const struct weir__lane_options *options = &lane->options;
    struct weir__run *run;

    if (options->flush != NULL && options->flush(options->self) != 0)
        flush_failed(lane);
    for (;;) {
        run = weir__run_pop(&lane->ran);
        if (run == NULL)
            break;
        weir__run_decide(run, &options->ladder, options->retry_jitter,
                         weir__random_next(&reactor->random));
        lane->store->ops->settle(lane->topic, run);
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

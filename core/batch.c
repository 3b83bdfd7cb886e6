/* SPDX-License-Identifier: MIT */
#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* Handlers of many jobs at once. */

void weir__batch_free(struct weir__lane *lane)
{
    weir__mem_free(lane->batch);
    weir__mem_free(lane->batch_verdicts);
}

/* Without memory batches stay as small as they were. */
static void make_room(struct weir__lane *lane)
{
    size_t cap = lane->options->batch;
    struct weir_job **jobs;
    enum weir_verdict *verdicts;

    if (lane->batch_cap >= cap)
        return;
    jobs = weir__mem_grow(lane->batch, cap, sizeof(struct weir_job *));
    if (jobs == NULL)
        return;
    lane->batch = jobs;
    verdicts = weir__mem_grow(lane->batch_verdicts, cap, sizeof(*verdicts));
    if (verdicts == NULL)
        return;
    lane->batch_verdicts = verdicts;
    lane->batch_cap = cap;
}

/* As many as may be pending at once, too: each of them may be that. */
static size_t most_of(const struct weir__lane *lane,
                      const struct weir__run *run)
{
    size_t most = lane->options->batch;
    size_t concurrency = weir__lane_limit(lane);
    size_t free = concurrency > lane->pending.count
                      ? concurrency - lane->pending.count
                      : 1;

    if (run->is_suspect || lane->batch_cap < 2)
        return 1;
    if (most > lane->batch_cap)
        most = lane->batch_cap;
    return most > free ? free : most;
}

/* Take along what is ready behind the first one, and of its group. Returns how
 * many there are; *ret_ended counts those that must not run. */
static size_t gather(struct weir__lane *lane, struct weir__run *first,
                     size_t most, size_t *ret_ended)
{
    size_t count = 1;

    lane->batch[0] = &first->job;
    while (count < most && lane->ready.first != NULL &&
           weir__slice_equal(lane->ready.first->group, first->group)) {
        struct weir__run *run = weir__run_pop(&lane->ready);

        if (weir__run_begin(lane, run))
            lane->batch[count++] = &run->job;
        else
            (*ret_ended)++;
    }
    return count;
}

/* One verdict for all: what goes with it was given to the first job. */
static void spread(struct weir_job *const *jobs, size_t count,
                   enum weir_verdict *verdicts, enum weir_verdict verdict)
{
    const struct weir__run *first = weir__run_of(jobs[0]);

    verdicts[0] = verdict;
    for (size_t i = 1; i < count; i++) {
        struct weir__run *run = weir__run_of(jobs[i]);

        verdicts[i] = verdict;
        run->delay_ms = first->delay_ms;
        if (run->reason == NULL && first->reason != NULL)
            jobs[i]->host->job_set_reason(jobs[i], first->reason);
    }
}

/* The handler holds the loop: the store looks after the first job's lease, and
 * with it after those of the others. */
static bool call(struct weir__lane *lane, struct weir_job *const *jobs,
                 size_t count, enum weir_verdict *verdicts)
{
    struct weir__run *first = weir__run_of(jobs[0]);
    struct weir__call holding = weir__run_call(first);
    enum weir_verdict verdict;
    bool is_taken;

    for (size_t i = 0; i < count; i++) {
        weir__run_of(jobs[i])->phase = WEIR__PHASE_RUNNING;
        verdicts[i] = WEIR_DONE;
    }
    weir__call_begin(lane->store, &holding);
    lane->reactor->calling_count = count;
    lane->reactor->calling = first;
    verdict =
        first->handler->run_batch(first->handler->self, jobs, count, verdicts);
    lane->reactor->calling = NULL;
    lane->reactor->calling_count = 1;
    is_taken = weir__call_end(lane->store, &holding);
    weir__lane_took(lane, &holding, count, is_taken || verdict == WEIR_PENDING);
    if (verdict != WEIR_EACH && verdict != WEIR_DONE)
        spread(jobs, count, verdicts, verdict);
    return is_taken;
}

size_t weir__batch_run(struct weir__lane *lane, struct weir__run *run)
{
    struct weir_job *alone[1] = {&run->job}, **jobs = alone;
    enum weir_verdict verdict, *verdicts = &verdict;
    size_t count = 1, ended = 0;
    bool is_taken;

    make_room(lane);
    if (most_of(lane, run) > 1) {
        count = gather(lane, run, most_of(lane, run), &ended);
        jobs = lane->batch;
        verdicts = lane->batch_verdicts;
    }
    is_taken = call(lane, jobs, count, verdicts);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 && is_taken)
            weir__run_taken(run);
        else
            weir__run_returned(weir__run_of(jobs[i]), verdicts[i]);
    }
    return count + ended;
}

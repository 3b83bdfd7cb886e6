/* SPDX-License-Identifier: MIT */
#include "core/verdict.h"

#include "core/assert.h"
#include "core/lane.h"
#include "core/random.h"
#include "core/text.h"

static void die(struct weir__run *run, const char *reason)
{
    run->record.reason = weir__slice_str(reason);
    run->outcome = WEIR__OUTCOME_DEAD;
}

static void count_failure(struct weir__run *run)
{
    run->record.counters.attempt++;
    run->record.counters.failures++;
    run->record.error = weir__slice_str(run->reason);
}

const struct weir__ladder *weir__run_ladder(const struct weir__run *run,
                                            const struct weir__ladder *ladder,
                                            struct weir__ladder *own)
{
    return run->record.retry.len > 0 &&
                   weir__ladder_parse(run->record.retry, own, NULL) == WEIR_OK
               ? own
               : ladder;
}

uint32_t weir__run_retries(const struct weir__run *run)
{
    uint32_t attempt = run->record.counters.attempt;

    return run->record.spent < attempt ? attempt - run->record.spent : 0;
}

static void decide_retry(struct weir__run *run,
                         const struct weir__ladder *ladder,
                         uint32_t jitter_percent, uint64_t random)
{
    struct weir__ladder own;
    int64_t delay_ms = weir__ladder_delay_ms(
        weir__run_ladder(run, ladder, &own), weir__run_retries(run));

    count_failure(run);
    if (delay_ms < 0) {
        die(run, "exhausted");
        return;
    }
    if (run->verdict == WEIR_RETRY)
        run->delay_ms = weir__jitter_ms(delay_ms, jitter_percent, random);
    run->outcome = WEIR__OUTCOME_RETRY;
}

void weir__run_decide(struct weir__run *run, const struct weir__ladder *ladder,
                      uint32_t jitter_percent, uint64_t random)
{
    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC);
    WEIR_ASSERT(run->outcome == WEIR__OUTCOME_NONE);
    if (run->is_malformed) {
        die(run, "malformed");
        return;
    }
    if (run->is_expired) {
        die(run, "expired");
        return;
    }
    if (run->is_crashed) {
        die(run, "crashed");
        return;
    }
    run->record.counters.timeouts += run->is_timed_out;
    switch (run->verdict) {
    case WEIR_DONE:
        run->outcome = WEIR__OUTCOME_DONE;
        return;
    case WEIR_RETRY:
    case WEIR_RETRY_AFTER:
        decide_retry(run, ladder, jitter_percent, random);
        return;
    case WEIR_SNOOZE:
        run->record.counters.snoozes++;
        run->outcome = WEIR__OUTCOME_SNOOZE;
        return;
    case WEIR_FAIL:
        count_failure(run);
        die(run, "failed");
        return;
    case WEIR_PENDING:
    case WEIR_EACH:
    default:
        /* Dispatch replaces what is no verdict. */
        WEIR_UNREACHABLE("a verdict that dispatch let through");
    }
}

bool weir__run_attempt(const struct weir__run *run,
                       struct weir_attempt *ret_attempt)
{
    if ((run->outcome != WEIR__OUTCOME_RETRY &&
         run->outcome != WEIR__OUTCOME_DEAD) ||
        run->is_malformed || run->is_expired || run->is_crashed)
        return false;
    *ret_attempt = (struct weir_attempt){
        .outcome = run->is_timed_out           ? WEIR_ATTEMPT_TIMEOUT
                   : run->verdict == WEIR_FAIL ? WEIR_ATTEMPT_FAIL
                                               : WEIR_ATTEMPT_RETRY,
        .error = run->record.error,
    };
    return true;
}

/* Only what the handler cannot change is read. */
void weir__run_overdue(const struct weir__run *run, struct weir__run *ret_copy)
{
    const struct weir__options *options = run->lane->options;
    uint64_t random = run->token ^ (uint64_t)run->node << 32 ^ run->slot;

    *ret_copy = (struct weir__run){
        .job = {&weir__host},
        .magic = WEIR__RUN_MAGIC,
        .lane = run->lane,
        .batch = run->batch,
        .node = run->node,
        .slot = run->slot,
        .id = run->id,
        .record = run->record,
        .token = run->token,
        .due_ms = run->due_ms,
        .late_us = run->late_us,
        .claimed_ns = run->claimed_ns,
        .start_late_us = run->start_late_us,
        .verdict = WEIR_RETRY,
        .is_timed_out = true,
    };
    weir__run_decide(ret_copy, &options->retry, options->retry_jitter,
                     weir__random_next(&random));
    ret_copy->record.error = weir__slice_str(WEIR__TIMEOUT_TEXT);
}

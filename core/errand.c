/* SPDX-License-Identifier: MIT */
#include "core/errand.h"

#include <string.h>

#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

enum { AHEAD_MAX = 1024 }; /* errands that wait for a thread */

/* --- the copy ------------------------------------------------------------- */

static struct weir_slice copy_slice(uint8_t **to, struct weir_slice slice)
{
    struct weir_slice copy = {*to, slice.len};

    if (slice.len > 0)
        memcpy(*to, slice.ptr, slice.len);
    *to += slice.len;
    return copy;
}

/* What handlers can read is copied, the rest is left out. */
static struct weir__errand *errand_new(const struct weir__run *run)
{
    const struct weir__record *record = &run->record;
    struct weir__errand *errand;
    uint8_t *to;

    errand =
        weir__mem_new(sizeof(*errand) + run->id.len + record->url.len +
                      record->headers.len + record->body.len + run->group.len);
    if (errand == NULL)
        return NULL;
    to = errand->bytes;
    errand->run = (struct weir__run){
        .job = run->job,
        .magic = WEIR__RUN_MAGIC,
        .lane = run->lane,
        .errand = errand,
        .id = copy_slice(&to, run->id),
        .record =
            {
                .counters = record->counters,
                .url = copy_slice(&to, record->url),
                .headers = copy_slice(&to, record->headers),
                .body = copy_slice(&to, record->body),
            },
        .group = copy_slice(&to, run->group),
        .token = run->token,
        .due_ms = run->due_ms,
        .phase = WEIR__PHASE_RUNNING,
        .start_late_us = run->start_late_us,
    };
    errand->ticket = run->ticket;
    errand->fn = run->lane->run;
    errand->self = run->lane->self;
    return errand;
}

void weir__errand_free(struct weir__errand *errand)
{
    weir__run_fini(&errand->run);
    weir__mem_free(errand->tally);
    weir__mem_free(errand);
}

void weir__errand_do(struct weir__errand *errand)
{
    struct weir__run *run = &errand->run;

    WEIR_ASSERT(run->errand == errand);
    run->verdict = errand->fn(errand->self, &run->job);
    if (run->verdict != WEIR_PENDING)
        return;
    run->job.host->job_log(&run->job, WEIR_LEVEL_ERROR,
                           "a handler that blocks cannot be pending; the job "
                           "is retried");
    run->job.host->job_set_reason(&run->job, "pending in a thread");
    run->verdict = WEIR_RETRY;
}

void weir__errand_log(const struct weir__errand *errand,
                      const struct weir__log *log, enum weir_level level,
                      const char *text)
{
    const struct weir__run *run = &errand->run;

    weir__log_job(log, level, run->lane->name, run->id, "%s", text);
}

/* --- giving away ---------------------------------------------------------- */

bool weir__lane_is_blocking(const struct weir__lane *lane)
{
    return lane->blocks && lane->reactor->options.pool != NULL;
}

/* Some wait in the pool where handlers are so quick that threads would idle
 * while the loop learns of the last ones and hands out the next ones. */
bool weir__errand_is_full(const struct weir__lane *lane)
{
    const struct weir__reactor *reactor = lane->reactor;
    int64_t ahead =
        lane->per_run_ns == 0 ? 0 : WEIR__HOLD_NS / lane->per_run_ns;

    if (!weir__lane_is_blocking(lane))
        return false;
    if (ahead > AHEAD_MAX)
        ahead = AHEAD_MAX;
    return reactor->errands >= reactor->options.pool->threads + (size_t)ahead;
}

void weir__errand_begin(struct weir__run *run)
{
    struct weir__reactor *reactor = run->lane->reactor;
    struct weir__pool *pool = reactor->options.pool;

    run->ticket = weir__ticket_take(&reactor->tickets, run);
    run->errand = run->ticket == 0 ? NULL : errand_new(run);
    if (run->errand == NULL) {
        run->job.host->job_set_reason(&run->job, "out of memory");
        weir__run_ended(run, WEIR_RETRY);
        return;
    }
    reactor->errands++;
    weir__run_pend(run);
    pool->start(pool, run->errand);
}

/* One errand less is away: lanes that waited for that may go on. */
static void one_less(struct weir__reactor *reactor)
{
    WEIR_ASSERT(reactor->errands > 0);
    reactor->errands--;
    if (!reactor->is_awaiting_errands)
        return;
    reactor->is_awaiting_errands = false;
    for (struct weir__lane *lane = reactor->lanes; lane != NULL;
         lane = lane->next)
        if (lane->ready.count > 0 && lane->blocks)
            weir__lane_list_push(lane, WEIR__LANES_READY);
}

int64_t weir__errand_began_ns(struct weir__run *run)
{
    struct weir__reactor *reactor = run->lane->reactor;
    struct weir__pool *pool = reactor->options.pool;
    int64_t began_ns = pool->recall(pool, run->errand);

    if (began_ns != 0)
        return began_ns;
    weir__errand_free(run->errand);
    run->errand = NULL;
    one_less(reactor);
    return 0;
}

/* The run is given up. */
void weir__errand_forget(struct weir__run *run)
{
    struct weir__pool *pool = run->lane->reactor->options.pool;

    if (run->errand == NULL || weir__errand_began_ns(run) == 0)
        return;
    pool->cancel(pool, run->errand);
    run->errand = NULL;
}

/* --- coming back ---------------------------------------------------------- */

static void note_too_late(struct weir__reactor *reactor,
                          const struct weir__errand *errand)
{
    reactor->totals.late++;
    weir__log_job(reactor->options.log, WEIR_LEVEL_WARN, errand->run.lane->name,
                  errand->run.id,
                  "the handler came back when its run was over; its verdict is "
                  "ignored");
}

void weir__reactor_returned(struct weir__reactor *reactor,
                            struct weir__errand *errand)
{
    struct weir__run *run =
        weir__ticket_find(&reactor->tickets, errand->ticket);
    struct weir__completion completion = {
        .verdict = errand->run.verdict,
        .delay_ms = errand->run.delay_ms,
        .why = errand->run.reason,
    };

    if (errand->tally != NULL)
        weir__lane_counted(errand->run.lane, errand->tally);
    if (run == NULL) {
        note_too_late(reactor, errand);
    } else {
        WEIR_ASSERT(run->errand == errand);
        run->errand = NULL;
        run->follows = errand->run.follows;
        errand->run.follows = (struct weir__follows){0};
        weir__reactor_complete(reactor, errand->ticket, &completion);
    }
    weir__errand_free(errand);
    one_less(reactor);
}

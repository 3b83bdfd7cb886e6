/* SPDX-License-Identifier: MIT */
#include "core/thread_run.h"

#include <string.h>

#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

enum { AHEAD_MAX = 1024 }; /* thread runs that wait for a thread */

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
static struct weir__thread_run *thread_run_new(const struct weir__run *run)
{
    const struct weir__record *record = &run->record;
    struct weir__thread_run *thread_run;
    uint8_t *to;

    thread_run =
        weir__mem_new(sizeof(*thread_run) + run->id.len + record->url.len +
                      record->headers.len + record->body.len + run->group.len);
    if (thread_run == NULL)
        return NULL;
    to = thread_run->bytes;
    thread_run->run = (struct weir__run){
        .job = run->job,
        .magic = WEIR__RUN_MAGIC,
        .lane = run->lane,
        .thread_run = thread_run,
        .id = copy_slice(&to, run->id),
        .record =
            {
                .counters = record->counters,
                .added_ms = record->added_ms,
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
    thread_run->ticket = run->ticket;
    thread_run->share = &run->lane->pool_share;
    weir__handler_hold(&thread_run->run, run->handler);
    return thread_run;
}

void weir__thread_run_free(struct weir__thread_run *thread_run)
{
    weir__run_fini(&thread_run->run);
    weir__mem_free(thread_run->counters);
    weir__mem_free(thread_run);
}

void weir__thread_run_do(struct weir__thread_run *thread_run)
{
    struct weir__run *run = &thread_run->run;

    WEIR_ASSERT(run->thread_run == thread_run);
    run->verdict = run->handler->run(run->handler->self, &run->job);
    if (run->verdict != WEIR_PENDING)
        return;
    run->job.host->job_log(&run->job, WEIR_LEVEL_ERROR,
                           "a handler that blocks cannot be pending; the job "
                           "is retried");
    run->job.host->job_set_reason(&run->job, "pending in a thread");
    run->verdict = WEIR_RETRY;
}

void weir__thread_run_log(const struct weir__thread_run *thread_run,
                          const struct weir__log *log, enum weir_level level,
                          const char *text)
{
    const struct weir__run *run = &thread_run->run;

    weir__log_job(log, level, run->lane->name, run->id, "%s", text);
}

/* --- giving away ---------------------------------------------------------- */

/* Some wait in the pool where handlers are so quick that threads would idle
 * while the loop learns of the last ones and hands out the next ones. */
bool weir__thread_run_is_full(const struct weir__lane *lane)
{
    int64_t ahead = 0;

    if (lane->handler == NULL || !lane->handler->blocks)
        return false;
    if (lane->per_run_ns != 0)
        ahead = WEIR__HOLD_NS / lane->per_run_ns;
    if (ahead > AHEAD_MAX)
        ahead = AHEAD_MAX;
    return lane->thread_runs >=
           lane->reactor->options.pool->threads + (size_t)ahead;
}

void weir__thread_run_begin(struct weir__run *run)
{
    struct weir__reactor *reactor = run->lane->reactor;
    struct weir__pool *pool = reactor->options.pool;

    run->ticket = weir__ticket_take(&reactor->tickets, run);
    run->thread_run = run->ticket == 0 ? NULL : thread_run_new(run);
    if (run->thread_run == NULL) {
        run->job.host->job_log(&run->job, WEIR_LEVEL_WARN,
                               "out of memory; the job waits for a second and "
                               "loses no attempt");
        weir__run_ended(run, weir_snooze(&run->job, WEIR__SHORT_MS));
        return;
    }
    run->thread_run->weight = run->lane->options->weight;
    run->lane->thread_runs++;
    weir__run_pend(run);
    pool->start(pool, run->thread_run);
}

/* It is away no longer: its lane, which may have waited for that, may go on. */
static void end(struct weir__thread_run *thread_run)
{
    struct weir__lane *lane = thread_run->run.lane;

    weir__handler_release(&thread_run->run);
    weir__thread_run_free(thread_run);
    WEIR_ASSERT(lane->thread_runs > 0);
    lane->thread_runs--;
    if (lane->ready.count > 0)
        weir__lane_list_push(lane, WEIR__LANES_READY);
}

int64_t weir__thread_run_began_ns(struct weir__run *run)
{
    struct weir__reactor *reactor = run->lane->reactor;
    struct weir__pool *pool = reactor->options.pool;
    int64_t began_ns = pool->recall(pool, run->thread_run);

    if (began_ns != 0)
        return began_ns;
    end(run->thread_run);
    run->thread_run = NULL;
    run->is_unstarted = true;
    return 0;
}

/* The run is given up. */
void weir__thread_run_forget(struct weir__run *run)
{
    struct weir__pool *pool = run->lane->reactor->options.pool;

    if (run->thread_run == NULL || weir__thread_run_began_ns(run) == 0)
        return;
    pool->cancel(pool, run->thread_run);
    run->thread_run = NULL;
}

/* --- coming back ---------------------------------------------------------- */

static void note_too_late(struct weir__reactor *reactor,
                          const struct weir__thread_run *thread_run)
{
    const struct weir_log_line about = {
        .level = WEIR_LEVEL_WARN,
        .topic = thread_run->run.lane->name,
        .id = thread_run->run.id,
        .event = "late",
    };

    reactor->totals.late++;
    weir__log_about(reactor->options.log, &about,
                    "the handler came back when its run was over; its verdict "
                    "is ignored");
}

void weir__reactor_returned(struct weir__reactor *reactor,
                            struct weir__thread_run *thread_run)
{
    struct weir__run *run =
        weir__ticket_find(&reactor->tickets, thread_run->ticket);
    struct weir__completion completion = {
        .verdict = thread_run->run.verdict,
        .delay_ms = thread_run->run.delay_ms,
        .why = thread_run->run.reason,
    };

    if (thread_run->counters != NULL)
        weir__lane_add_counters(thread_run->run.lane, thread_run->counters);
    if (run == NULL) {
        note_too_late(reactor, thread_run);
    } else {
        WEIR_ASSERT(run->thread_run == thread_run);
        run->thread_run = NULL;
        run->follows = thread_run->run.follows;
        thread_run->run.follows = (struct weir__follows){0};
        weir__reactor_complete(reactor, thread_run->ticket, &completion);
    }
    end(thread_run);
}

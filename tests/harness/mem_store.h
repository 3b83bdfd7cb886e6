/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MEM_STORE_H
#define WEIR_MEM_STORE_H

/* A store in memory with a clock that the test moves: core's rules are tested
 * against it in virtual time. As a server would, it does what it is asked at
 * the flush, and only its answers wait until the test says so: a claim sees the
 * state of the moment in which it was made. A worker that claimed and got less
 * than it has room for is registered as idle; whatever becomes due earlier than
 * it would come by itself wakes it, once, be it added, retried or given back.
 * One reactor at a time.
 *
 * server_store.c has what tests of core's flow need of this on a real server.
 */

#include <stdio.h>
#include <string.h>

#include "core/reactor.h"
#include "core/run.h"

struct mem_store;

struct mem_store *mem_store_new(void);
/* Have another one keep the next topic that is opened. Neither is freed with
 * the other. */
void mem_store_join(struct mem_store *store, struct mem_store *other);

struct weir__store *mem_store_port(struct mem_store *store);
void mem_store_free(struct mem_store *store);

/* The clock: monotonic ns, and as server time in ms. */
int64_t mem_store_clock(void *store);
void mem_store_advance(struct mem_store *store, int64_t ms);

/* Add a job `id`, due after delay_ms; `retry` is its own ladder or NULL. The
 * wake-up of a registered worker comes at once, ahead of answers, or is lost
 * where `wakes` is false. */
void mem_store_add(struct mem_store *store, const char *id, int64_t delay_ms,
                   const char *retry, bool wakes);

/* Add a job that is handed over at once, for an offer of that age; and does the
 * last claim take such jobs? */
void mem_store_hand_over(struct mem_store *store, const char *id,
                         int64_t age_ms);
bool mem_store_takes_jobs(const struct mem_store *store);

/* The lease of this running job ends, and its worker hears of it. */
void mem_store_lose(struct mem_store *store, const char *id);

/* Paused, the topic gives out nothing; what is added wakes nobody. Resuming
 * does. */
void mem_store_pause(struct mem_store *store, bool is_paused);

/* Delete a job, whatever its state. */
void mem_store_delete(struct mem_store *store, const char *id);

/* Answer what was flushed, wake-ups first. Returns how many there were. */
size_t mem_store_answer(struct mem_store *store);

/* Claims bring at most so many jobs, whatever their room. */
void mem_store_give(struct mem_store *store, size_t most);

/* Claims that bring jobs ask for this rest. */
void mem_store_rest(struct mem_store *store, int64_t rest_us);

/* Fail the next claim with this code. */
void mem_store_fail_claim(struct mem_store *store, int code);

/* Fail starts with this code, until it is WEIR_OK: none is noted. */
void mem_store_fail_start(struct mem_store *store, int code);

/* A job as it is now. */
struct mem_job {
    char id[40];
    char retry[80];
    char group[20];
    char reason[40];
    char error[240];
    const char *state;             /* "waiting", "running", "dead", "gone" */
    struct weir_counters counters; /* those in the record */
    uint32_t suspicion;            /* 0: none; 1 + runs it is blamed for */
    bool is_started;               /* noted by the run that is out */
    int64_t due_ms;
    int64_t ttl_ms;
    int64_t lease_ms;    /* end of the lease, while running */
    size_t follows;      /* jobs that came with its verdicts */
    char made[600];      /* their ids, each with a blank behind it */
    char cron[160];      /* of a tick; else "" */
    char next_cron[160]; /* in a verdict that was not flushed */
    uint64_t token;
};

/* The one added last. */
struct mem_job *mem_store_last(struct mem_store *store);

static inline void mem_store_ttl(struct mem_store *store, int64_t ttl_ms)
{
    mem_store_last(store)->ttl_ms = ttl_ms;
}

static inline void mem_store_group(struct mem_store *store, const char *group)
{
    struct mem_job *job = mem_store_last(store);

    (void)snprintf(job->group, sizeof(job->group), "%s", group);
}

/* Its schedule: it is a tick then (record.cron). */
static inline void mem_store_tick(struct mem_store *store, const char *cron)
{
    struct mem_job *job = mem_store_last(store);

    (void)snprintf(job->cron, sizeof(job->cron), "%s", cron);
}

/* A worker died with it, and after that `blamed` more that had started it. */
static inline void mem_store_suspect(struct mem_store *store, uint32_t blamed)
{
    mem_store_last(store)->suspicion = 1 + blamed;
}

static inline void mem_job_note_made(struct mem_job *job,
                                     const struct weir__run *run)
{
    for (const struct weir__follow *follow = run->follows.first; follow != NULL;
         follow = follow->next) {
        size_t len = strlen(job->made);

        (void)snprintf(job->made + len, sizeof(job->made) - len, "%.*s ",
                       (int)follow->id.len, (const char *)follow->id.ptr);
    }
}

const struct mem_job *mem_store_job(struct mem_store *store, const char *id);
int64_t mem_store_now_ms(const struct mem_store *store);
size_t mem_store_claims(const struct mem_store *store);
size_t mem_store_starts(const struct mem_store *store);
size_t mem_store_renewals(const struct mem_store *store);
size_t mem_store_flushed_renewals(const struct mem_store *store);
size_t mem_store_largest_claim(const struct mem_store *store);
/* Did the last claim say that jobs keep the worker for a while? */
bool mem_store_is_slow(const struct mem_store *store);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_RUN_H
#define WEIR_RUN_H

/* One claimed job on its way through this process.
 *
 *   arrived --> ready --(handler)--> ran --(decide)--> settled
 *                 | |                 ^
 *                 | +--> pending -----+  completed, or timed out
 *                 |         |
 *                 +---(stop)+----------> returned
 *
 * A store allocates runs in batches and fills the upper half; core runs the
 * handler, which fills the middle, and decides the outcome; then the store
 * takes the run back (settle). A run belongs to core between `arrived` and
 * `settle`. */

#include <weir/plugin.h>

#include "core/follow.h"
#include "core/record.h"

struct weir__handler;
struct weir__thread_run;
struct weir__lane;
struct weir__log;
struct weir_current;

enum weir__outcome {
    WEIR__OUTCOME_NONE,  /* not decided yet */
    WEIR__OUTCOME_DONE,  /* remove the job */
    WEIR__OUTCOME_RETRY, /* write it back, due in delay_ms; counts as retried */
    WEIR__OUTCOME_SNOOZE, /* the same, not counted */
    WEIR__OUTCOME_DEAD,   /* move it to the dead, reason in record.reason; with
                             the reason "expired" only count it and drop it */
    WEIR__OUTCOME_RETURN, /* give back, as if never claimed */
    WEIR__OUTCOME_TAKEN   /* nothing: the store has settled it, or its lease is
                             lost */
};

enum weir__phase {
    WEIR__PHASE_READY,     /* no handler has seen it */
    WEIR__PHASE_RUNNING,   /* its handler is on the stack */
    WEIR__PHASE_COMPLETED, /* the same, and it was completed meanwhile */
    WEIR__PHASE_PENDING,   /* its handler returned, somebody finishes it */
    WEIR__PHASE_RAN        /* the verdict is known */
};

/* Who wants to know what became of one verdict. */
struct weir__asker {
    struct weir__asker *next; /* the store's, from settle on */
    /* Called once with WEIR_OK, WEIR_ENOTFOUND (the lease was lost, or the job
     * deleted), WEIR_ENOMEM or the code of the request, maybe inside an op; not
     * at all where the store is closed before. */
    void (*answered)(struct weir__asker *asker, int code);
};

static inline void weir__asker_tell(struct weir__asker *asker, int code)
{
    if (asker != NULL)
        asker->answered(asker, code);
}

enum { WEIR__RUN_MAGIC = 0x72756e21, WEIR__REASON_MAX = 200 };

struct weir__run {
    struct weir_job job;     /* first: what handlers hold */
    uint32_t magic;          /* WEIR__RUN_MAGIC */
    struct weir__run *next;  /* in whatever list it is on */
    struct weir__lane *lane; /* set by core on arrival */

    /* Filled by the store; slices are valid until the run is settled. */
    void *batch;   /* the store's */
    uint32_t node; /* the store's */
    uint32_t slot; /* the store's */
    struct weir_slice id;
    struct weir_slice group;    /* of a bounded topic; else empty */
    struct weir__record record; /* crashes already include the lease's */
    uint64_t token;
    int64_t due_ms;     /* server time */
    int64_t late_us;    /* server time at the claim minus due time */
    int64_t claimed_ns; /* monotonic, when the claim's reply came */
    bool is_malformed;  /* record unreadable: goes to dead, never runs */
    bool lost_due;      /* malformed, for its due time is not known any more */
    bool is_adopted;    /* another process took it: it began there */
    bool is_suspect;    /* a worker died with it: note its start first */
    uint32_t blamed;    /* noted starts that ended with their worker */
    uint32_t turn;      /* the store's, before the run arrives */

    /* Core's. */
    enum weir__phase phase;
    bool is_expired;               /* its ttl passed, it never runs */
    bool is_crashed;               /* too many workers died with it: the same */
    bool is_timed_out;             /* it ran for too long */
    bool is_noted;                 /* a suspect whose start is noted */
    bool is_loose;                 /* one that others may start beside */
    struct weir__run *previous;    /* among the pending ones */
    uint64_t ticket;               /* of its handle; 0: none */
    struct weir__handler *handler; /* that it began under; NULL: none yet */
    /* A thread has this copy, or the run is the copy; NULL. */
    struct weir__thread_run *thread_run;
    int64_t started_ns;
    int64_t start_late_us;
    weir_cancel_fn cancel;
    void *cancel_arg;

    /* Filled by the handler, then by core. `reason` is owned by the run. */
    enum weir_verdict verdict;
    enum weir__outcome outcome;
    int64_t delay_ms;
    int64_t at_ms; /* snoozed until then, server time; 0: for delay_ms */
    char *reason;  /* NUL-terminated, NULL: none */
    struct weir__follows follows;
    struct weir__asker *asker; /* NULL: nobody */
    bool is_unstarted; /* at its end: no handler began with it, so it costs no
                          token of a rate */
};

/* The host's functions as runs and plugin instances carry them. */
extern const struct weir_host weir__host;

#define WEIR__TIMEOUT_TEXT "timeout" /* why it is retried then */

/* What becomes of a run that took longer than its timeout, while its handler is
 * still on the stack: *ret_copy is a run of its own with an outcome, and
 * borrows from it. May be called from another thread. */
void weir__run_overdue(const struct weir__run *run, struct weir__run *ret_copy);

/* Fill *ret_current with what the run is; false: it is none (memory that was
 * written over). Calls nothing that a handler of a signal must not call. */
bool weir__run_current(const struct weir__run *run,
                       struct weir_current *ret_current);

/* The run behind a handler's job; asserts that it is one. */
struct weir__run *weir__run_of(const struct weir_job *job);

/* handler_counters.c: what handlers count. */
void weir__run_count(struct weir_job *job, const char *name, uint64_t by);

/* Release what the run owns; stores call it before they free the batch. */
void weir__run_fini(struct weir__run *run);

#endif

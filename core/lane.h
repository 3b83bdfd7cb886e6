/* SPDX-License-Identifier: MIT */
#ifndef WEIR_LANE_H
#define WEIR_LANE_H

/* A lane is a topic as this reactor serves it: its handler, the runs it holds,
 * and the decision when to claim how many. Shared by the files of the reactor
 * (lane.c flow control, dispatch.c handlers, pending.c runs that finish later,
 * thread_run.c runs of handlers that block, suspect.c runs that a worker died
 * with, tick.c schedules, settings.c options that the topic brings along,
 * serving.c who serves it, reactor.c the turn).
 *
 * A run is counted in exactly one place:
 *
 *   claim --> coming --(arrived)--> ready --(handler)--> ran --> the store
 *                                   |   |                 ^
 *                                   |   +----> pending ---+
 *                                   |            ^        |
 *                                   +--> suspects, one start at a time
 *
 * A lane claims while it has room; after a claim that left room, with nothing
 * more due, it sleeps until the next due time, a wake-up, or the safety
 * check. */

#include "core/assert.h"
#include "core/call.h"
#include "core/handler_counters.h"
#include "core/heap.h"
#include "core/histogram.h"
#include "core/reactor.h"
#include "core/ticket.h"

enum {
    WEIR__SHORT_MS = 1000,     /* snooze of a job that lacked memory */
    WEIR__CLAIM_MAX = 1024,    /* most jobs in one claim: four whole packs */
    WEIR__HOLD_MAX = 4096,     /* most jobs held with automatic prefetch */
    WEIR__HOLD_FIRST = 16,     /* before the handler's speed is known */
    WEIR__QUANTUM = 32,        /* runs per visit and unit of weight */
    WEIR__ORPHANS_MAX = 4096,  /* handles of runs that are over */
    WEIR__TURN_RUNS = 2048,    /* most runs in one turn */
    WEIR__CLAIMS_OUT = 256,    /* most claims of all lanes without an answer */
    WEIR__NAME_BUCKETS = 1024, /* a power of two */
};

#define WEIR__MS_NS         INT64_C(1000000)
#define WEIR__TURN_NS       (10 * WEIR__MS_NS)   /* longest turn, then I/O */
#define WEIR__HOLD_NS       (20 * WEIR__MS_NS)   /* work held ahead */
#define WEIR__SLOW_NS       (1 * WEIR__MS_NS)    /* a run: others do not wait */
#define WEIR__HOLD_MORE_NS  (1000 * WEIR__MS_NS) /* where claims take long */
#define WEIR__SAFETY_NS     (5000 * WEIR__MS_NS) /* check despite no wake-up */
#define WEIR__SAFETY_GAP_NS (30 * WEIR__MS_NS)   /* all lanes: 33 checks/s */
#define WEIR__REFUSED_NS    (1000 * WEIR__MS_NS) /* after a server's error */
#define WEIR__LOOK_NS       (1000 * WEIR__MS_NS) /* whether it is paused */
#define WEIR__LATENESS_NS   (1000 * WEIR__MS_NS) /* between two reports */
#define WEIR__WARN_NS       (1000 * WEIR__MS_NS) /* between like warnings */
#define WEIR__FAR_MS        (INT64_C(365) * 24 * 3600 * 1000)
#define WEIR__LAG_NS        (5000 * WEIR__MS_NS) /* for which a lag is kept */

/* A first-in first-out list of runs. Zeroed is empty. */
struct weir__run_list {
    struct weir__run *first;
    struct weir__run *last;
    size_t count;
};

void weir__run_push(struct weir__run_list *list, struct weir__run *run);
struct weir__run *weir__run_pop(struct weir__run_list *list); /* NULL: empty */

/* Lateness of a run that starts at `now_ns`, never negative. */
int64_t weir__run_late_us(const struct weir__run *run, int64_t now_ns);

/* Lanes on a list of the reactor's, each on each list at most once. */
enum weir__lane_list {
    WEIR__LANES_READY,   /* has ready runs */
    WEIR__LANES_HUNGRY,  /* wants to look whether it can claim */
    WEIR__LANES_RAN,     /* ran in this turn */
    WEIR__LANES_IDLE,    /* a claim got nothing: report once settled */
    WEIR__LANES_SUSPECT, /* has suspects that wait for their turn */
    WEIR__LANE_LISTS
};

/* A deadline of a lane's in the reactor's heap. */
struct weir__lane_deadline {
    struct weir__heap_node node; /* first: the heap hands it back */
    struct weir__lane *lane;
};

/* The options of lanes: thousands of them are mostly served alike. */
struct weir__lane_shared {
    uint32_t refs;
    struct weir__options options;
};

/* Who runs a lane's jobs. What began under one that was replaced ends under
 * it. */
struct weir__handler {
    struct weir__lane *lane;
    struct weir__handler *next; /* of those that were replaced */
    size_t refs;                /* the lane's, runs' and thread runs' */
    const char *name;           /* for logs; NULL: none */
    weir_run_fn run;
    weir_run_batch_fn run_batch;
    int (*flush)(void *self);
    void *self;
    void *owner;
    bool blocks;          /* runs beside the loop: there are threads */
    uint32_t limit;       /* of pending runs, beside the topic's; 0: none */
    const size_t *wanted; /* how many more; NULL: what comes */
};

struct weir__lane {
    struct weir__reactor *reactor;
    struct weir__lane *next;    /* all lanes */
    struct weir__lane *in_name; /* of the same bucket */
    char name[WEIR_MAX_TOPIC + 1];
    struct weir__handler *handler; /* NULL: the topic is not served now */
    bool is_leaving;               /* it is served no longer: what runs ends */
    struct weir__lane *next_leaving;
    struct weir__lane_shared *own; /* as served */
    struct weir__lane_shared *set; /* with what is stored on the server; NULL:
                                      nothing is */
    const struct weir__options *options; /* of these two */
    struct weir__stored *stored;         /* what is; NULL: nothing */
    struct weir__store *store;
    struct weir__store_topic *topic; /* the store's */

    struct weir__lane *list_next[WEIR__LANE_LISTS];
    bool is_listed[WEIR__LANE_LISTS];

    struct weir__run_list ready;
    struct weir__run_list ran; /* verdict known, outcome not decided */
    struct weir__run_list suspects;
    struct weir__run_list pending; /* oldest first, linked both ways */
    struct weir__tick_look
        *looks;              /* of ticks, also of those that are settled */
    size_t looking;          /* ticks that wait for one */
    struct weir_job **batch; /* of a call of run_batch; NULL: none was made */
    enum weir_verdict *batch_verdicts;
    size_t batch_cap;
    size_t thread_runs; /* that threads have, also of runs that are over */
    struct weir__pool_share pool_share;
    bool has_suspect; /* the reactor's, until its handler is called */
    size_t coming;
    bool is_claiming;   /* a claim is out and not answered yet */
    bool is_looking;    /* and it asks for no job */
    size_t asked;       /* jobs that the last claim had room for */
    bool is_filled;     /* it got about as many: with more room it would have
                           got more */
    bool is_dry;        /* nothing can start, and jobs may be on their way, */
    int64_t dry_ns;     /* since then, by a clock that rests in turns */
    int64_t hold_ns;    /* work held beyond WEIR__HOLD_NS for that */
    int claim_code;     /* of the last answer */
    int64_t claimed_ns; /* when the last claim went out */
    bool is_woken;      /* a wake-up came while it was out */
    bool is_sleeping;   /* the last claim got nothing: wait for claim_at */
    bool is_checking;   /* and claim_at is a check, no due time */
    bool is_resting;    /* the store wants no claim before claim_at */
    bool is_refused;    /* another kind of topic: never claim again */
    int64_t per_run_ns; /* running mean: from one run's end to the next one's
                           with as many at once as may; 0: not known yet */
    bool is_async;      /* runs have been pending */
    int64_t window_ns;  /* since when ends of pending runs are counted */
    size_t window_count;
    struct weir__lane_deadline claim_at;   /* in the heap: asleep, resting */
    struct weir__lane_deadline renew_at;   /* in the heap while jobs are held */
    struct weir__lane_deadline timeout_at; /* while runs are pending */
    uint64_t answered;                     /* verdicts */
    uint64_t marked;    /* and how many are to be, of weir__reactor_mark */
    int64_t renewed_ns; /* since when all that is held is surely under lease */

    uint32_t *late_counts;     /* WEIR__BUCKETS, NULL until the first run */
    struct weir__times *times; /* NULL: nobody measures, or nothing ran */
    int64_t late_max_us; /* of the counts; -1: none since the last report */
    int64_t late_at_ns;  /* when the next report may go */

    struct weir__handler_counters *counters; /* NULL until something counts */
    struct weir__outcome_log *outcomes; /* NULL until there is such a line */
};

/* Lanes waiting for their turn; a plain queue. */
struct weir__lane_queue {
    struct weir__lane *first;
    struct weir__lane *last;
};

struct weir__reactor {
    struct weir__reactor_options options;
    uint64_t random;
    int64_t now_ns;      /* of this turn, refreshed after each handler */
    int64_t busy_ns;     /* what handlers took in the turn before */
    int64_t busy_all_ns; /* what turns took so far */
    /* The longest that anything due had to wait for the loop: now, in the
     * WEIR__LAG_NS before, and when it begins anew. */
    int64_t lag_ns, lag_before_ns, lag_end_ns;
    struct weir_worker_topic *told; /* for weir__reactor_topics; owned */
    size_t told_cap;
    struct weir__lane *lanes;
    size_t lane_count;   /* also of topics that are served no longer */
    size_t served_count; /* lanes with a handler */
    size_t planned_count;
    struct weir__lane *leaving;
    struct weir__handler *replaced;
    weir__ended_fn ended_fn;
    void *ended_arg;
    struct weir__lane *names[WEIR__NAME_BUCKETS];
    size_t claims_out; /* of all lanes, not answered yet */
    int64_t check_ns;  /* when the next safety check may go */
    struct weir__lane_queue lists[WEIR__LANE_LISTS];
    struct weir__heap deadlines;
    struct weir__store *store; /* NULL: not attached yet */
    struct weir__tickets tickets;
    struct weir__run *suspect; /* the one that is noted or runs, or is pending
                                  and must be alone */
    size_t loose_suspects;     /* others that are pending */
    bool is_noting;            /* its start is not answered yet */
    int64_t blocked_warn_ns;   /* when such a warning may come again */
    int64_t late_warn_ns;
    struct weir_totals totals; /* those that are counted, not those of now */
    bool is_measuring;         /* lanes keep times */
    bool has_lost_track;       /* of handles: more orphans than are kept */
    uint64_t canceling; /* whose cancel callback is on the stack; 0: none */
    /* What is on the stack, for weir__reactor_current. */
    const struct weir__run *volatile calling; /* the first one; or NULL */
    volatile size_t calling_count;            /* of a batch; else 1 */
    const struct weir__handler *volatile flushing;
    bool is_halted;
    bool is_stopping;
    weir_idle_fn idle_fn;
    void *idle_arg;
    weir_stopped_fn stopped_fn; /* NULL once it ran */
    void *stopped_arg;
};

void weir__lane_list_push(struct weir__lane *lane, enum weir__lane_list list);
struct weir__lane *weir__lane_list_pop(struct weir__reactor *reactor,
                                       enum weir__lane_list list);

/* lane.c: flow control. */
void weir__lane_arm(struct weir__lane_deadline *deadline, int64_t at_ns);
size_t weir__lane_held(const struct weir__lane *lane);

/* How many of its jobs may run at once: one that blocks wants a thread. */
size_t weir__lane_concurrency(const struct weir__lane *lane);
void weir__lane_expired(struct weir__lane_deadline *deadline);
void weir__lane_feed(struct weir__lane *lane);
void weir__lane_sleep(struct weir__lane *lane, int64_t ns);
void weir__lane_wake(struct weir__lane *lane);
void weir__lane_rest(struct weir__lane *lane); /* no deadline is left */
/* Claim soon: behind the answer where a claim is out. */
void weir__lane_come(struct weir__lane *lane);
void weir__lane_give_back(struct weir__lane *lane);
void weir__lane_give_back_stale(struct weir__lane *lane);
void weir__lane_renew_soon(struct weir__lane *lane);

/* How many runs may be pending at once: what the topic says, and its handler.
 */
static inline size_t weir__lane_limit(const struct weir__lane *lane)
{
    size_t concurrency = lane->options->concurrency;
    size_t limit = lane->handler == NULL ? 0 : lane->handler->limit;

    if (lane->handler != NULL && lane->handler->wanted != NULL)
        return lane->pending.count + *lane->handler->wanted;
    return limit > 0 && limit < concurrency ? limit : concurrency;
}

/* dispatch.c: no more runs of it may start now. */
bool weir__lane_is_full(const struct weir__lane *lane);

/* dispatch.c: the verdict is known. */
void weir__run_ended(struct weir__run *run, enum weir_verdict verdict);

/* Hand a run with an outcome to the store. */
void weir__lane_settle(struct weir__lane *lane, struct weir__run *run);

/* pending.c */
void weir__run_pend(struct weir__run *run);
void weir__run_unpend(struct weir__run *run);
void weir__run_drop_ticket(struct weir__run *run);
void weir__lane_time_out(struct weir__lane *lane);
void weir__lane_arm_timeout(struct weir__lane *lane);
void weir__lane_lost(void *user, uint64_t token);

/* handler_counters.c: a thread run comes back with its counters. */
void weir__lane_add_counters(struct weir__lane *lane,
                             const struct weir__handler_counters *from);

/* thread_run.c */
bool weir__thread_run_is_full(const struct weir__lane *lane);
void weir__thread_run_begin(struct weir__run *run);
void weir__thread_run_forget(struct weir__run *run);

/* When a thread began with it; 0: none had, and the thread run is gone. */
int64_t weir__thread_run_began_ns(struct weir__run *run);

/* suspect.c */
bool weir__suspect_blocks(const struct weir__lane *lane);
void weir__suspect_put_aside(struct weir__run *run);
void weir__suspect_pends(struct weir__run *run);
void weir__suspect_settled(struct weir__run *run);
void weir__suspect_next(struct weir__reactor *reactor);
void weir__suspect_started(void *user, struct weir__run *run, int code);
void weir__suspect_give_back(struct weir__lane *lane);

/* tick.c: ticks of schedules. False: it is none, and malformed. */
bool weir__tick_take(struct weir__run *run);
void weir__ticks_give_back(struct weir__lane *lane);
void weir__ticks_lost(struct weir__lane *lane, uint64_t token);

/* settings.c: options as served, and those stored with the topic. */
struct weir__lane_shared *weir__lane_share(const struct weir__reactor *reactor,
                                           const struct weir__options *options);
void weir__lane_unshare(struct weir__lane_shared *shared); /* or NULL */
void weir__lane_drop_options(struct weir__lane *lane);
/* Its own options are others, or the stored ones: what holds for it then,
 * whether or not dead jobs go round with it. */
void weir__lane_merge(struct weir__lane *lane);
/* Behind it, and where several lanes change behind all of them: judge where
 * dead jobs go, and follow the options. */
void weir__lane_apply(struct weir__lane *lane);
/* Is one of that name stored, valid or not? */
bool weir__lane_stores(const struct weir__lane *lane,
                       enum weir__topic_option option);
void weir__lane_settings(void *user, const struct weir__setting *settings,
                         size_t count);

/* serving.c: who serves a lane. */
struct weir__lane *weir__lane_find(const struct weir__reactor *reactor,
                                   struct weir_slice name);
static inline void weir__handler_hold(struct weir__run *run,
                                      struct weir__handler *handler)
{
    WEIR_ASSERT(run->handler == NULL);
    run->handler = handler;
    handler->refs++;
}
static inline void weir__handler_release(struct weir__run *run)
{
    if (run->handler == NULL)
        return; /* it never began */
    WEIR_ASSERT(run->handler->refs > 0);
    run->handler->refs--;
    run->handler = NULL;
}
bool weir__lane_is_quiet(const struct weir__lane *lane);
void weir__reactor_end_handlers(struct weir__reactor *reactor);
void weir__handlers_free(struct weir__reactor *reactor);

/* batch.c: a handler of many jobs. Calls it with `run` and what may go with it;
 * returns how many jobs ended or are pending. */
size_t weir__batch_run(struct weir__lane *lane, struct weir__run *run);
void weir__batch_free(struct weir__lane *lane);

/* dispatch.c: what becomes of a run before and after its handler. */
bool weir__run_begin(struct weir__lane *lane, struct weir__run *run);
void weir__run_returned(struct weir__run *run, enum weir_verdict verdict);
void weir__run_taken(struct weir__run *run);
struct weir__call weir__run_call(struct weir__run *run);
void weir__lane_took(struct weir__lane *lane, const struct weir__call *call,
                     size_t count, bool is_pending);

/* dispatch.c: handlers. True while ready runs are left. */
bool weir__dispatch(struct weir__reactor *reactor);
void weir__dispatch_finish(struct weir__reactor *reactor);

#endif

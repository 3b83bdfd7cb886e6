/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TAKE_H
#define WEIR_TAKE_H

/* For hosts that choose when they take jobs: where no handler serves a topic, a
 * call takes some of its jobs that are due, and others settle each of them, in
 * any order and as late as may be. On the loop's thread; of topics of every
 * kind.
 *
 * A take is one job, from the callback that hands it over until it is settled.
 * Meanwhile it is what a pending run is: the reactor renews its lease, also for
 * 10 minutes while the loop stands; it ends as timed out at the topic's
 * `timeout`;
 * weir_reactor_stop waits for it, weir_reactor_give_back gives it back. When
 * the reactor is freed it comes back with the end of its lease.
 *
 * While the server is away calls and verdicts wait, and reach the one that
 * comes back, or takes over; takes are out meanwhile. Where it was away, or the
 * process was stopped, for longer than the lease, a take is the host's as long
 * as no other worker has its job; the callback of the verdict says which it is.
 *
 * Jobs that count as done when they are taken (`sync`, `auto_ack`) never come
 * back by themselves: what is said of them here holds for the others. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The host's until it settles the take, gives it back or lets go of it; those
 * that are left go with the reactor. */
struct weir_take;

#define WEIR_MAX_TAKE       1000 /* jobs of one call */
#define WEIR_MAX_TAKE_CALLS 1000 /* calls that wait */

/* Answers a call, once. WEIR_OK: `takes`, borrowed for the callback, are the
 * host's; none was due in time: `count` is 0. Else there are none: WEIR_EKIND
 * (the topic is of another kind), WEIR_ECONN (no connection, or no answer of
 * the server, within `request_timeout_ms` more than was to be waited for), what
 * the server said instead, WEIR_ECANCELED (the reactor stops or was freed).
 * Jobs that come later go back as if nobody had taken them. */
typedef void (*weir_taken_fn)(int code, struct weir_take *const *takes,
                              size_t count, void *arg);

/* A take ends without the host: by its timeout (the job is retried), because
 * its lease was lost (the job runs elsewhere, or was deleted), or with the
 * reactor. Its job is readable until this returns; the take stays the host's,
 * who may settle it in here. */
typedef void (*weir_lost_fn)(struct weir_take *take, enum weir_cancel why,
                             void *arg);

/* What to take; borrowed for the call. */
struct weir_take_options {
    size_t limit;    /* most jobs, 1 to WEIR_MAX_TAKE; 0: 1. Of `sync` and
                        `concurrent` topics no more than the option `consumers`
                        says are out at once. */
    int64_t wait_ms; /* how long to wait for the first one; 0: not; up to
                        315,360,000,000 (3,650 days) */
    /* Options of the topic as in struct weir_topic_options, such as "lease=1m",
     * "retry=1s 5s" or "kind=list"; those of the last call hold for all takes
     * of the topic. NULL: none. */
    const char *const *options;
    const char *const *overrides;
    weir_taken_fn fn;
    void *arg;
    weir_lost_fn lost; /* NULL: weir_take_job tells it */
    void *lost_arg;
};

/* Take jobs of a topic, up to as many as are due. Several calls are served in
 * their order. While one waits, the topic cannot be served, and the other way
 * round; takes that are out do not matter. WEIR_EINVAL, WEIR_EEXISTS (it is
 * served here), WEIR_EFULL (WEIR_MAX_TAKE_CALLS of the reactor wait),
 * WEIR_ENOMEM, WEIR_ECANCELED (the reactor was stopped); WEIR_ETHREAD as
 * everywhere. `err` may be NULL. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_take(struct weir_reactor *reactor, const char *topic,
                  const struct weir_take_options *options,
                  struct weir_error *err);

/* The job, for all functions of <weir/job.h> that read, log, count or add
 * follow-ups, but not for those that finish a run. NULL: the take was lost. */
WEIR_API struct weir_job *weir_take_job(const struct weir_take *take);

/* What became of it. WEIR_OK: the server has the verdict, or the job back; of
 * a delay topic also where the job was given back too late, which changes
 * nothing. WEIR_ENOTFOUND: the take was lost before, or the server no longer
 * had the job under its lease; the latter also where a connection broke and a
 * verdict that had arrived was sent again, and at a server that took over
 * without having heard of the take. WEIR_EUNKNOWN: no answer came, perhaps not.
 * WEIR_ECONN: no connection within `request_timeout_ms`, not. WEIR_EFULL (too
 * much waits for one), WEIR_ESERVER and WEIR_ENOMEM: not, either; where it has
 * not, the job comes back with the end of its lease. WEIR_ECANCELED: the
 * reactor was freed, nobody knows. A verdict of a delay topic waits for a
 * server that is full. */
typedef void (*weir_take_settled_fn)(int code, void *arg);

struct weir_settlement {
    enum weir_verdict verdict; /* any but WEIR_PENDING and WEIR_EACH */
    int64_t delay_ms;        /* of WEIR_RETRY_AFTER and WEIR_SNOOZE, as there */
    const char *why;         /* as of weir_complete; copied; may be NULL */
    weir_take_settled_fn fn; /* may be NULL */
    void *arg;
};

/* Settle the take, also one that was lost. Unless there is an error the take
 * is gone when this returns, and `fn` runs once, later; of a bounded topic when
 * all that was taken of its group with it is settled. WEIR_EINVAL,
 * WEIR_ECANCELED (the reactor is being freed), WEIR_ETHREAD. */
WEIR_API WEIR_MUST_CHECK int
weir_take_settle(struct weir_take *take,
                 const struct weir_settlement *settlement);

/* The same without a verdict: the job goes back as if nobody had taken it, to
 * run at once elsewhere; follow-ups are dropped. */
WEIR_API WEIR_MUST_CHECK int
weir_take_give_back(struct weir_take *take, weir_take_settled_fn fn, void *arg);

#define WEIR_TAKE_TOKEN 80 /* bytes with the NUL */

/* By which another process settles or renews the take, as `weir settle TOPIC
 * TOKEN` does, once this one lets go of it: visible ASCII, nothing of which
 * means something to a shell. WEIR_EKIND: topics of this kind have none, only
 * those of kind delay. WEIR_ENOTFOUND: the take was lost. */
WEIR_API WEIR_MUST_CHECK int weir_take_token(const struct weir_take *take,
                                             char ret_token[WEIR_TAKE_TOKEN]);

/* The take is gone, without its follow-ups, and its job stays taken until the
 * lease ends, which this reactor renews no more unless others of the same claim
 * are out. Of one that was lost there is nothing to let go. Otherwise the take
 * stays the host's: WEIR_EKIND, where there is no token, WEIR_ECANCELED (the
 * reactor is being freed), WEIR_ETHREAD. */
WEIR_API WEIR_MUST_CHECK int weir_take_let_go(struct weir_take *take);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REACTOR_H
#define WEIR_REACTOR_H

/* The reactor's inside: lanes (served topics), flow control, dispatch. Knows
 * no loop and no server: a driver calls tick, a store fills the port. Reads no
 * clock but the one it is handed.
 *
 * One turn (tick): lanes whose deadline passed want a claim; ready runs are
 * dispatched in turns by weight until the turn's budget is used; instances that
 * ran are flushed; outcomes are decided and handed to the store; lanes with
 * room claim; the store is flushed. */

#include <weir/weir.h>

#include "core/buf.h"
#include "core/error.h"
#include "core/histogram.h"
#include "core/options.h"
#include "core/store.h"
#include "core/thread_run.h"

struct weir__reactor;

/* How a pending run ends. */
struct weir__completion {
    enum weir_verdict verdict;
    int64_t delay_ms;
    const char *why; /* borrowed; may be NULL */
};

/* What handles point to: takes completions from any thread and hands them to
 * weir__reactor_complete on the loop thread. Stays while handles may be used.
 * WEIR_OK, WEIR_ENOMEM, WEIR_ECANCELED (the reactor is gone). */
struct weir__mailbox {
    int (*post)(struct weir__mailbox *mailbox, uint64_t ticket,
                const struct weir__completion *completion);
};

/* How bodies are read; filled by the msgpack and JSON adapters. */
struct weir__codec {
    void (*value)(struct weir_slice body, const char *path,
                  struct weir_value *ret_value);
    size_t (*json)(struct weir_slice body, char *buf, size_t cap);
    /* What is wrong with a job to add; WEIR_OK: nothing. */
    int (*check)(const struct weir_new_job *job, struct weir_error *err);
    /* False: these headers name none. Fills what is not in the record. */
    bool (*origin)(struct weir_slice headers, struct weir_origin *ret_origin);
    /* Headers of a record, and back (adapters/msgpack/headers.h). */
    size_t (*headers)(struct weir_slice map,
                      struct weir_header ret_headers[WEIR_MAX_HEADERS]);
    void (*put_headers)(struct weir__buf *buf,
                        const struct weir_header *headers, size_t count);
};

struct weir__zone;

/* Time zones by name (core/zone.h). False: it is not known here. */
struct weir__zone_source {
    bool (*find)(struct weir__zone_source *source, struct weir_slice name,
                 const struct weir__zone **ret_zone);
};

struct weir__reactor_options {
    const struct weir__codec *codec; /* kept */
    int64_t (*clock)(void *arg);     /* monotonic ns */
    void *clock_arg;
    uint64_t seed;                 /* of jitter */
    struct weir__mailbox *mailbox; /* kept */
    struct weir__pool *pool; /* kept; NULL: handlers that block do it here */
    struct weir__zone_source *zones; /* kept; NULL: only UTC is known */
    int64_t block_warn_ms;       /* name handlers that hold the loop longer */
    const struct weir__log *log; /* kept */
    const struct weir__log *outcome_log; /* kept; of jobs that are retried or
                                            end otherwise than done; NULL:
                                            nothing is said of them */
};

/* NULL when out of memory. The store is attached afterwards. */
struct weir__reactor *
weir__reactor_new(const struct weir__reactor_options *options);
void weir__reactor_free(struct weir__reactor *reactor);

/* Flush the store at the end of each turn, and let lanes use it. Borrowed; its
 * owner closes it before the reactor is freed. Once. */
void weir__reactor_attach(struct weir__reactor *reactor,
                          struct weir__store *store);

/* The lanes' side of the store's events; `connection` is the owner's to fill
 * and to pass on. */
struct weir__store_events weir__lane_events(void);

struct weir__lane_options {
    struct weir_slice name; /* borrowed, valid topic name */
    const char *handler;    /* for logs; kept */
    weir_run_fn run;
    void *self;                  /* kept until it has ended */
    void *owner;                 /* for weir__ended_fn; kept likewise */
    int (*flush)(void *self);    /* NULL: nothing to flush */
    bool blocks;                 /* runs beside the loop; without flush */
    weir_run_batch_fn run_batch; /* used instead of `run`; NULL: none */
    uint32_t limit;              /* of pending runs; 0: none */
    struct weir__options options;
};

/* Serve a topic. WEIR_EEXISTS, WEIR_ECANCELED (it is stopping), WEIR_ENOMEM. */
int weir__reactor_serve(struct weir__reactor *reactor,
                        const struct weir__lane_options *options);

/* The same in two steps, also for a topic that is served: other options, and
 * another handler unless `run` and `run_batch` are NULL. What began under the
 * handler before ends under that. Plans are made one after the other and then
 * all committed, or dropped, before anything else happens. WEIR_ECANCELED,
 * WEIR_ENOMEM, WEIR_ENOTFOUND (no handler, and it is not served). */
struct weir__plan;
int weir__reactor_plan(struct weir__reactor *reactor,
                       const struct weir__lane_options *options,
                       struct weir__plan **ret_plan);
/* Of several plans each is adopted before the first is committed: the options
 * of all hold when it is judged whether dead jobs go round. Neither can fail.
 */
void weir__plan_adopt(struct weir__plan *plan);
void weir__plan_commit(struct weir__plan *plan);
void weir__plan_drop(struct weir__plan *plan); /* NULL is fine */

/* Before the commit: how many jobs more the handler wants at any time, all of
 * them pending, whatever concurrency and prefetch are; kept. NULL: what
 * comes. */
void weir__plan_want(struct weir__plan *plan, const size_t *wanted);

/* Serve a topic no longer: claim nothing, give back what has not begun; its
 * handler ends when what runs has ended. Served again meanwhile it goes on. */
void weir__reactor_unserve(struct weir__reactor *reactor,
                           struct weir_slice topic);

/* Is the topic served, and not about to be left? */
bool weir__reactor_serves(const struct weir__reactor *reactor,
                          struct weir_slice topic);

/* Of a topic that is served. 1: a claim is out or to come, or jobs are on their
 * way. Else there are no more for now: the code of the last claim. */
int weir__reactor_claiming(const struct weir__reactor *reactor,
                           struct weir_slice topic);

/* Or about to be left: does a handler still have jobs of it? */
bool weir__reactor_holds(const struct weir__reactor *reactor,
                         struct weir_slice topic);

/* A handler has ended: it was replaced or its topic is left, and nothing of it
 * runs or waits for an answer. Called from a tick, once for each. Handlers that
 * the reactor is freed with are not told. */
typedef void (*weir__ended_fn)(const char *topic, void *self, void *owner,
                               void *arg);
void weir__reactor_on_ended(struct weir__reactor *reactor, weir__ended_fn fn,
                            void *arg);

/* Where dead jobs of the topic go (or "") when the plans made are committed;
 * NULL: none is about it. */
typedef const char *(*weir__planned_fn)(const char *topic, void *arg);

/* Would dead jobs of a topic with this on_dead (or "") go round among the
 * topics that are served here, or will be? `planned` may be NULL. WEIR_EINVAL
 * with a sentence. */
int weir__reactor_check_on_dead(const struct weir__reactor *reactor,
                                const char *topic, const char *on_dead,
                                weir__planned_fn planned, void *arg,
                                struct weir_error *err);

/* The same for the topic of a plan, with the on_dead that it brings. */
int weir__plan_check_on_dead(const struct weir__plan *plan,
                             weir__planned_fn planned, void *arg,
                             struct weir_error *err);

/* Where dead jobs go under the plan: what is stored beats what it brings. Valid
 * until it is committed or dropped. */
const char *weir__plan_on_dead(const struct weir__plan *plan);

/* Call `fn` at the end of each turn in which a topic came to have nothing left
 * to do here; takes the place of the one before. */
void weir__reactor_on_idle(struct weir__reactor *reactor, weir_idle_fn fn,
                           void *arg);
/* Claim no more, finish what runs, give back the rest; `fn` is called once,
 * from a tick, when all verdicts are answered. */
void weir__reactor_stop(struct weir__reactor *reactor, weir_stopped_fn fn,
                        void *arg);

/* The store's connection came up or went down. */
void weir__reactor_connection(struct weir__reactor *reactor, bool is_up);

/* Events of a topic were dropped; logged where it is served. */
void weir__reactor_dropped(struct weir__reactor *reactor,
                           const struct weir__dropped *dropped);

/* Finish a pending run; on the loop thread. A ticket that finds none is counted
 * and logged. */
void weir__reactor_complete(struct weir__reactor *reactor, uint64_t ticket,
                            const struct weir__completion *completion);

/* End a pending run without a verdict, nor its cancel callback: `outcome` is
 * RETURN or TAKEN. */
void weir__run_let_go(struct weir__run *run, enum weir__outcome outcome);

/* After a stop: wait no longer, give back what is still pending. */
void weir__reactor_abort(struct weir__reactor *reactor);

/* Before the store is closed: cancel what is pending, its jobs come back when
 * their leases end. How many handles are held that were not completed. */
size_t weir__reactor_drop_pending(struct weir__reactor *reactor);

/* Run no further handler and claim no more: the reactor is about to be freed,
 * maybe by one of them. What ran in this turn is settled still. */
void weir__reactor_halt(struct weir__reactor *reactor);

/* Do what is due. Returns ns until the next deadline, 0 when there is more to
 * do at once, -1 when nothing is planned. Never blocks; an early call is
 * harmless. */
int64_t weir__reactor_tick(struct weir__reactor *reactor);

/* Mark the verdicts that are not answered yet; and are all of them by now? One
 * mark at a time: those of another one are forgotten. */
void weir__reactor_mark(struct weir__reactor *reactor);
bool weir__reactor_mark_is_settled(const struct weir__reactor *reactor);

void weir__reactor_totals(const struct weir__reactor *reactor,
                          struct weir_totals *ret_totals);

/* How late the jobs of a topic started and how long each then took, up to its
 * verdict, since it is served. Each run of a batch takes what the batch took.
 */
struct weir__times {
    uint64_t late[WEIR__BUCKETS], took[WEIR__BUCKETS];
    uint64_t late_sum_us, took_sum_us;
};

/* Measure that from now on. */
void weir__reactor_measure(struct weir__reactor *reactor);

/* Call `fn` for each topic that is served and of which a job ran since. */
typedef void (*weir__times_fn)(const char *topic,
                               const struct weir__times *times, void *arg);
void weir__reactor_times(const struct weir__reactor *reactor, weir__times_fn fn,
                         void *arg);

/* The topics that are served, in no order; the reactor's memory, of which the
 * caller may change the order until the next such call. NULL: none, or out of
 * memory. */
struct weir_worker_topic *weir__reactor_topics(struct weir__reactor *reactor,
                                               size_t *ret_count);

/* Fill in how many topics there are, what is in hand, connections, lag, and
 * whether it stops. False: it has stopped. */
bool weir__reactor_describe(struct weir__reactor *reactor,
                            struct weir_worker *worker);

/* Call `fn` for each counter of the topic's handler, in byte order, then once
 * with NULL. WEIR_ENOTFOUND: it is not served. */
int weir__reactor_counters(const struct weir__reactor *reactor,
                           struct weir_slice topic, weir_counter_fn fn,
                           void *arg);

/* Whose handler the loop's thread is in; false: none. May be called by a
 * handler of a signal, on that thread. */
bool weir__reactor_current(const struct weir__reactor *reactor,
                           struct weir_current *ret_current);

/* Assert every invariant of lanes and counts. */
void weir__reactor_check(const struct weir__reactor *reactor);

#endif

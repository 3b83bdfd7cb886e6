/* SPDX-License-Identifier: MIT */
#ifndef WEIR_FACADE_H
#define WEIR_FACADE_H

/* The inside of <weir/weir.h>: what a struct weir_reactor is made of. Shared by
 * weir.c (life, the store and its topics), serve.c (handlers and plugins),
 * change.c (which topics have which), cron.c (schedules), add.c, many.c and
 * manage.c (jobs and topics), notices.c (what hosts are told once), worker.c
 * (who is there), take.c (jobs that hosts take), current.c (what runs) and
 * thread.c (a thread of its own); trial.c shares a part. These and the command
 * line are the only files that name several adapters. */

#include <weir/change.h>
#include <weir/past.h>
#include <weir/take.h>

#include "adapters/dl/loader.h"
#include "adapters/ev/driver.h"
#include "adapters/ev/mailbox.h"
#include "adapters/ev/plugin_loop.h"
#include "adapters/ev/pool.h"
#include "adapters/redis/redis.h"
#include "adapters/weir/notices.h"
#include "adapters/weir/zones.h"
#include "core/error.h"
#include "core/reactor.h"
#include "core/store.h"

/* Opens servers for an instance: <weir/redis.h>. */
struct weir__redis_source {
    struct weir_redis_source port; /* first */
    struct weir_reactor *reactor;
    const struct weir_loop *share; /* the instance's */
};

/* A plugin's instance serves one topic; kept until it has ended. */
struct weir__bound_plugin {
    struct weir__bound_plugin *next;
    struct weir__plugin_file file;
    struct weir__instance instance;
    struct weir_loop *loop; /* the instance's share of it */
    struct weir__redis_source source;
};

/* What is taken of topics that no handler serves. */
struct weir__takes {
    struct weir__taking *first, **end; /* calls that are not answered */
    size_t calls;                      /* how many */
    struct weir__taker *takers;
    struct weir_take *out;              /* and those whose end is on its way */
    struct weir_take *told, **told_end; /* that have ended */
};

struct weir_reactor {
    struct weir__log log;
    struct weir__log blocked_log; /* for the keeper's thread */
    struct weir__redis_url url;
    char name[WEIR_MAX_TOPIC + 1]; /* of this worker */
    char host[65];                 /* on which it runs; may be cut */
    void (*on_connection)(int code, const char *text, void *arg);
    void *on_connection_arg;
    struct weir__driver *driver;
    struct weir__ev_mailbox *mailbox;
    struct weir__ev_pool *pool;
    struct ev_loop *loop;
    uint64_t seed;
    int64_t request_timeout_ms, block_warn_ms;
    struct weir__store *store;
    struct weir__reactor *core;
    struct weir__bound_plugin *plugins;
    /* Of the instance that is opened or closed, or whose timer or descriptor
     * calls; NULL. */
    const struct weir_loop *volatile calling;
    weir_ended_fn ended_fn;
    void *ended_arg;
    weir_drop_fn drop_fn;
    void *drop_arg;
    struct weir__notices notices;
    struct weir__takes takes;
    struct weir__zones zones;
    size_t held;      /* handles, while it is being freed */
    int depth;        /* callbacks of ours on the stack */
    bool is_freed;    /* weir_reactor_free was called, maybe deferred */
    bool has_refused; /* a loop of a child of a fork */
};

/* --- weir.c ------------------------------------------------------------- */

/* How bodies are read. */
extern const struct weir__codec weir__facade_codec;

/* The topic's handle. Without a kind (NULL) it is of the kind that it is known
 * with, else a delay topic. WEIR_EINVAL (not a topic name; there is no such
 * kind; it is known with another one), WEIR_ECANCELED (the reactor is being
 * freed), WEIR_ENOMEM. */
int weir__facade_open(struct weir_reactor *reactor, const char *topic,
                      const char *kind, struct weir__store_topic **ret_handle,
                      struct weir_error *err);

/* WEIR_ETHREAD with a sentence: the caller is not on the loop's thread. Before
 * the loop's first turn any thread is taken for that one. */
int weir__facade_check_thread(const struct weir_reactor *reactor,
                              struct weir_error *err);

/* As weir__reactor_measure and weir__reactor_times, for the command. */
void weir__facade_measure(struct weir_reactor *reactor);
void weir__facade_times(const struct weir_reactor *reactor, weir__times_fn fn,
                        void *arg);

/* --- worker.c ----------------------------------------------------------- */

/* The store's event `describe`. */
bool weir__facade_describe(struct weir_worker *ret_worker, void *arg);

/* --- redis.c -------------------------------------------------------------- */

void weir__facade_redis(struct weir__redis_source *source,
                        struct weir_reactor *reactor,
                        const struct weir_loop *share);

/* --- take.c --------------------------------------------------------------- */

void weir__takes_init(struct weir__takes *takes);

/* Run what can be said now; at the beginning of a turn. And how long the loop
 * may sleep then, where it otherwise would for `wait_ns`. */
void weir__takes_run(struct weir_reactor *reactor);
int64_t weir__takes_wait_ns(const struct weir_reactor *reactor,
                            int64_t wait_ns);

/* WEIR_EEXISTS with a sentence: a call waits for jobs of the topic. */
int weir__takes_check(const struct weir_reactor *reactor, const char *topic,
                      struct weir_error *err);

/* Is that the `self` of a handler of such a topic? */
bool weir__takes_has(const struct weir_reactor *reactor, const void *self);

/* Run all with WEIR_ECANCELED. The store is closed. Hosts may touch takes until
 * these are freed. */
void weir__takes_fini(struct weir_reactor *reactor);
void weir__takes_free(struct weir__takes *takes);

/* --- adopt.c -------------------------------------------------------------- */

/* What is told of the job; borrows from it. */
void weir__facade_info(const struct weir_job *job,
                       struct weir_job_info *ret_info);

/* As the ops `adopt`, before the topic is served, and `prolong`. */
int weir__facade_adopt(struct weir_reactor *reactor, const char *topic,
                       const char *token);
int weir__facade_prolong(struct weir_reactor *reactor, const char *topic,
                         const struct weir__prolong *what, weir_count_fn fn,
                         void *arg);

/* --- serve.c, add.c ------------------------------------------------------- */

/* Check name and options and fill in the defaults; the handler is not looked
 * at, but `run` and `self` are taken over. WEIR_EINVAL with a sentence. */
int weir__facade_lane(const char *topic,
                      const struct weir_topic_options *options,
                      struct weir__lane_options *ret_lane,
                      struct weir_error *err);

/* What weir_reactor_add says of a job before anything is sent. */
int weir__facade_check_job(const struct weir_new_job *job,
                           struct weir_error *err);

/* What the kind of its topic says of the job. */
int weir__facade_check_fit(const char *topic, const char *kind,
                           const struct weir_new_job *job,
                           struct weir_error *err);

const char *weir__facade_kind_of(const struct weir_reactor *reactor,
                                 const struct weir__store_topic *handle);

/* Add a job that was checked; `old`: with that past, or NULL. */
int weir__facade_put(const struct weir_reactor *reactor,
                     struct weir__store_topic *handle,
                     const struct weir_new_job *job,
                     const struct weir_old_job *old, weir_added_fn fn,
                     void *arg);

/* What serves a topic from the commit on. Zeroed there is nothing to cancel. */
struct weir__prepared {
    const char *topic; /* borrowed */
    const char *was;   /* its kind until then; NULL: nothing is prepared */
    struct weir__plan *plan;
    struct weir__bound_plugin *bound; /* NULL: a function, or what there is */
};

/* All of weir_reactor_serve that can fail, but where dead jobs go. `may_keep`:
 * without a handler the one that serves the topic stays. */
int weir__facade_prepare(struct weir_reactor *reactor, const char *topic,
                         const struct weir_topic_options *options,
                         bool may_keep, struct weir__prepared *ret_prepared,
                         struct weir_error *err);
void weir__facade_commit(struct weir_reactor *reactor,
                         const struct weir__prepared *prepared);
void weir__facade_cancel(struct weir_reactor *reactor,
                         const struct weir__prepared *prepared);

/* All of weir_reactor_serve. `wanted`: how many jobs more the handler wants at
 * any time, all of them pending; NULL: what comes. */
int weir__facade_serve(struct weir_reactor *reactor, const char *topic,
                       const struct weir_topic_options *options,
                       const size_t *wanted, struct weir_error *err);

/* weir__ended_fn of the core; `arg` is the reactor. */
void weir__facade_ended(const char *topic, void *self, void *owner, void *arg);

/* Close the instance and free it. */
void weir__facade_close_plugin(struct weir_reactor *reactor,
                               struct weir__bound_plugin *bound);

/* When a job is to run: a delay, or a time of the server's where that is not 0.
 * WEIR_EINVAL with a sentence; `err` may be NULL. */
int weir__facade_check_due(int64_t delay_ms, int64_t at_ms,
                           struct weir_error *err);

#endif

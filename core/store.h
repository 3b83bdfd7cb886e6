/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

/* The port between core and whatever keeps jobs. Core calls the ops, the store
 * calls the events; both on the loop thread. A store knows no handlers, core
 * knows no server.
 *
 * Batching: `add`, `settle` and `claim` only collect. Core calls `flush` at
 * the end of each loop turn; what was collected for a topic then goes out as
 * one request (or as few as the store's limits per request allow).
 *
 * Events and request callbacks never run inside an op, `flush` included. Each
 * claim is answered by exactly one `claimed`, and if that reports jobs, by one
 * or more `arrived` that account for all of them. */

#include <weir/cron.h>
#include <weir/worker.h>

#include "core/keys.h"
#include "core/options.h"
#include "core/record.h"
#include "core/run.h"

struct weir__call;
struct weir__store;
struct weir__store_topic; /* the store's own; one for each name */

/* The outcome of a claim. */
struct weir__claimed {
    int code;            /* WEIR_OK, WEIR_ECONN, WEIR_ESERVER, ... */
    size_t count;        /* jobs now under lease and on their way here */
    int64_t next_due_us; /* from now until something can run, a due time or the
                            end of a lease; 0: more is due now; -1: nothing
                            waits */
    bool is_paused;
    bool will_wake; /* jobs came, and the store calls `wake` when there are more
                       before next_due_us, as it does when none came */
    int64_t rest_us; /* jobs came, and so long the server is to be left alone;
                        0: the next claim may go at once */
};

/* One option stored with a topic, as text; a NUL follows the value. */
struct weir__setting {
    struct weir_slice name;
    struct weir_slice value;
};

/* Events of a group that no handler will see. */
struct weir__dropped {
    struct weir_slice topic;
    struct weir_slice group;
    enum weir_drop reason;
    uint64_t count;
};

/* All fields but `held`, `describe`, `dropped` and `evicted` are required.
 * `user` is what topic_open was given. */
struct weir__store_events {
    void (*claimed)(void *user, const struct weir__claimed *claimed);
    /* `first` is a list of `count` runs, now core's; `lost` more were claimed
     * and will not come (they return when their lease expires). */
    void (*arrived)(void *user, struct weir__run *first, size_t count,
                    size_t lost);
    /* A settle was answered: `refused` of `count` verdicts came too late. */
    void (*settled)(void *user, size_t count, size_t refused);
    /* A hint: something became due earlier than expected. NULL: the store has
     * no topics, and does not listen. */
    void (*wake)(void *user);
    /* One job came without a claim, under a lease that did not begin before
     * `since_ns` (monotonic); one `arrived` follows. Only after a claim with
     * `takes_jobs`, and once for each. */
    void (*handed)(void *user, int64_t since_ns);
    /* The answer to `start`. WEIR_OK: run it now. WEIR_ENOTFOUND: it is
     * somebody else's by now, or deleted; its verdict would be refused. Others:
     * it could not be noted; its lease ends by itself. */
    void (*started)(void *user, struct weir__run *run, int code);
    /* A lease is gone: what is still out under this token runs elsewhere. */
    void (*lost)(void *user, uint64_t token);
    /* The options stored with the topic were read, for the first time or after
     * a change: all of them, borrowed. Comes before the jobs of the claim that
     * told of the change. */
    void (*options)(void *user, const struct weir__setting *settings,
                    size_t count);
    /* A settle made room among the dead: the oldest `count` went. */
    void (*evicted)(void *user, size_t count);
    /* For the store as a whole; `arg` is from the store's constructor. After
     * WEIR_OK every lane of it should claim anew. May be NULL. */
    void (*connection)(int code, const char *text, void *arg);
    /* The same. Topics wait although there is a connection: why. May be
     * NULL. */
    void (*held)(const char *text, void *arg);
    /* The same. What the reactor tells of itself, but for `since_ms` and
     * `seen_ms`; borrowed until it returns to the loop. False: it is no worker
     * any more. May be NULL: it never is. */
    bool (*describe)(struct weir_worker *ret_worker, void *arg);
    /* The same; not from inside an op either. */
    void (*dropped)(const struct weir__dropped *dropped, void *arg);
};

struct weir__claim {
    size_t room; /* most jobs wanted, up to 1,024; 0: only look whether the
                    topic is paused and its options changed */
    int64_t lease_ms;
    int64_t timeout_ms; /* of a run */
    int64_t now_ns;     /* monotonic */
    bool is_by_hand;    /* a caller takes or settles: no worker for long */
    bool has_jobs;      /* others are in hand: the loop may be held by them */
    bool is_slow;       /* a job keeps this worker for a while: what is due next
                        may be another one's */
    bool takes_jobs; /* nothing is in hand, of whatever topic: where nothing is
                        due, the next job may be handed over when it comes */
};

/* A job to add, with the past that its record tells. Slices are borrowed for
 * the call. */
struct weir__new_job {
    struct weir_slice id; /* empty: the store makes one */
    const struct weir__record *record;
    int64_t delay_ms;           /* used when at_ms is 0 */
    int64_t at_ms;              /* absolute server time */
    struct weir_slice group;    /* of a bounded topic, and only there */
    uint32_t durability;        /* WEIR__DURABILITY_...; 0: the topic's */
    struct weir__key_rule rule; /* of record->unique, if it has one */
    bool is_restored;           /* it has no key unless its record says so */
    int64_t died_ms; /* above 0: it is dead since then, and has an id; only in
                        topics that keep dead jobs of their own */
};

struct weir__store_topic_options {
    struct weir_slice name; /* borrowed */
    const char *kind;       /* NULL: the one it is open with, else delay */
    /* What it is served with; kept until others come or the store is closed.
     * NULL: nothing changes. */
    const struct weir__options *served;
};

struct weir__reschedule {
    struct weir_slice id;
    int64_t delay_ms; /* used when at_ms is 0 */
    int64_t at_ms;    /* absolute server time */
};

/* What to do with a schedule; of one that is set `record` is its tick's, with
 * `cron` (core/schedule.h). */
struct weir__cron_change {
    struct weir_slice name;
    const struct weir__record *record; /* NULL: it is not set, but: */
    enum weir_cron_verb verb;
};

/* A schedule as it is stored; borrowed. */
struct weir__cron_entry {
    struct weir_slice name;
    const char *why; /* NULL; else what is wrong with it: no record is here */
    struct weir__record record;
    bool is_paused, has_tick;
    int64_t from_ms, now_ms;
};
typedef void (*weir__cron_fn)(int code, const struct weir__cron_entry *entry,
                              void *arg);

/* What to list: jobs in one state. */
struct weir__list {
    enum weir_job_state state;
    size_t limit;            /* most jobs */
    struct weir_slice after; /* the `place` that this store gave to one of them;
                                empty: from the first on */
};

enum { WEIR__TOKEN_CAP = 80 };

struct weir__prolong {
    const char *const *tokens;
    size_t count;
    int64_t lease_ms; /* from now on */
};

/* What weir__store_ops.purge deletes. */
enum weir__purge {
    WEIR__PURGE_ALL, /* every job in every state */
    WEIR__PURGE_DEAD /* dead jobs only */
};

struct weir__store_ops {
    /* Open a topic, or return the one of that name and kind already open (its
     * options are then replaced). Stays until `close`; the last one that was
     * opened with a name is the one meant without a kind. WEIR_ENOMEM,
     * WEIR_EINVAL (no such kind). */
    int (*topic_open)(struct weir__store *store,
                      const struct weir__store_topic_options *options,
                      struct weir__store_topic **ret_topic);
    /* Receive the topic's events from now on; NULL user: none. */
    void (*topic_listen)(struct weir__store_topic *topic, void *user);

    /* The name of its kind. May be NULL, with what else only hosts ask for. */
    const char *(*kind_name)(const struct weir__store_topic *topic);
    /* Does settle add the jobs that runs add? NULL: it does. */
    bool (*takes_follows)(const struct weir__store_topic *topic);

    int (*claim)(struct weir__store_topic *topic,
                 const struct weir__claim *claim);
    /* Take back a run whose outcome is decided. Cannot fail: without memory the
     * job's lease just expires. With WEIR__OUTCOME_TAKEN nothing is sent. */
    void (*settle)(struct weir__store_topic *topic, struct weir__run *run);
    /* Note on the server that a suspect is about to run; answered by one
     * `started`, before which the run must not be settled. Leaves at the next
     * flush. Only for runs with is_suspect. */
    void (*start)(struct weir__store_topic *topic, struct weir__run *run);
    /* What another process needs to settle the run, as a text without blanks,
     * quotes or what else means something to a shell. May be NULL, with adopt
     * and prolong. */
    int (*token)(struct weir__store_topic *topic, const struct weir__run *run,
                 char ret_token[WEIR__TOKEN_CAP]);
    /* From now on claims bring the run of this token, those of others that were
     * adopted, and nothing else; who claimed them renews their leases.
     * WEIR_EINVAL (it is none), WEIR_EKIND, WEIR_ENOMEM. */
    int (*adopt)(struct weir__store_topic *topic, const char *token);
    /* Prolong the leases of such runs, which need not be adopted. The count is
     * how many of these leases are lost. WEIR_EINVAL (one is none). */
    int (*prolong)(struct weir__store_topic *topic,
                   const struct weir__prolong *what, weir_count_fn fn,
                   void *arg);
    /* A call of code that is not weir's begins (core/call.h). However long the
     * loop is held, the store keeps leases alive; a call of a run that passes
     * its deadline has the run settled as timed out. May be NULL. */
    void (*enter)(struct weir__store *store, struct weir__call *call);
    /* The call has returned. True: its run was settled as timed out. */
    bool (*leave)(struct weir__store *store, struct weir__call *call);
    /* When the store last renewed all leases of the topic by itself
     * (monotonic); 0: never. May be NULL, with enter and leave. */
    int64_t (*kept_ns)(const struct weir__store_topic *topic);
    /* Prolong the leases of all runs of the topic that are still out. False:
     * what keeps its jobs is away, and hears of it later if at all. */
    bool (*renew)(struct weir__store_topic *topic, int64_t lease_ms);
    /* The reactor stops: no claim comes any more, what the store holds itself
     * goes back. May be NULL. */
    void (*stop)(struct weir__store_topic *topic);
    /* How many verdicts were handed to settle and not answered yet. */
    size_t (*unsettled)(const struct weir__store_topic *topic);
    /* Some of them wait until the server takes them, and others may overtake
     * them. May be NULL, with what else only hosts ask for. */
    bool (*holds_back)(const struct weir__store_topic *topic);
    /* Bytes of jobs and commands that wait for the topic's server. May be NULL,
     * likewise. */
    size_t (*waiting)(const struct weir__store_topic *topic);
    /* Add the topic's lateness samples to its statistics: `counts` has one
     * entry for each bucket of core/histogram.h. */
    void (*lateness)(struct weir__store_topic *topic, const uint32_t *counts,
                     int64_t max_us);

    int (*add)(struct weir__store_topic *topic, const struct weir__new_job *job,
               weir_added_fn fn, void *arg);
    int (*show)(struct weir__store_topic *topic, struct weir_slice id,
                weir_show_fn fn, void *arg);
    int (*remove)(struct weir__store_topic *topic, struct weir_slice id,
                  weir_delete_fn fn, void *arg);
    int (*reschedule)(struct weir__store_topic *topic,
                      const struct weir__reschedule *what,
                      weir_reschedule_fn fn, void *arg);
    /* Dead jobs become ready again; an empty id: all of them. */
    int (*requeue)(struct weir__store_topic *topic, struct weir_slice id,
                   weir_count_fn fn, void *arg);
    int (*purge)(struct weir__store_topic *topic, enum weir__purge what,
                 weir_count_fn fn, void *arg);
    /* Delete a job if it is dead. */
    int (*forget)(struct weir__store_topic *topic, struct weir_slice id,
                  weir_count_fn fn, void *arg);
    /* WEIR_EKIND also where dead jobs are asked for and not kept. A store that
     * gives its jobs no `place` is given none; WEIR_EINVAL: it is none. */
    int (*list)(struct weir__store_topic *topic, const struct weir__list *what,
                weir_show_fn fn, void *arg);
    int (*pause)(struct weir__store_topic *topic, bool is_paused,
                 weir_code_fn fn, void *arg);
    /* Checked settings; an empty value removes one. */
    int (*set)(struct weir__store_topic *topic,
               const struct weir__setting *settings, size_t count,
               weir_code_fn fn, void *arg);
    int (*settings)(struct weir__store_topic *topic, weir_setting_fn fn,
                    void *arg);
    /* Delete the topic itself, which holds no jobs. WEIR_EEXISTS: it does, or a
     * worker serves it. */
    int (*drop)(struct weir__store_topic *topic, weir_code_fn fn, void *arg);
    int (*kind)(struct weir__store_topic *topic, weir_kind_fn fn, void *arg);
    int (*stats)(struct weir__store_topic *topic, weir_stats_fn fn, void *arg);
    /* As weir_reactor_cron_set, _cron and _cron_list. */
    int (*cron)(struct weir__store_topic *topic,
                const struct weir__cron_change *what, weir_code_fn fn,
                void *arg);
    int (*crons)(struct weir__store_topic *topic, weir__cron_fn fn, void *arg);
    int (*topics)(struct weir__store *store, weir_topics_fn fn, void *arg);
    int (*workers)(struct weir__store *store, weir_workers_fn fn, void *arg);

    void (*flush)(struct weir__store *store);
    /* Free the store; outstanding callbacks run first, with WEIR_ECANCELED.
     * Runs still out are freed with it. */
    void (*close)(struct weir__store *store);
    /* Store with the leases how the process ends: weir_reactor_note_crash. May
     * be NULL. */
    void (*note_crash)(const struct weir__store *store, const char *how);
};

/* Every store begins with this. Requests that make no sense for the kind of a
 * topic (from `add` on) return WEIR_EKIND. */
struct weir__store {
    const struct weir__store_ops *ops;
    bool is_up; /* connected; core's */
};

#endif

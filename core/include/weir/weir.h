/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

/* weir for programs that embed it: a job reactor on the caller's libev loop.
 *
 * Open a reactor, serve topics with handlers (plain functions or plugins), add
 * jobs; run the loop. Everything happens on the loop's thread, which is the one
 * that ran its last turn: on another one requests, and what is to be served,
 * are refused with WEIR_ETHREAD. A reactor owns no globals: a process may have
 * several. In the child of a fork all of it is WEIR_ETHREAD, and freeing does
 * nothing: open another reactor, with a loop of its own, there. It installs no
 * signal handler, never exits, prints nothing; what it has to say goes through
 * the log callback.
 *
 * Writes to a dead connection raise SIGPIPE: the library blocks that signal
 * around its writes, so the host need not ignore it.
 *
 * Requests (add, show, delete, stats, ...) return 0 and run their callback
 * exactly once, later, from the loop; or return a negative code and never run
 * it. (Lists run it for each thing as well, before that once.) Inside any
 * callback everything is allowed, weir_reactor_free included. When the reactor
 * is freed, outstanding callbacks run with WEIR_ECANCELED; freed inside a
 * callback it goes when that turn of the loop is over, and what was answered by
 * then is still told as it is. A callback is required unless its function says
 * that it may be NULL.
 *
 * While there is no connection requests wait for it, up to `request_timeout_ms`
 * and a bounded number of bytes; then they fail with WEIR_ECONN, or with
 * WEIR_EUNKNOWN when the request was sent and its answer never came.
 *
 * An open reactor keeps ev_run from returning: end with ev_break. */

#include <weir/base.h>
#include <weir/plugin.h>
#include <weir/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop;
struct weir_reactor;

struct weir_options {
    struct ev_loop *loop; /* kept until weir_reactor_free; required */
    /* redis://[user:pass@]host[:port][/db], unix:///path.sock[?db=N], nodes of
     * a cluster, as in redis://a,b:7000,c, or that of sentinels, with TLS or
     * without, and parameters: docs/configuration.md, "Addresses"; copied;
     * required. */
    const char *redis_url;
    /* Names this worker on the server, [A-Za-z0-9._-]{1,40}; copied; NULL: made
     * from host name, pid and a random number. */
    const char *name;
    weir_log_fn log; /* may be NULL */
    void *log_arg;
    enum weir_level log_level; /* least level passed to `log` */
    /* Gets a line each second while a handler holds the loop, once that takes
     * longer than `block_warn_ms`: handler, topic and job. Called on a thread
     * of weir's, with `log_arg`; it must not call weir. May be NULL. */
    weir_log_fn blocked_log;
    int64_t request_timeout_ms; /* 1 to 86,400,000, or 0: 10,000 */
    /* The connection came up (code WEIR_OK) or went down or could not be made
     * (WEIR_ECONN, WEIR_ESERVER when the server turned us away, WEIR_ENOTFOUND
     * when no sentinel knows the name of the primary, a cluster has no such
     * database, or several hosts are no cluster); `text` is for a person. May
     * be NULL. Reconnecting goes on by itself either way. */
    void (*on_connection)(int code, const char *text, void *arg);
    void *on_connection_arg;
    /* Log a warning, one a second at most, when a handler held the loop for
     * longer, or 0: 100. */
    int64_t block_warn_ms;
    /* Threads for handlers that block, 1 to 256, or 0: 8. They are started when
     * they are needed; a topic of which no run has one gets one more. */
    uint32_t threads;
    /* Get the lines of `log` and `blocked_log` in parts, on the same threads
     * and with `log_arg`; those two are not called then. May be NULL. */
    weir_log_line_fn log_line;
    weir_log_line_fn blocked_log_line;
};

/* Open a reactor and begin to connect. Does not block: host names are looked up
 * on a thread. Errors: WEIR_EINVAL (the URL or an option,
 * named in `err`), WEIR_ENOMEM. `err` may be NULL. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_open(const struct weir_options *options,
                  struct weir_reactor **ret_reactor, struct weir_error *err);

/* The least level passed to `log` from now on. */
WEIR_API void weir_reactor_log_level(struct weir_reactor *reactor,
                                     enum weir_level level);

/* Free at any moment, also inside a callback. What runs is not waited for: its
 * jobs come back when their leases expire; use weir_reactor_stop before to give
 * them back. BLOCKS until threads came back from handlers that do. NULL is
 * fine. */
WEIR_API void weir_reactor_free(struct weir_reactor *reactor);

/* --- serving ---------------------------------------------------------- */

/* Say of which kind a topic is ("delay", ...) before the first request that
 * names it; those that were not declared or served are "delay" topics. NULL: as
 * declared before. WEIR_EINVAL (name, no such kind, declared as another one
 * before), WEIR_ENOMEM, WEIR_ECANCELED. What a request asks of a kind that
 * cannot do it is refused with WEIR_EKIND. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_declare(struct weir_reactor *reactor,
                                                  const char *topic,
                                                  const char *kind,
                                                  struct weir_error *err);

/* The kind that a topic has on the server, NULL unless WEIR_OK: WEIR_ENOTFOUND.
 * Requests are of this kind from then on, unless the topic is served here. */
typedef void (*weir_kind_fn)(int code, const char *kind, void *arg);
WEIR_API WEIR_MUST_CHECK int weir_reactor_kind(struct weir_reactor *reactor,
                                               const char *topic,
                                               weir_kind_fn fn, void *arg);

#define WEIR_MAX_OPTIONS 48 /* said of one topic at once */

/* How a topic is served. Its handler is a function or a plugin: `run` or
 * `run_batch` (then `run` is not used), or `plugin`, or `table`. */
struct weir_topic_options {
    weir_run_fn run;
    weir_run_batch_fn run_batch;
    const char *plugin; /* path of a shared object, with a slash */
    /* A plugin's table that is linked into the program, for functions that want
     * timers and descriptors of the loop (weir_open_loop), options, a flush, or
     * to be closed; kept. `self` is then what weir_open_self returns, and what
     * `run` gets where the table has no `open`. It is opened in
     * weir_reactor_serve and closed when it has ended (weir_reactor_on_ended)
     * or the reactor is freed, on the loop's thread. */
    const struct weir_plugin *table;
    void *self;    /* handed to the function; kept */
    bool blocking; /* [false] `run` may block: it is called by threads, as
                      WEIR_PLUGIN_BLOCKING says; plugins say it themselves */
    /* Options of the plugin's instance as "key=value"; borrowed. */
    const char *const *plugin_options;
    size_t plugin_option_count;
    /* Options of the topic as `weir topic set` takes them, the first NULL ends
     * them: {"kind=bounded", "linger=1s"}; borrowed. All have a default, and
     * docs/configuration.md a row. The last of two of one name counts; an empty
     * value is the default. What topics of its kind do not have is refused.
     * Without "kind" it is as declared, or "delay". */
    const char *options[WEIR_MAX_OPTIONS];
    /* More of them, over `options`, that what is stored with the topic does not
     * beat; NULL: none. */
    const char *const *overrides;
};

/* Serve `topic` from now on. Options are copied; what weir_reactor_set stored
 * with the topic beats `options`. Errors: WEIR_EINVAL (name, an option, a
 * plugin's options, a plugin that everybody may write to), WEIR_EEXISTS (served
 * already), WEIR_EABI and WEIR_ENOTFOUND (plugin) or what its `open` returned,
 * WEIR_ENOMEM, WEIR_ECANCELED (the reactor was stopped or is being freed);
 * `err` holds the sentence. A plugin is loaded and opened in here: that
 * BLOCKS. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_serve(struct weir_reactor *reactor, const char *topic,
                   const struct weir_topic_options *options,
                   struct weir_error *err);

/* Called each time a served topic ran out: a claim came back with nothing and
 * nothing of this reactor is running or unsettled. `fn` may be NULL; a second
 * call replaces it. */
typedef void (*weir_idle_fn)(const char *topic, void *arg);
WEIR_API void weir_reactor_on_idle(struct weir_reactor *reactor,
                                   weir_idle_fn fn, void *arg);

/* Stop serving, for good: claim no more, settle what ran, wait for what is
 * pending, give back what was claimed and not started; when the server has
 * acknowledged all of it, or could not be asked within `request_timeout_ms`,
 * run `done` once, from a later turn. That may take for ever while the server
 * is full: a host that cannot wait sets a timer of its own and frees the
 * reactor. `done` may be NULL; a second call replaces it. Requests still
 * work. */
typedef void (*weir_stopped_fn)(void *arg);
WEIR_API void weir_reactor_stop(struct weir_reactor *reactor,
                                weir_stopped_fn done, void *arg);

/* After weir_reactor_stop: wait no longer for pending runs. Their cancel
 * callbacks run in here, their jobs are given back at once, as if they had not
 * been claimed; what completes them afterwards is ignored. */
WEIR_API void weir_reactor_give_back(struct weir_reactor *reactor);

/* --- adding ----------------------------------------------------------- */

#define WEIR_MAX_ID     128                /* bytes */
#define WEIR_MAX_TOPIC  40                 /* bytes */
#define WEIR_MAX_BODY   (1024 * 1024)      /* bytes, unless max_body is set */
#define WEIR_BODY_LIMIT (16 * 1024 * 1024) /* bytes, whatever is set */

/* A job to add; everything is copied. Zero means "not given". */
struct weir_new_job {
    const char *id;         /* NULL: weir makes one that sorts by time */
    struct weir_slice body; /* one msgpack value; empty: null */
    int64_t delay_ms;  /* from now on the server's clock, 0 to 3,650 days */
    int64_t at_ms;     /* server time instead, up to 9,999,999,999,999; or 0 */
    const char *retry; /* ladder of this job */
    int64_t ttl_ms;    /* how long after its due time it may still start */
    const char *url;   /* at most 2,048 bytes */
    const char *group; /* of bounded topics, and required there: as an id */
    /* Of delay and bounded topics: what has to have the job before it is
     * answered: "server", "replica[:N]" (N replicas, 1 to 99, 1 where none is
     * said), "fsync[:N]" (the disk of the server and of N replicas, 0 to 99, 0
     * where none is said). NULL: as the topic's option `durability` says. */
    const char *durability;
    const struct weir_header *headers; /* not of lists and streams */
    size_t header_count;               /* WEIR_MAX_HEADERS at most */
    /* Of delay topics: a key of which there is to be one job, 1 to 2,048 bytes,
     * and its rule. NULL: the option `unique` of the topic says. */
    const char *unique;
    const char *unique_for;  /* "10m", "until-start" or "until-done" */
    const char *unique_else; /* "reject", "replace", "debounce", "throttle" */
    const char *max_wait;    /* "1h": of debounce */
    const char *key;      /* of delay topics: whose it is, 1 to 2,048 bytes */
    const char *priority; /* the same: "urgent", "high", "normal" or "low" */
};

/* `code`: WEIR_OK, WEIR_EEXISTS (nothing changed: there is a job with this id,
 * or `id` is that of the job that has its unique key), WEIR_EDROPPED (the
 * event's group is full and drops new ones), WEIR_EFULL (it refuses them; or as
 * many jobs wait as the topic's max_pending allows), WEIR_ETOOBIG (the body is
 * above the topic's max_body, 1 MiB unless set), WEIR_EKIND (the topic is of
 * another kind), WEIR_EWEAK (added, but within 10 s nobody confirmed that it is
 * where its durability wants it), WEIR_EINVAL (this server cannot confirm that,
 * or the unique key in the body is too long, which was logged; nothing was
 * added), WEIR_ECONN, WEIR_EUNKNOWN, WEIR_ESERVER, WEIR_ECANCELED. What was
 * refused is told at once, also where others that were added with it are to be
 * confirmed; the latter are told WEIR_EWEAK where the reactor is freed. `id` is
 * borrowed text: where none was given the one weir made, "" if it came to none.
 * The job may have run by then, in this process, too. */
typedef void (*weir_added_fn)(int code, const char *id, void *arg);

/* Add a job. What is added in one turn of the loop travels together. `fn` may
 * be NULL. Errors: WEIR_EINVAL, WEIR_EMALFORMED (body), WEIR_ETOOBIG (body
 * above 16 MiB), WEIR_EFULL (32 MiB of jobs and commands wait for the server:
 * go on when some are answered), WEIR_ENOMEM. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_add(struct weir_reactor *reactor,
                                              const char *topic,
                                              const struct weir_new_job *job,
                                              weir_added_fn fn, void *arg,
                                              struct weir_error *err);

/* What became of one of many. */
struct weir_added {
    int code;       /* as weir_added_fn has it */
    const char *id; /* the same; borrowed for the callback */
};
typedef void (*weir_added_many_fn)(const struct weir_added *added, size_t count,
                                   void *arg);

#define WEIR_MAX_ADD 100000 /* jobs in one call */

/* Jobs to add to a topic, and who is told: one answer for all, `added` has a
 * place for each, in their order. */
struct weir_new_jobs {
    const char *topic;
    const struct weir_new_job *jobs;
    size_t count; /* 1 to WEIR_MAX_ADD */
    weir_added_many_fn fn;
    void *arg;
};

/* Add many. All are looked at first: where one is wrong none is added, and
 * `err` names its place, from 0. They are no transaction, each has its code.
 * Errors: those of weir_reactor_add; WEIR_EINVAL also for none, WEIR_ETOOBIG
 * for too many. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_add_many(struct weir_reactor *reactor,
                      const struct weir_new_jobs *jobs, struct weir_error *err);

/* --- from other threads ----------------------------------------------- */

/* These two, and weir_complete, may be called on any thread, with a reactor
 * that nobody frees meanwhile. What waits to be read on the loop is bounded:
 * 65,536 calls, or 64 MiB; WEIR_EFULL says that the loop does not keep up.
 * <weir/thread.h> runs a reactor on a thread of its own. */

/* Runs on the loop's thread. `code`: WEIR_OK; WEIR_ECANCELED: the reactor is
 * being freed, nothing can be asked of it any more. */
typedef void (*weir_call_fn)(int code, struct weir_reactor *reactor, void *arg);

/* Have `fn` called once on the loop's thread, soon and in the order of the
 * calls, never in here. WEIR_EFULL, WEIR_ENOMEM, WEIR_ECANCELED. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_call(struct weir_reactor *reactor,
                                               weir_call_fn fn, void *arg);

/* weir_reactor_add_many for any thread: everything is copied, one wake-up of
 * the loop serves all, and what was submitted together leaves together. `fn`
 * runs on the loop's thread. What is wrong with a job is said at once; what
 * only the loop can tell (its topic is of a kind that has no delays, too much
 * is waiting to be sent) comes as its code. Errors: as there, but WEIR_EFULL is
 * that of these functions; WEIR_ECANCELED. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_submit(struct weir_reactor *reactor,
                    const struct weir_new_jobs *jobs, struct weir_error *err);

/* Turn JSON into a msgpack body. `*ret_body` is released with
 * weir_body_free. Integers beyond 64 bits, non-finite numbers, text after the
 * value and nesting beyond 32 are refused: WEIR_EINVAL with a sentence. */
WEIR_API WEIR_MUST_CHECK int weir_body_from_json(const char *json, size_t len,
                                                 struct weir_slice *ret_body,
                                                 struct weir_error *err);
WEIR_API void weir_body_free(struct weir_slice body);

/* Why events of a bounded topic were given up. */
enum weir_drop {
    WEIR_DROP_OVERFLOW, /* their group was full */
    WEIR_DROP_AGE,      /* they were older than max_age, or their own ttl */
    WEIR_DROP_TTL       /* their group was idle for group_ttl */
};

/* "overflow", "age", "ttl". */
WEIR_API const char *weir_drop_name(enum weir_drop reason);

/* Be told what this reactor's adds pushed out of groups, and what its topics
 * gave up. Other workers hear of theirs; weir_stats counts all. `fn` may be
 * NULL; a second call replaces it. */
typedef void (*weir_drop_fn)(const char *topic, const char *group,
                             enum weir_drop reason, uint64_t count, void *arg);
WEIR_API void weir_reactor_on_drop(struct weir_reactor *reactor,
                                   weir_drop_fn fn, void *arg);

/* --- looking and removing --------------------------------------------- */

enum weir_job_state {
    WEIR_JOB_SCHEDULED,
    WEIR_JOB_READY,
    WEIR_JOB_RUNNING,
    WEIR_JOB_DEAD
};

/* "scheduled", "ready", "running", "dead". */
WEIR_API const char *weir_job_state_name(enum weir_job_state state);

/* A job as the server has it. Everything is borrowed for the callback. */
struct weir_job_info {
    struct weir_slice id;
    enum weir_job_state state;
    struct weir_counters
        counters;   /* attempt: runs so far, 0 before the first */
    int64_t due_ms; /* server time; -1 while running; when dead: of death */
    struct weir_slice url;    /* empty: none */
    struct weir_slice key;    /* the same */
    struct weir_slice unique; /* the key it was added with; the same */
    const char *priority;     /* NULL: it is normal */
    struct weir_slice retry;  /* ladder of the job itself; empty: none */
    int64_t ttl_ms;           /* 0: none */
    struct weir_slice reason; /* why it is dead: "failed", "exhausted", ...;
                                 or was, where it came by on_dead; or empty */
    struct weir_slice error;  /* text of the last failed run; may be empty */
    struct weir_slice body;   /* msgpack */
    struct weir_slice group;  /* of a bounded topic's event; else empty */
    struct weir_slice place;  /* of a list: where it goes on behind this job, as
                                 text out of 0-9 A-Z a-z + - . , : # _ */
    int64_t added_ms;         /* server time; 0: nobody knows */
    struct weir_slice worker; /* who has a running job; empty: not known */
    int64_t claimed_ms;       /* server time since when it does; or 0 */
    int64_t lease_left_ms;    /* until its lease ends; or 0; -1: in a list */
    struct weir_slice headers;  /* for weir_job_info_headers; empty: none */
    struct weir_slice attempts; /* likewise, <weir/past.h>; empty: none */
    bool is_tick;               /* of a schedule: <weir/cron.h> */
};

#define WEIR_MAX_PLACE 319 /* bytes */

/* As weir_job_headers. */
WEIR_API size_t weir_job_info_headers(const struct weir_job_info *job,
                                      struct weir_header *ret_headers,
                                      size_t cap);

/* `job` is NULL unless `code` is WEIR_OK; WEIR_ENOTFOUND: no such job. */
typedef void (*weir_show_fn)(int code, const struct weir_job_info *job,
                             void *arg);
WEIR_API WEIR_MUST_CHECK int weir_reactor_show(struct weir_reactor *reactor,
                                               const char *topic,
                                               const char *id, weir_show_fn fn,
                                               void *arg);

/* Delete a job in any state. `was` is the state it was in: a running job never
 * runs again and its verdict is ignored, the current run goes on. The tick of a
 * schedule stays (WEIR_EINVAL): delete that. `fn` may be NULL. */
typedef void (*weir_delete_fn)(int code, enum weir_job_state was, void *arg);
WEIR_API WEIR_MUST_CHECK int weir_reactor_delete(struct weir_reactor *reactor,
                                                 const char *topic,
                                                 const char *id,
                                                 weir_delete_fn fn, void *arg);

/* Dead jobs, oldest first, one call of `fn` for each, at most `limit`, then
 * one with `job` NULL and the final code. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_dead(struct weir_reactor *reactor,
                                               const char *topic, size_t limit,
                                               weir_show_fn fn, void *arg);

/* `stats` is NULL unless `code` is WEIR_OK; WEIR_ENOTFOUND: no such topic. */
typedef void (*weir_stats_fn)(int code, const struct weir_stats *stats,
                              void *arg);
WEIR_API WEIR_MUST_CHECK int weir_reactor_stats(struct weir_reactor *reactor,
                                                const char *topic,
                                                weir_stats_fn fn, void *arg);

/* Names of the topics that exist on the server, one call of `fn` for each in
 * byte order, then one with `topic` NULL and the final code. */
typedef void (*weir_topics_fn)(int code, const char *topic, void *arg);
WEIR_API WEIR_MUST_CHECK int weir_reactor_topics(struct weir_reactor *reactor,
                                                 weir_topics_fn fn, void *arg);

/* What this reactor did since it was opened, and has now. Counts of its own, no
 * request: weir_stats has what the server counts for all workers. A job that
 * runs again counts again. */
struct weir_totals {
    uint64_t connections; /* times that the connection came up */
    uint64_t claims;      /* answers of the server to the wish for jobs */
    uint64_t claimed;     /* jobs that came with them */
    uint64_t started;     /* runs: calls of a handler */
    /* What became of jobs; what came too late is in `refused` as well. */
    uint64_t done, retried, snoozed, dead, expired;
    uint64_t returned;   /* given back, not started or given up */
    uint64_t timed_out;  /* runs beyond their timeout: retried or dead */
    uint64_t refused;    /* verdicts that the server did not take any more */
    uint64_t lost;       /* leases that ended under their runs */
    uint64_t late;       /* completions of runs that were over */
    uint64_t held;       /* now: jobs here, whatever their state */
    uint64_t pending;    /* now, of those: to be finished later */
    uint64_t unanswered; /* now: verdicts on their way to the server */
};

/* What of a handler runs. */
struct weir_current {
    char topic[WEIR_MAX_TOPIC + 1];
    char id[WEIR_MAX_ID + 1]; /* "" where no job has the stack: an instance is
                                 opened, flushed or closed, or one of its timers
                                 or descriptors calls */
    size_t others;            /* jobs that the same call has, beside that one */
    const char *handler; /* name of its plugin; borrowed; NULL: a function */
};

/* For programs that name the culprit when they crash: what runs on the thread
 * that calls this, on behalf of the reactor, be it the loop's or one of those
 * of handlers that block. False: nothing. May be called by a handler of a
 * signal, at any moment until weir_reactor_free returned. */
WEIR_API bool weir_reactor_current(const struct weir_reactor *reactor,
                                   struct weir_current *ret_current);

/* Store how the process ends, such as "SIGSEGV in close.so+0x1139", with the
 * jobs of `delay` topics that the reactor has: `weir show` tells it of the
 * crash. 100 bytes are kept. `how` is borrowed until the process has ended. For
 * a handler of a fatal signal, on any thread, at any moment until
 * weir_reactor_free returned. Waits for about 1 s at most for another thread,
 * which asks the server. Only the first call counts. */
WEIR_API void weir_reactor_note_crash(const struct weir_reactor *reactor,
                                      const char *how);

/* Cheap: a host may ask often. On the loop's thread. */
WEIR_API void weir_reactor_totals(const struct weir_reactor *reactor,
                                  struct weir_totals *ret_totals);

/* What the topic's handler counts with weir_job_count, since it is served: one
 * call of `fn` for each counter in byte order, then one with `name` NULL, all
 * before this returns; `fn` must not free the reactor. On the loop's thread.
 * WEIR_ENOTFOUND: this reactor does not serve the topic. WEIR_ECANCELED. */
typedef void (*weir_counter_fn)(const char *name, uint64_t value, void *arg);
WEIR_API WEIR_MUST_CHECK int
weir_reactor_counters(const struct weir_reactor *reactor, const char *topic,
                      weir_counter_fn fn, void *arg);

/* --- managing jobs ---------------------------------------------------- */

/* When a job is to be due; zero means "not given". */
struct weir_due {
    int64_t delay_ms; /* from now on the server's clock, 0 to 3,650 days */
    int64_t at_ms;    /* absolute server time since 1970 instead, or 0 */
};

/* Give a scheduled or ready job another due time. `code`: WEIR_OK with the new
 * due time, WEIR_ENOTFOUND, WEIR_EINVAL when the job is running or dead (`was`
 * says which). */
typedef void (*weir_reschedule_fn)(int code, enum weir_job_state was,
                                   int64_t due_ms, void *arg);
WEIR_API WEIR_MUST_CHECK int
weir_reactor_reschedule(struct weir_reactor *reactor, const char *topic,
                        const char *id, const struct weir_due *due,
                        weir_reschedule_fn fn, void *arg);

/* How many jobs a request changed, and its final code. Where a connection broke
 * in between and the request went out again it may be fewer than they were. */
typedef void (*weir_count_fn)(int code, uint64_t count, void *arg);

/* Make dead jobs ready again, their counters kept but attempt and failures
 * back at 0, reason and error gone: the one with this id, or all when `id` is
 * NULL (in bounded steps; jobs that die meanwhile stay). WEIR_ENOTFOUND. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_requeue(struct weir_reactor *reactor,
                                                  const char *topic,
                                                  const char *id,
                                                  weir_count_fn fn, void *arg);

/* Delete dead jobs: one, or all when `id` is NULL (in bounded steps). */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_purge_dead(struct weir_reactor *reactor, const char *topic,
                        const char *id, weir_count_fn fn, void *arg);

/* Delete every job of the topic in every state, in bounded steps; running ones
 * as weir_reactor_delete does. What is added meanwhile goes as well, up to
 * 100,000 jobs more than there were. The topic with its options and totals
 * stays. WEIR_ENOTFOUND: no such topic. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_purge(struct weir_reactor *reactor,
                                                const char *topic,
                                                weir_count_fn fn, void *arg);

/* Jobs in one state, or in any when `state` is -1, each state in its order
 * (scheduled and ready by due time, running by token, dead by time of death),
 * at most `limit`; one call of `fn` each, then one with `job` NULL. Of a
 * `delay` topic those that were added together with jobs of other due times
 * come behind the others, and behind them those with a key or a priority.
 *
 * A page of the store at a time. Of a `delay` topic, what keeps its state and
 * due time meanwhile comes once, whatever else comes and goes; or twice where
 * it was added together with jobs of other due times, of which some became due.
 * What changes may be missed or come twice. It ends: what is to be due behind
 * all that there was at the beginning is left out. Of other kinds what changes
 * may also have others missed or come twice. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_list(struct weir_reactor *reactor,
                                               const char *topic, int state,
                                               size_t limit, weir_show_fn fn,
                                               void *arg);

struct weir_list {
    int state;         /* enum weir_job_state; -1: any */
    size_t limit;      /* most jobs */
    const char *after; /* the place of one that was listed: go on behind it, and
                          with any state behind its; NULL: begin */
};

/* weir_reactor_list from a place on; nothing is kept between two calls. Of
 * `sync` and `concurrent` topics jobs in front of it are read and left out.
 * WEIR_EINVAL also: `after` is none. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_list_from(struct weir_reactor *reactor, const char *topic,
                       const struct weir_list *list, weir_show_fn fn,
                       void *arg);

/* --- managing topics --------------------------------------------------- */

typedef void (*weir_code_fn)(int code, const char *text, void *arg);

/* Claim no more from the topic, whoever asks, until it is resumed. Workers obey
 * within 1 s and give back what they had not started; adds still work. Makes
 * the topic if need be. WEIR_EKIND: it is of another kind. `text` is for a
 * person. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_pause(struct weir_reactor *reactor,
                                                const char *topic,
                                                bool is_paused, weir_code_fn fn,
                                                void *arg);

/* Store options with the topic: a list of "name=value", ended by NULL, as in
 * struct weir_topic_options; an empty value removes one. All or none are set.
 * Makes the topic if need be; workers follow within 5 s, busy ones within 1 s.
 * WEIR_EINVAL with a sentence in `err`; `fn` gets it where on_dead leads back
 * to this topic by what is stored with others, and WEIR_EKIND when the topic is
 * to become of another kind and has jobs. When it becomes one its totals begin
 * again, and options that the new kind does not have are removed. */
WEIR_API WEIR_MUST_CHECK int weir_reactor_set(struct weir_reactor *reactor,
                                              const char *topic,
                                              const char *const *settings,
                                              weir_code_fn fn, void *arg,
                                              struct weir_error *err);

/* The options stored with the topic, one call of `fn` each in byte order, then
 * one with `key` NULL and the final code (WEIR_ENOTFOUND: no such topic). */
typedef void (*weir_setting_fn)(int code, const char *key, const char *value,
                                void *arg);
WEIR_API WEIR_MUST_CHECK int weir_reactor_settings(struct weir_reactor *reactor,
                                                   const char *topic,
                                                   weir_setting_fn fn,
                                                   void *arg);

/* Delete a topic that holds no jobs, with its options and totals. Who uses it
 * next makes it anew; it is listed again within 10 minutes where that one used
 * it before. WEIR_EEXISTS, `text` says why: it holds jobs (weir_reactor_purge),
 * some are on their way to other topics, or a worker waits for its jobs.
 * WEIR_ENOTFOUND: no such topic. After any other error it can be repeated. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_delete_topic(struct weir_reactor *reactor, const char *topic,
                          weir_code_fn fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif

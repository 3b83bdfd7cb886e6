/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGIN_H
#define WEIR_PLUGIN_H

/* All that the author of a handler reads.
 *
 * A plugin is a shared object that exports one data symbol, made by
 * WEIR_PLUGIN_EXPORT; it links nothing of weir's. The host checks the symbol,
 * calls `open` once per topic the plugin is bound to (an *instance*), then
 * `run` once for each attempt of each job, then `close`. All of these run on
 * the reactor's loop thread, one at a time, and must not block it
 * (WEIR_PLUGIN_BLOCKING is for handlers that do).
 *
 * The life of one job: somebody adds it to a topic with a delay; when it is
 * due a worker claims it under a lease and calls `run`, which reads the body
 * and returns a verdict:
 *
 *     WEIR_DONE                     handled; the job is gone
 *     weir_retry(job, "why")        again after the next step of its ladder,
 *                                   dead when the ladder has no further step
 *     weir_retry_after(job, ms, "why")  the same, but this delay
 *     weir_snooze(job, ms)          come back later; uses no attempt
 *     weir_fail(job, "why")         dead at once, kept with this reason
 *     WEIR_PENDING                  not finished yet: weir_complete will say
 *
 * A handler that waits for something returns WEIR_PENDING after it took a
 * handle with weir_job_handle(), and completes the run later, once, from the
 * loop or from any thread. Until then the job counts as running, its lease is
 * kept alive, and at most `concurrency` jobs of the topic are in that state.
 *
 * A worker that dies before its verdict reached the server has its jobs run
 * again by another one: delivery is at least once, so make effects repeatable
 * or fence them with weir_job_token().
 *
 * A program that embeds the reactor writes its handlers against this header
 * too; `self` is then whatever it registered the handler with.
 *
 * Memory: everything read from a job (id, body, url, strings inside the body)
 * is borrowed and valid until `run` returns or, where it returned WEIR_PENDING,
 * until weir_complete was called or the cancel callback returned. Strings are
 * not NUL-terminated unless said so. Each side frees only what it allocated. */

#include <weir/base.h>
#include <weir/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes only when the meaning of what is here changes. Tables grow at their
 * end; a reader treats what lies beyond a table's `size` as absent. */
#define WEIR_PLUGIN_ABI 1

enum weir_verdict {
    WEIR_DONE = 0,
    WEIR_RETRY = 1,
    WEIR_RETRY_AFTER = 2,
    WEIR_SNOOZE = 3,
    WEIR_FAIL = 4,
    WEIR_PENDING = 5,
    WEIR_EACH = 6 /* of `run_batch` only */
};

/* Why a pending run is given up. */
enum weir_cancel {
    WEIR_CANCEL_TIMEOUT, /* it took longer than the topic's timeout */
    WEIR_CANCEL_STOP,    /* the reactor stops: the job is given back */
    WEIR_CANCEL_LOST     /* its lease was lost: the job runs elsewhere */
};

enum weir_type {
    WEIR_TYPE_NONE,  /* nothing at this path */
    WEIR_TYPE_NIL,   /* null */
    WEIR_TYPE_BOOL,  /* as.boolean */
    WEIR_TYPE_INT,   /* as.i64; every integer that fits */
    WEIR_TYPE_UINT,  /* as.u64; integers above INT64_MAX only */
    WEIR_TYPE_FLOAT, /* as.f64 */
    WEIR_TYPE_STR,   /* as.bytes, UTF-8 by convention, not checked */
    WEIR_TYPE_BIN,   /* as.bytes */
    WEIR_TYPE_ARRAY, /* as.count elements */
    WEIR_TYPE_MAP,   /* as.count pairs */
    WEIR_TYPE_EXT    /* as.bytes without the type byte */
};

/* One value inside a body. `bytes` is borrowed from the job. */
struct weir_value {
    enum weir_type type;
    union {
        bool boolean;
        int64_t i64;
        uint64_t u64;
        double f64;
        struct weir_slice bytes;
        size_t count;
    } as;
};

/* How often what happened to the job so far. */
struct weir_counters {
    uint32_t attempt;  /* number of this run, from 1; a snooze repeats it */
    uint32_t failures; /* verdicts RETRY and RETRY_AFTER, and timeouts */
    uint32_t timeouts; /* runs that exceeded the topic's timeout */
    uint32_t crashes;  /* leases that ended without a verdict */
    uint32_t snoozes;  /* verdicts SNOOZE */
};

/* Where a job was before it died and moved here because of `on_dead`. Topic, id
 * and token together name this death; they are the same in every run. */
struct weir_origin {
    struct weir_slice topic;
    struct weir_slice id;
    uint64_t token;           /* of the claim under which it died */
    int64_t died_ms;          /* when its last run began, server time */
    struct weir_slice reason; /* "failed", "exhausted", "crashed", ... */
    struct weir_slice error;  /* text of its last failed run; may be empty */
    uint32_t attempts;        /* runs there */
};

/* A job that a handler adds: as struct weir_new_job. Zero means "not given". */
struct weir_follow {
    const char *id;         /* NULL: weir makes one */
    struct weir_slice body; /* one msgpack value; empty: null */
    int64_t delay_ms;       /* from the verdict on */
    int64_t at_ms;          /* server time instead, or 0 */
    const char *retry;      /* ladder of this job */
    int64_t ttl_ms;
    const char *url;
};

struct weir_host;
struct weir_job;

/* One pending run, as whoever finishes it holds it. A plain value; copy it
 * freely, also to other threads. It outlives the run: completing a run that is
 * over (completed, timed out, given back) does nothing but count and log. */
struct weir_handle {
    const struct weir_host *host;
    void *owner;     /* the host's */
    uint64_t ticket; /* 0: out of memory, do not return WEIR_PENDING */
};

/* Runs on the loop thread, once at most, when a pending run is given up: stop
 * working on it. The job is readable until this returns; a completion that
 * comes afterwards is refused. Whoever lets go of the handle here says so by
 * completing it in here, with whatever verdict: then none is waited for. */
typedef void (*weir_cancel_fn)(struct weir_job *job, enum weir_cancel why,
                               void *arg);

/* A job as a handler sees it; read it through the functions below only. The
 * first member is part of the ABI, what follows it belongs to the host. */
struct weir_job {
    const struct weir_host *host;
};

/* The host's functions. Call them through the inline functions below. */
struct weir_host {
    uint32_t size; /* sizeof(struct weir_host) in the host's build */

    struct weir_slice (*job_id)(const struct weir_job *job);
    struct weir_slice (*job_topic)(const struct weir_job *job);
    struct weir_slice (*job_url)(const struct weir_job *job);
    struct weir_slice (*job_body)(const struct weir_job *job);
    void (*job_counters)(const struct weir_job *job,
                         struct weir_counters *ret_counters);
    uint64_t (*job_token)(const struct weir_job *job);
    int64_t (*job_due_ms)(const struct weir_job *job);
    int64_t (*job_lateness_us)(const struct weir_job *job);
    void (*job_value)(const struct weir_job *job, const char *path,
                      struct weir_value *ret_value);
    size_t (*job_body_json)(const struct weir_job *job, char *buf, size_t cap);
    void (*job_set_delay)(struct weir_job *job, int64_t delay_ms);
    void (*job_set_reason)(struct weir_job *job, const char *text);
    void (*job_log)(const struct weir_job *job, enum weir_level level,
                    const char *text);
    struct weir_handle (*job_handle)(struct weir_job *job);
    void (*job_on_cancel)(struct weir_job *job, weir_cancel_fn fn, void *arg);
    int (*complete)(struct weir_handle handle, enum weir_verdict verdict,
                    int64_t delay_ms, const char *why);
    bool (*job_origin)(const struct weir_job *job,
                       struct weir_origin *ret_origin);
    bool (*job_canceled)(const struct weir_job *job);
    struct weir_slice (*job_group)(const struct weir_job *job);
    int (*job_follow)(struct weir_job *job, const struct weir_follow *follow,
                      size_t size);
    void (*job_count)(struct weir_job *job, const char *name, uint64_t by);
    int (*job_follow_to)(struct weir_job *job, const char *topic,
                         const struct weir_follow *follow, size_t size);
};

/* What the job is. The id is what it was added with, or what weir made (it
 * then begins with '~'); the url is empty when none was given; the body is one
 * msgpack value, checked to be well-formed and at most 32 levels deep. */
static inline struct weir_slice weir_job_id(const struct weir_job *job)
{
    return job->host->job_id(job);
}

static inline struct weir_slice weir_job_topic(const struct weir_job *job)
{
    return job->host->job_topic(job);
}

static inline struct weir_slice weir_job_url(const struct weir_job *job)
{
    return job->host->job_url(job);
}

static inline struct weir_slice weir_job_body(const struct weir_job *job)
{
    return job->host->job_body(job);
}

/* The group that a job of a bounded topic was added to; else empty. */
static inline struct weir_slice weir_job_group(const struct weir_job *job)
{
    const struct weir_slice none = {NULL, 0};

    if (job->host->size <
        offsetof(struct weir_host, job_group) + sizeof(job->host->job_group))
        return none;
    return job->host->job_group(job);
}

static inline struct weir_counters weir_job_counters(const struct weir_job *job)
{
    struct weir_counters counters;

    job->host->job_counters(job, &counters);
    return counters;
}

/* The fencing token of this claim: grows with every claim of the topic. Store
 * it with what you write and refuse writes that carry a smaller one. */
static inline uint64_t weir_job_token(const struct weir_job *job)
{
    return job->host->job_token(job);
}

/* When the job was due, in ms of the server's clock since 1970. */
static inline int64_t weir_job_due_ms(const struct weir_job *job)
{
    return job->host->job_due_ms(job);
}

/* How long after its due time this run starts, in microseconds; not negative:
 * server time at the claim minus due time, plus local time since the claim. */
static inline int64_t weir_job_lateness_us(const struct weir_job *job)
{
    return job->host->job_lateness_us(job);
}

/* True when the job moved here because of `on_dead`, and from where. */
static inline bool weir_job_origin(const struct weir_job *job,
                                   struct weir_origin *ret_origin)
{
    return job->host->job_origin(job, ret_origin);
}

/* The value at `path` in the body: map keys and array positions joined by
 * dots, "" for the whole body ("items.0.sku"). A key that itself contains a
 * dot cannot be reached; of equal keys the first counts. WEIR_TYPE_NONE when
 * there is nothing, never an error. */
static inline struct weir_value weir_job_value(const struct weir_job *job,
                                               const char *path)
{
    struct weir_value value;

    job->host->job_value(job, path, &value);
    return value;
}

/* Typed reads: true and the value when it is there, has the type and fits;
 * otherwise false and `ret_value` untouched. */
static inline bool weir_job_i64(const struct weir_job *job, const char *path,
                                int64_t *ret_value)
{
    struct weir_value value = weir_job_value(job, path);

    if (value.type != WEIR_TYPE_INT)
        return false;
    *ret_value = value.as.i64;
    return true;
}

static inline bool weir_job_u64(const struct weir_job *job, const char *path,
                                uint64_t *ret_value)
{
    struct weir_value value = weir_job_value(job, path);

    if (value.type == WEIR_TYPE_UINT) {
        *ret_value = value.as.u64;
        return true;
    }
    if (value.type != WEIR_TYPE_INT || value.as.i64 < 0)
        return false;
    *ret_value = (uint64_t)value.as.i64;
    return true;
}

/* Integers are converted; beyond 2^53 they lose digits. */
static inline bool weir_job_f64(const struct weir_job *job, const char *path,
                                double *ret_value)
{
    struct weir_value value = weir_job_value(job, path);

    if (value.type == WEIR_TYPE_FLOAT)
        *ret_value = value.as.f64;
    else if (value.type == WEIR_TYPE_INT)
        *ret_value = (double)value.as.i64;
    else if (value.type == WEIR_TYPE_UINT)
        *ret_value = (double)value.as.u64;
    else
        return false;
    return true;
}

static inline bool weir_job_bool(const struct weir_job *job, const char *path,
                                 bool *ret_value)
{
    struct weir_value value = weir_job_value(job, path);

    if (value.type != WEIR_TYPE_BOOL)
        return false;
    *ret_value = value.as.boolean;
    return true;
}

static inline bool weir_job_str(const struct weir_job *job, const char *path,
                                struct weir_slice *ret_value)
{
    struct weir_value value = weir_job_value(job, path);

    if (value.type != WEIR_TYPE_STR)
        return false;
    *ret_value = value.as.bytes;
    return true;
}

/* The body as one line of JSON, like snprintf: writes at most `cap` bytes with
 * the NUL, returns the full length without it. 0 means out of memory. */
static inline size_t weir_job_body_json(const struct weir_job *job, char *buf,
                                        size_t cap)
{
    return job->host->job_body_json(job, buf, cap);
}

/* Log a line tagged with the job's topic and id. `text` is borrowed. */
static inline void weir_job_log(const struct weir_job *job,
                                enum weir_level level, const char *text)
{
    job->host->job_log(job, level, text);
}

/* Add to a counter of the instance's own, [a-z0-9_]{1,40}, 32 of them at most;
 * it begins at 0. Names beyond that are ignored, and the first one is logged.
 * While the job is readable; what a thread counts shows when its run returns.
 * Counters live as long as the reactor: `weir run` logs them when it stops. */
static inline void weir_job_count(struct weir_job *job, const char *name,
                                  uint64_t by)
{
    if (job->host->size > offsetof(struct weir_host, job_count))
        job->host->job_count(job, name, by);
}

/* Verdicts with their details; return what these return. `why` is copied, cut
 * at 200 bytes, and may be NULL. Delays are in ms, 0 to 365 days; a value
 * outside is moved to the nearest bound and logged. */
static inline enum weir_verdict weir_retry(struct weir_job *job,
                                           const char *why)
{
    job->host->job_set_reason(job, why);
    return WEIR_RETRY;
}

static inline enum weir_verdict
weir_retry_after(struct weir_job *job, int64_t delay_ms, const char *why)
{
    job->host->job_set_delay(job, delay_ms);
    job->host->job_set_reason(job, why);
    return WEIR_RETRY_AFTER;
}

static inline enum weir_verdict weir_snooze(struct weir_job *job,
                                            int64_t delay_ms)
{
    job->host->job_set_delay(job, delay_ms);
    return WEIR_SNOOZE;
}

static inline enum weir_verdict weir_fail(struct weir_job *job, const char *why)
{
    job->host->job_set_reason(job, why);
    return WEIR_FAIL;
}

/* Add a job to the same topic with this run's verdict, whichever it is: both
 * are written in one step, or neither, and a run that repeats adds again. While
 * the job is readable; where the run is given up, nothing is added. A job whose
 * id exists by then is not added, which is logged. Up to 64 jobs and 16 MiB a
 * run; the topic's max_body and max_pending do not hold for them. Everything is
 * copied. WEIR_EINVAL, WEIR_EMALFORMED, WEIR_ETOOBIG, WEIR_EFULL (too many),
 * WEIR_EKIND (not for topics of this kind, or an older host), WEIR_ENOMEM. */
static inline int weir_job_follow(struct weir_job *job,
                                  const struct weir_follow *follow)
{
    if (job->host->size <= offsetof(struct weir_host, job_follow))
        return WEIR_EKIND;
    return job->host->job_follow(job, follow, sizeof(*follow));
}

/* The same, to another topic of kind delay, there or not yet: recorded in the
 * same step, delivered at least once, added once. While that is full they wait,
 * from 10,000 packs on nothing is claimed here; is it of another kind, they are
 * dead here, `undeliverable`. Both are logged. WEIR_EINVAL: also no topic. */
static inline int weir_job_follow_to(struct weir_job *job, const char *topic,
                                     const struct weir_follow *follow)
{
    if (job->host->size <= offsetof(struct weir_host, job_follow_to))
        return WEIR_EKIND;
    return job->host->job_follow_to(job, topic, follow, sizeof(*follow));
}

/* --- finishing later ----------------------------------------------------- */

/* The handle of this run: take it inside `run`, before you return
 * WEIR_PENDING. Each call gives the same one. Where `run` returns something
 * else the handle finds nothing. */
static inline struct weir_handle weir_job_handle(struct weir_job *job)
{
    return job->host->job_handle(job);
}

/* Be told when the pending run is given up; NULL: not. */
static inline void weir_job_on_cancel(struct weir_job *job, weir_cancel_fn fn,
                                      void *arg)
{
    job->host->job_on_cancel(job, fn, arg);
}

/* Finish a pending run, from any thread, also before its `run` returned. The
 * verdict is any but WEIR_PENDING; `delay_ms` is for WEIR_RETRY_AFTER and
 * WEIR_SNOOZE, `why` for WEIR_RETRY, WEIR_RETRY_AFTER and WEIR_FAIL, copied,
 * may be NULL. On the loop thread what was borrowed from the job is gone when
 * this returns, elsewhere do not touch it from the call on. WEIR_EINVAL (not
 * such a verdict), WEIR_ENOMEM (call again), WEIR_ECANCELED (the reactor is
 * gone). WEIR_OK does not say that the run was still there. */
static inline int weir_complete(struct weir_handle handle,
                                enum weir_verdict verdict, int64_t delay_ms,
                                const char *why)
{
    return handle.host->complete(handle, verdict, delay_ms, why);
}

/* --- handlers that block -------------------------------------------------- */

/* For a handler that blocks: its run was given up (it took longer than the
 * topic's timeout, its lease is lost, the reactor stops), so that its verdict
 * will not count. A long one looks now and then. */
static inline bool weir_job_canceled(const struct weir_job *job)
{
    return job->host->size > offsetof(struct weir_host, job_canceled) &&
           job->host->job_canceled(job);
}

/* A handler. `self` is the instance. Any return value that is not a verdict
 * counts as WEIR_FAIL and is logged; WEIR_PENDING without a handle counts as
 * WEIR_RETRY and is logged. */
typedef enum weir_verdict (*weir_run_fn)(void *self, struct weir_job *job);

/* A handler of many jobs at once: one to as many as the topic's `batch` says,
 * in their order, of a bounded topic all of one group. Return a verdict for all
 * of them (delay and reason are those that the first job was given), or
 * WEIR_EACH: each job has the one at its place in `verdicts`, which are
 * WEIR_DONE before. WEIR_PENDING needs a handle of each job it is for. */
typedef enum weir_verdict (*weir_run_batch_fn)(void *self,
                                               struct weir_job *const *jobs,
                                               size_t count,
                                               enum weir_verdict *verdicts);

enum weir_option_type {
    WEIR_OPTION_TEXT,     /* text */
    WEIR_OPTION_INT,      /* number, within min..max */
    WEIR_OPTION_BOOL,     /* number 0 or 1; written yes|no|true|false */
    WEIR_OPTION_DURATION, /* number in ms, within min..max; written 250ms 15s */
    WEIR_OPTION_SIZE,     /* number in bytes; written 512 64KiB 1MiB */
    WEIR_OPTION_CHOICE    /* text, one of `choices` */
};

/* One option an instance understands. The host parses and checks the values;
 * unknown names and bad values are refused before `open`. */
struct weir_option {
    const char *name; /* [a-z0-9_]+ */
    enum weir_option_type type;
    const char *fallback; /* value when none is given; NULL: it is required */
    int64_t min, max;     /* bounds of numbers; both 0: none */
    const char *choices;  /* "a|b|c" for WEIR_OPTION_CHOICE, else NULL */
    const char *help;     /* one sentence */
    uint32_t flags;       /* WEIR_OPTION_... */
};

/* For `flags`: the value is nobody's business, no sentence shows it. */
#define WEIR_OPTION_SECRET 1

/* An option's value, in the order of the plugin's option table. `text` is the
 * value as written, NUL-terminated. */
struct weir_option_value {
    const char *text;
    int64_t number;
};

/* What `open` is told. Everything is borrowed for the call, except `host`. */
struct weir_open {
    uint32_t size; /* sizeof(struct weir_open) in the host's build */
    const struct weir_host *host;           /* valid until `close` returned */
    const char *topic;                      /* NUL-terminated */
    const struct weir_option_value *values; /* one for each declared option */
    char *error;      /* write a sentence here when `open` fails */
    size_t error_cap; /* bytes at `error`, with the NUL */
    /* The instance's timers and descriptors, valid until `close` returned. */
    struct weir_loop *loop;
    void *self; /* what a program served the table with, else NULL */
};

/* The instance's share of the loop; NULL: this host has none to give. */
static inline struct weir_loop *weir_open_loop(const struct weir_open *open)
{
    return open->size <= offsetof(struct weir_open, loop) ? NULL : open->loop;
}

static inline void *weir_open_self(const struct weir_open *open)
{
    return open->size <= offsetof(struct weir_open, self) ? NULL : open->self;
}

/* The exported table. Only `abi`, `size`, `name` and one of `run` and
 * `run_batch` are required. */
struct weir_plugin {
    uint32_t abi;        /* WEIR_PLUGIN_ABI */
    uint32_t size;       /* sizeof(struct weir_plugin) */
    const char *name;    /* [a-z0-9_-]+ */
    const char *version; /* the plugin's own, for people; may be NULL */
    const char *summary; /* one sentence; may be NULL */

    const struct weir_option *options; /* NULL when there are none */
    uint32_t option_count;
    uint32_t option_size; /* sizeof(struct weir_option) */

    /* Make an instance. Returns 0 and writes `ret_self`, or a negative
     * WEIR_E... code with a sentence in open->error. May be NULL. */
    int (*open)(const struct weir_open *open, void **ret_self);

    weir_run_fn run;

    /* The verdicts of this turn are about to leave the process: make durable
     * what they promise (flush buffers). Called once per turn and instance
     * that ran. Returns 0; otherwise the turn's DONE verdicts become retries
     * with the reason "flush failed". May be NULL. */
    int (*flush)(void *self);

    /* Release the instance. No call comes after it. May be NULL. */
    void (*close)(void *self);

    uint32_t flags; /* WEIR_PLUGIN_... */

    /* Called instead of `run`, unless it is NULL. */
    weir_run_batch_fn run_batch;
};

/* For `flags`: `run` may block. It is then called by threads beside the loop,
 * several at once; `open` and `close` are not. All that it may do with its job
 * works there, but for WEIR_PENDING, which counts as WEIR_RETRY, and what comes
 * with it. The threads block all signals but those of faults. When a run is
 * given up (see weir_job_canceled) its thread goes on with a copy of the job
 * until `run` returns, and `close` waits for that. Not together with `flush` or
 * without `run`: `run_batch` is not used then. */
#define WEIR_PLUGIN_BLOCKING 1

#define WEIR_PLUGIN_SYMBOL "weir_plugin_1"

/* Define the exported table:
 *
 *     WEIR_PLUGIN_EXPORT = {
 *         .abi = WEIR_PLUGIN_ABI,
 *         .size = sizeof(struct weir_plugin),
 *         .name = "hello",
 *         .run = run,
 *     }; */
#ifdef __cplusplus
#    define WEIR_PLUGIN_LINKAGE extern "C"
#else
#    define WEIR_PLUGIN_LINKAGE extern
#endif
#define WEIR_PLUGIN_EXPORT                                               \
    WEIR_PLUGIN_LINKAGE WEIR_API const struct weir_plugin weir_plugin_1; \
    const struct weir_plugin weir_plugin_1

#ifdef __cplusplus
}
#endif
#endif

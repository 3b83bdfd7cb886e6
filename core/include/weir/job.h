/* SPDX-License-Identifier: MIT */
#ifndef WEIR_JOB_H
#define WEIR_JOB_H

/* A job as its handler sees it: what can be read of it, what can be added with
 * its verdict, how a pending run is finished. <weir/plugin.h> includes this; it
 * says how long what is borrowed stays. */

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#define WEIR_MAX_HEADERS 16  /* of one job */
#define WEIR_MAX_HEADER  256 /* bytes of a name and its value together */

/* What is said of a job beside its body, "traceparent" for example. The name is
 * a token of HTTP, the same in whatever case: letters, digits and
 * !#$%&'*+-.^_`|~; those that begin with "weir." are weir's own. The value is
 * visible ASCII, with blanks only within, and not empty. Comes in arrays, and
 * so never grows. */
struct weir_header {
    struct weir_slice name;
    struct weir_slice value;
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
    /* Where none of them is "traceparent" or "tracestate" both are those of the
     * job that the handler has, as far as there is room. */
    const struct weir_header *headers;
    size_t header_count;
    /* As in struct weir_new_job. The topic's option `key` says nothing of these
     * jobs, and an older host passes both over. */
    const char *key, *priority;
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
    int64_t (*job_added_ms)(const struct weir_job *job);
    size_t (*job_headers)(const struct weir_job *job,
                          struct weir_header *ret_headers, size_t cap);
    struct weir_slice (*job_header)(const struct weir_job *job,
                                    const char *name);
};

/* What the job is. The id is what it was added with, or what weir made (it
 * then begins with '@'); the url is empty when none was given; the body is one
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

/* When the job was added, in ms of the server's clock since 1970; retries and
 * snoozes leave it as it is. 0: nobody knows (an entry of a foreign list, or an
 * older host). A job that another one's verdict or death added was added with
 * that. */
static inline int64_t weir_job_added_ms(const struct weir_job *job)
{
    return job->host->size <= offsetof(struct weir_host, job_added_ms)
               ? 0
               : job->host->job_added_ms(job);
}

/* The headers that the job was added with, `cap` at most, of which there are
 * WEIR_MAX_HEADERS at most: how many were written. What somebody else wrote and
 * is no header is not among them. */
static inline size_t weir_job_headers(const struct weir_job *job,
                                      struct weir_header *ret_headers,
                                      size_t cap)
{
    return job->host->size <= offsetof(struct weir_host, job_headers)
               ? 0
               : job->host->job_headers(job, ret_headers, cap);
}

/* The value of the header of this name, in whatever case; empty: it has none.
 */
static inline struct weir_slice weir_job_header(const struct weir_job *job,
                                                const char *name)
{
    const struct weir_slice none = {NULL, 0};

    return job->host->size <= offsetof(struct weir_host, job_header)
               ? none
               : job->host->job_header(job, name);
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

#ifdef __cplusplus
}
#endif
#endif

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
#include <weir/job.h>
#include <weir/loop.h>
#include <weir/redis.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes only when the meaning of what is here changes. Tables grow at their
 * end; a reader treats what lies beyond a table's `size` as absent. */
#define WEIR_PLUGIN_ABI 1

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
    struct weir_redis_source *redis; /* for weir_open_redis */
    uint32_t *ret_limit;             /* see weir_open_limit */
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

/* The server of this address, or that of the jobs where `url` is NULL: see
 * <weir/redis.h>. WEIR_EINVAL (the address), WEIR_ENOTFOUND (this host has no
 * server, or is an older one), WEIR_ENOMEM; a sentence is in open->error. */
static inline int weir_open_redis(const struct weir_open *open, const char *url,
                                  struct weir_redis **ret_redis)
{
    static const char none[] = "there is no server here: a worker has one";

    if (open->size > offsetof(struct weir_open, redis) && open->redis != NULL)
        return open->redis->open(open->redis, url, ret_redis, open->error,
                                 open->error_cap);
    for (size_t i = 0; i < sizeof(none) && i < open->error_cap; i++)
        open->error[i] = none[i];
    return WEIR_ENOTFOUND;
}

/* Have at most so many runs pending at once, where the topic's `concurrency`
 * says more: other jobs stay with the host, their time has not begun. 0: no
 * limit, as without it. An older host has none. */
static inline void weir_open_limit(const struct weir_open *open, uint32_t most)
{
    if (open->size > offsetof(struct weir_open, ret_limit))
        *open->ret_limit = most;
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
     * that ran. Returns 0. WEIR_SNOOZE, of a worker that lacks memory or
     * descriptors: the turn's DONE verdicts become snoozes of 1 s. Otherwise
     * they become retries with the reason "flush failed". May be NULL. */
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

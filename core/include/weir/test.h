/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

/* Testing a handler: a trial runs it under weir's own reactor against jobs in
 * memory, in virtual time. No server, no loop, no waiting: fifteen hours pass
 * in one call. Ladders, ttl, flush and verdicts behave as in a worker, because
 * they are the same code.
 *
 *     struct weir_trial_options options = {
 *         .serve = {.plugin = "./hello.so", .options = {"retry=15s 3m"}},
 *     };
 *     struct weir_trial_job job = {.id = "1", .json = "{\"order\":42}"};
 *     struct weir_trial *trial;
 *     struct weir_error err;
 *
 *     if (weir_trial_open(&options, &trial, &err) < 0 ||
 *         weir_trial_add(trial, &job, &err) < 0)
 *         fail(err.text);
 *     weir_trial_advance(trial, 0);
 *     assert(weir_trial_last(trial)->verdict == WEIR_DONE);
 *     weir_trial_free(trial);
 *
 * Nothing here asserts, prints or exits, so it fits any test framework. One
 * thread at a time may use a trial; handles of pending runs may be completed
 * from any. A handler that blocks does so in weir_trial_advance. Link
 * libweir. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_trial;

/* Zero means the default in brackets. Everything is copied, except what `serve`
 * keeps in a program, too. */
struct weir_trial_options {
    const char *topic; /* ["trial"] */
    /* The handler, and how it is served: as for weir_reactor_serve. */
    struct weir_topic_options serve;
    /* The table of a plugin that is linked into the test; then `serve` names no
     * handler. Kept. */
    const struct weir_plugin *table;
    int64_t start_ms; /* the server's clock at first [1,700,000,000,000] */
    weir_log_fn log;  /* told each line as it comes; may be NULL */
    void *log_arg;
};

/* Open a trial and the handler's instance. Errors as of weir_reactor_serve;
 * `err` may be NULL. */
WEIR_API WEIR_MUST_CHECK int
weir_trial_open(const struct weir_trial_options *options,
                struct weir_trial **ret_trial, struct weir_error *err);

/* Cancel what is pending, close the instance and free everything: what has not
 * been completed by then must not be completed afterwards. NULL is fine. */
WEIR_API void weir_trial_free(struct weir_trial *trial);

/* A job for the handler; everything is copied. Zero means "not given". */
struct weir_trial_job {
    const char *id;         /* NULL: "@1", "@2", ... */
    const char *json;       /* the body as JSON; NULL: `body` */
    struct weir_slice body; /* the body as msgpack; empty: null */
    int64_t delay_ms;       /* from now */
    const char *retry;      /* a ladder of its own */
    int64_t ttl_ms;
    const char *url;
    /* What happened to it before. `attempt` is the number of the first run
     * here, so 0 and 1 are the same. */
    struct weir_counters counters;
    const struct weir_origin *origin; /* it moved here by on_dead; NULL: no */
    const struct weir_header *headers;
    size_t header_count;
    /* As of a bounded topic: jobs of a batch are of one group. NULL: none. */
    const char *group;
};

/* Add a job. It runs in a later weir_trial_advance. WEIR_EINVAL,
 * WEIR_EMALFORMED, WEIR_EEXISTS (a job of this id was added before),
 * WEIR_ENOMEM. */
WEIR_API WEIR_MUST_CHECK int weir_trial_add(struct weir_trial *trial,
                                            const struct weir_trial_job *job,
                                            struct weir_error *err);

/* Let `ms` pass and run what becomes due meanwhile, each at its due time; 0
 * runs what is due now. Timers of the instance fire likewise (0 ms are 1 ms),
 * its descriptors are looked at once. Not from inside a handler. */
WEIR_API void weir_trial_advance(struct weir_trial *trial, int64_t ms);

/* For handlers that wait for something real, another thread or a descriptor:
 * let time pass as it does until no run is pending, for `ms` at most. True:
 * none is. */
WEIR_API bool weir_trial_wait(struct weir_trial *trial, int64_t ms);

/* Time passed since the trial was opened. */
WEIR_API int64_t weir_trial_elapsed_ms(const struct weir_trial *trial);

/* --- what happened ------------------------------------------------------ */

/* A run and its verdict. Strings are NUL-terminated, never NULL, and live as
 * long as the trial. */
struct weir_trial_run {
    const char *id;
    uint32_t attempt; /* number of the run, from 1 */
    enum weir_verdict verdict;
    const char *reason; /* the handler's words; "" when it gave none */
    int64_t delay_ms;   /* until the next run; -1: there is none */
    const char *dead;   /* "failed", "exhausted"; "": not dead of it */
    bool timed_out;     /* it was pending for longer than the timeout */
    int64_t elapsed_ms; /* when the verdict came */
    /* Real time for which the handler held the loop. A worker settles a run
     * that held it for longer than the timeout as timed out; a trial, whose
     * time stands still meanwhile, does not. Of a batch only its first has
     * one. */
    int64_t held_ms;
};

/* The runs in the order of their verdicts; NULL beyond the last. */
WEIR_API size_t weir_trial_run_count(const struct weir_trial *trial);
WEIR_API const struct weir_trial_run *
weir_trial_run_at(const struct weir_trial *trial, size_t i);

/* The last of them, NULL before the first. */
WEIR_API const struct weir_trial_run *
weir_trial_last(const struct weir_trial *trial);

/* A job that a run added with its verdict (weir_job_follow and
 * weir_job_follow_to). Strings as above. */
struct weir_trial_follow {
    const char *topic;
    const char *by;   /* id of the job whose run added it */
    const char *id;   /* "": weir makes one */
    const char *json; /* the body as JSON */
    int64_t delay_ms; /* from the verdict on */
    const char *retry;
    int64_t ttl_ms;
    const char *url;
    const struct weir_header *headers; /* with those of its trace */
    size_t header_count;
};

/* In the order in which they were added; NULL beyond the last. Those for the
 * trial's own topic run in it as well (after 1 ms at least), unless their id
 * was there before; those for other topics do not. */
WEIR_API size_t weir_trial_follow_count(const struct weir_trial *trial);
WEIR_API const struct weir_trial_follow *
weir_trial_follow_at(const struct weir_trial *trial, size_t i);

enum weir_trial_state {
    WEIR_TRIAL_NONE,    /* no such job was added */
    WEIR_TRIAL_WAITING, /* scheduled, or due and not run yet */
    WEIR_TRIAL_RUNNING, /* or claimed and about to: concurrency is full */
    WEIR_TRIAL_DONE,
    WEIR_TRIAL_DEAD,
    WEIR_TRIAL_EXPIRED /* its ttl passed before it could start */
};

WEIR_API enum weir_trial_state weir_trial_state(const struct weir_trial *trial,
                                                const char *id);

/* The counters of a job as `weir show` prints them: `attempt` is the number of
 * runs so far. All zero when there is no such job. */
WEIR_API struct weir_counters
weir_trial_counters(const struct weir_trial *trial, const char *id);

/* What the handler counted under this name with weir_job_count; 0: nothing. */
WEIR_API uint64_t weir_trial_counter(const struct weir_trial *trial,
                                     const char *name);

/* All of it, as weir_reactor_counters has it. */
WEIR_API void weir_trial_each_counter(const struct weir_trial *trial,
                                      weir_counter_fn fn, void *arg);

/* The lines that were logged, of every level; NULL beyond the last. */
struct weir_trial_line {
    enum weir_level level;
    const char *text;
};

WEIR_API size_t weir_trial_line_count(const struct weir_trial *trial);
WEIR_API const struct weir_trial_line *
weir_trial_line_at(const struct weir_trial *trial, size_t i);

/* Whether some line has `part` in it. */
WEIR_API bool weir_trial_logged(const struct weir_trial *trial,
                                const char *part);

#ifdef __cplusplus
}
#endif
#endif

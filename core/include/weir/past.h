/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PAST_H
#define WEIR_PAST_H

/* What became of a job so far: the runs that did not finish it, and jobs that
 * bring a past from elsewhere. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How it ended. */
enum weir_attempt_outcome {
    WEIR_ATTEMPT_RETRY,   /* the handler wants it run again */
    WEIR_ATTEMPT_TIMEOUT, /* it ran longer than its timeout */
    WEIR_ATTEMPT_FAIL,    /* the handler gave it up */
    WEIR_ATTEMPT_CRASH    /* the lease ended: its worker died, or was away */
};

/* "retry", "timeout", "fail", "crash". */
WEIR_API const char *
weir_attempt_outcome_name(enum weir_attempt_outcome outcome);

#define WEIR_MAX_ATTEMPTS 8 /* of a job that are kept: the last ones */

/* An attempt at a job that did not finish it. A crash is written by the next
 * attempt that is not done. If the server no longer knows more of a crash, its
 * time is that of the next attempt, and its worker is empty. */
struct weir_attempt {
    enum weir_attempt_outcome outcome;
    int64_t ended_ms;        /* server time; of a crash: when its lease ended */
    struct weir_slice error; /* why, 200 bytes at most; may be empty. Of a
                                crash what weir_reactor_note_crash stored */
    struct weir_slice worker; /* its name; empty: not known */
};

/* The attempts of a job that is shown or listed, oldest first: the last `cap`
 * of those that are kept, the slices borrowed from `job`. Returns how many. Of
 * lists and streams, whose entries others wrote, and of a job that is done
 * there are none. */
WEIR_API size_t weir_job_info_attempts(const struct weir_job_info *job,
                                       struct weir_attempt *ret_attempts,
                                       size_t cap);

/* A job that comes from elsewhere. Zeroed but for `job` it is a new one. */
struct weir_old_job {
    struct weir_new_job job; /* its id may be one that weir made there */
    struct weir_counters counters;
    struct weir_slice reason, error; /* as of weir_job_info; up to 64 KiB */
    /* Oldest first; the last WEIR_MAX_ATTEMPTS are kept, and of their texts as
     * much as struct weir_attempt says. */
    const struct weir_attempt *attempts;
    size_t attempt_count;
    int64_t added_ms; /* or 0 */
    int64_t died_ms;  /* not 0: dead since then, with an id and no due time */
};

/* weir_reactor_add for it, in topics of kind delay, or bounded, which take no
 * dead ones. A dead job is not sent again where a connection broke. An id that
 * weir made is not looked for at its place: ask weir_reactor_show before. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_restore(struct weir_reactor *reactor, const char *topic,
                     const struct weir_old_job *old, weir_added_fn fn,
                     void *arg, struct weir_error *err);

#ifdef __cplusplus
}
#endif

#endif

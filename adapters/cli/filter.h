/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_FILTER_H
#define WEIR_CLI_FILTER_H

/* Which jobs are meant: conditions that all have to be true of one. One of them
 * may be a jq program, which sees a job as weir show --json prints it. */

#include "adapters/cli/cli.h"
#include "adapters/cli/jq_process.h"

#include <weir/weir.h>

/* Where they stand in the flags of a command, and texts for its help. */
#define WEIR__CONDITION_FLAGS                                                \
    {"where", "EXPR",                                                        \
     "only jobs of which this jq program gives anything but\n"               \
     "null and false: '.body.order > 40'"},                                  \
        {"before", "TIME",                                                   \
         "only those due, or of dead ones died, before that:\n"              \
         "2026-01-31T08:30:00Z, 2026-01-31 (its beginning in\n"              \
         "UTC), now, 1h from now, or -1h for an hour ago"},                  \
        {"after", "TIME", "only those due, or died, then or later"},         \
    {                                                                        \
        "reason", "R",                                                       \
            "only dead ones with this reason: exhausted, failed,\ncrashed, " \
            "malformed"                                                      \
    }

/* Texts as they were given; NULL: not given. Borrowed. */
struct weir__conditions {
    const char *where, *before, *after, *reason;
};

typedef void (*weir__meant_fn)(const struct weir_job_info *job, void *arg);

/* With `meant` and otherwise zeroed: every job is meant. */
struct weir__filter {
    weir__meant_fn meant; /* runs for each job that is meant */
    void *arg;
    const char *program;        /* borrowed; NULL: none */
    struct weir__jq jq;         /* that runs it */
    struct weir_job_info *held; /* copies of jobs that wait for the program */
    size_t held_count;
    struct weir__buf bytes, lines; /* of these jobs; as JSON */
    bool has_before, has_after;
    int64_t before_ms, after_ms; /* since 1970 */
    const char *reason;          /* borrowed; NULL: any */
    uint64_t failed;             /* jobs on which the program failed */
    bool is_short_of_memory;
    bool is_broken;        /* the program crashed jq or took too long */
    struct weir_error err; /* then the sentence */
};

/* Set all but `meant` and `arg`. `now_ms` is what durations count from.
 * WEIR_EINVAL, WEIR_ENOMEM or WEIR_ESYSTEM, with a sentence. In any case
 * released with weir__filter_fini. */
int weir__filter_init(struct weir__filter *filter,
                      const struct weir__conditions *conditions, int64_t now_ms,
                      struct weir_error *err);

/* Whether there is any condition. */
bool weir__filter_has_any(const struct weir__filter *filter);

/* Call `meant` if the job is meant: now, or with others at a later call. A job
 * on which the program fails is not meant; the first such job is reported. Once
 * the filter is broken, no job is meant. BLOCKS. */
void weir__filter_take(struct weir__filter *filter, const char *topic,
                       const struct weir_job_info *job);

/* No more jobs come for now: decide about those that wait. BLOCKS. */
void weir__filter_flush(struct weir__filter *filter);

void weir__filter_fini(struct weir__filter *filter);

#endif

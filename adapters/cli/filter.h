/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_FILTER_H
#define WEIR_CLI_FILTER_H

/* Which jobs are meant: conditions that all have to be true of one. One of them
 * may be a jq program, which sees a job as weir show --json prints it. */

#include "adapters/cli/cli.h"

#include <weir/weir.h>

struct jq_state;

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

/* Zeroed: every job is meant. */
struct weir__filter {
    struct jq_state *jq; /* owned; NULL: no program */
    bool has_before, has_after;
    int64_t before_ms, after_ms; /* since 1970 */
    const char *reason;          /* borrowed; NULL: any */
    uint64_t failed;             /* jobs on which the program failed */
    bool is_short_of_memory;
};

/* `now_ms` is what durations count from. WEIR_EINVAL with a sentence. In any
 * case released with weir__filter_fini. */
int weir__filter_init(struct weir__filter *filter,
                      const struct weir__conditions *conditions, int64_t now_ms,
                      struct weir_error *err);

/* Whether there is any condition. */
bool weir__filter_has_any(const struct weir__filter *filter);

/* Whether a job is meant. One on which the program fails is not; of the first
 * one it is said why. */
bool weir__filter_takes(struct weir__filter *filter, const char *topic,
                        const struct weir_job_info *job);

/* What the program, which there is, says of a job that was printed as JSON:
 * 'y', 'n', or 'f' where it fails on it. The other conditions are not looked
 * at. */
char weir__filter_look(struct weir__filter *filter, struct weir_slice json);

void weir__filter_fini(struct weir__filter *filter);

#endif

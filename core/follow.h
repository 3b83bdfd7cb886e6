/* SPDX-License-Identifier: MIT */
#ifndef WEIR_FOLLOW_H
#define WEIR_FOLLOW_H

/* Jobs that a handler adds with its verdict: they wait in their run, and the
 * store writes them in the same step as the verdict, or not at all. */

#include "core/record.h"

struct weir__run;

enum { WEIR__FOLLOWS_MAX = 64, WEIR__FOLLOW_BYTES_MAX = 16 * 1024 * 1024 };

struct weir__follow {
    struct weir__follow *next;
    struct weir_slice topic; /* empty: that of the run */
    struct weir_slice id;    /* empty: the store makes one */
    struct weir__record record;
    int64_t delay_ms; /* used when at_ms is 0 */
    int64_t at_ms;
    uint8_t bytes[]; /* what the slices point to */
};

/* The follow-ups of a run, in order. Zeroed is empty. */
struct weir__follows {
    struct weir__follow *first, *last;
    size_t count, bytes;
};

/* A checked job, for a checked topic or, where that is empty, the run's own;
 * `headers` are the job's, as a record has them. WEIR_EFULL (more than may be),
 * WEIR_ENOMEM. */
int weir__follow_add(struct weir__follows *follows, struct weir_slice topic,
                     const struct weir_follow *job, struct weir_slice headers);

/* The same of a job that is all there, but for its topic: the run's own. */
int weir__follow_put(struct weir__follows *follows,
                     const struct weir__follow *job);

/* Free all follow-ups. */
void weir__follows_fini(struct weir__follows *follows);

#endif

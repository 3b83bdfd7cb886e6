/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_ASK_H
#define WEIR_BENCH_ASK_H

/* Requests to weir, one at a time, on a reactor that lives for the request.
 * They BLOCK; `err` holds the sentence. */

#include <weir/weir.h>

struct bench_topic {
    const char *url, *name, *kind;
};

/* Store options with a topic: a list of "key=value", ended by NULL. */
int bench_topic_set(const struct bench_topic *topic,
                    const char *const *settings, struct weir_error *err);

/* What the server counted. A topic that is not there has nothing. */
struct bench_counts {
    int64_t left; /* jobs that have yet to run or run now */
    int64_t added, done;
    int64_t dropped_overflow, dropped_age, dropped_ttl;
};
int bench_topic_counts(const struct bench_topic *topic,
                       struct bench_counts *ret_counts, struct weir_error *err);

#endif

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

/* Jobs that have yet to run or run now. A topic that is not there has none. */
int bench_topic_left(const struct bench_topic *topic, int64_t *ret_left,
                     struct weir_error *err);

#endif

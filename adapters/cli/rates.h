/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RATES_H
#define WEIR_CLI_RATES_H

/* How fast the totals of topics grow. The caller hands in the time, in
 * seconds. */

#include <weir/weir.h>

enum { WEIR__RATE_LOOKS = 16 };

/* Totals as they were at looks of the last minute. Zeroed has none. */
struct weir__growth {
    double at_s[WEIR__RATE_LOOKS]; /* the newest first */
    uint64_t total[WEIR__RATE_LOOKS];
    size_t count;
};

/* Growth a second up to now: since the latest look that is 10 or more behind,
 * else since the first one of the last minute, so that a job each 10 s is a
 * rate, too. -1: there was no look, or no time passed. A total that fell begins
 * anew. */
double weir__growth_take(struct weir__growth *growth, uint64_t total,
                         double now_s);

struct weir__rate {
    char topic[WEIR_MAX_TOPIC + 1];
    struct weir__growth growth;
};

/* A zeroed struct is empty. */
struct weir__rates {
    struct weir__rate *list; /* owned */
    size_t count;
};

/* weir__growth_take of this topic. When out of memory there is no rate. */
double weir__rates_next(struct weir__rates *rates, const char *topic,
                        uint64_t total, double now_s);

void weir__rates_fini(struct weir__rates *rates);

#endif

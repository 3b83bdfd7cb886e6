/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RATES_H
#define WEIR_CLI_RATES_H

/* How fast the totals of topics grow, from one look to the next. The caller
 * hands in the time, in seconds. */

#include <weir/weir.h>

struct weir__rate {
    char topic[WEIR_MAX_TOPIC + 1];
    uint64_t total;
    double at_s;
};

/* A zeroed struct is empty. */
struct weir__rates {
    struct weir__rate *list; /* owned */
    size_t count;
};

/* Growth a second since the last look at this topic; -1: the first one, or no
 * time passed. A total that fell counts from 0. When out of memory there is no
 * rate. */
double weir__rates_next(struct weir__rates *rates, const char *topic,
                        uint64_t total, double now_s);

void weir__rates_fini(struct weir__rates *rates);

#endif

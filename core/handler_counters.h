/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HANDLER_COUNTERS_H
#define WEIR_HANDLER_COUNTERS_H

/* Counters that a handler keeps: names and numbers, by names in byte order. A
 * lane has them, touched on the loop's thread only. A thread run has its own,
 * which its thread fills and the loop adds to the lane's when the thread run
 * comes back. */

#include <weir/base.h>

enum { WEIR__COUNTERS_MAX = 32, WEIR__COUNTER_NAME = 40 };

struct weir__handler_counter {
    char name[WEIR__COUNTER_NAME + 1];
    uint64_t value;
};

/* Zeroed is empty. */
struct weir__handler_counters {
    size_t count;
    int refused; /* of the first name; 0: none was */
    char refused_name[WEIR__COUNTER_NAME + 1]; /* maybe cut */
    struct weir__handler_counter entries[WEIR__COUNTERS_MAX];
};

/* Add `by` to the counter of this name, which begins at 0. Refused is a name
 * that is none (WEIR_EINVAL), or one too many (WEIR_EFULL). */
void weir__handler_counters_add(struct weir__handler_counters *counters,
                                const char *name, uint64_t by);

#endif

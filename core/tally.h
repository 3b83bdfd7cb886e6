/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TALLY_H
#define WEIR_TALLY_H

/* Counters that a handler keeps: names and numbers, in byte order. A lane has
 * one, touched on the loop's thread only; so has each thread run, which its
 * thread fills and the loop adds to the lane's when the thread run comes
 * back. */

#include <weir/base.h>

enum { WEIR__TALLY_MAX = 32, WEIR__TALLY_NAME = 40 };

struct weir__tally_entry {
    char name[WEIR__TALLY_NAME + 1];
    uint64_t value;
};

/* Zeroed is empty. */
struct weir__tally {
    size_t count;
    int refused;                             /* why the first one was; 0 */
    char refused_name[WEIR__TALLY_NAME + 1]; /* maybe cut */
    struct weir__tally_entry entries[WEIR__TALLY_MAX];
};

/* Add `by` to the counter of this name, which begins at 0. Refused is a name
 * that is none (WEIR_EINVAL), or one too many (WEIR_EFULL). */
void weir__tally_add(struct weir__tally *tally, const char *name, uint64_t by);

/* Add all of `from`. */
void weir__tally_merge(struct weir__tally *tally,
                       const struct weir__tally *from);

#endif

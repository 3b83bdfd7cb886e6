/* SPDX-License-Identifier: MIT */
#ifndef WEIR_NOTICES_H
#define WEIR_NOTICES_H

/* What waits behind <weir/notice.h>, and the count of adds without an answer
 * where the host asked for one. */

#include <weir/notice.h>
#include <weir/past.h>

#include "core/store.h"

struct weir__notice;
struct weir__tally;
struct weir__told;
struct weir__told_block;

struct weir__notice_list {
    struct weir__notice *first, **end;
};

struct weir__notices {
    struct weir__tally *tally;    /* the oldest that is waited for */
    struct weir__tally *counting; /* the last: jobs that are added now; NULL:
                                     they are not counted */
    struct weir__told *free_told;
    struct weir__told_block *blocks; /* that these are in */
    size_t told_count;               /* in use */
    struct weir__notice_list rooms;
    struct weir__notice_list settled; /* their verdicts are marked */
    struct weir__notice_list marked;  /* those of the next round */
};

void weir__notices_init(struct weir__notices *notices);

/* Run what can be said now; at the beginning of a turn. */
void weir__notices_run(struct weir_reactor *reactor);

/* Is there something to say in the next turn, whenever it comes? */
bool weir__notices_are_due(const struct weir_reactor *reactor);

/* Run all with WEIR_ECANCELED. The store is closed. */
void weir__notices_fini(struct weir__notices *notices);

/* Count an answer that is to come, and its end. NULL: it is not counted. */
struct weir__tally *weir__tally_join(struct weir_reactor *reactor);
void weir__tally_leave(struct weir__tally *tally, int code);

/* weir__facade_put, counted. */
int weir__tally_put(struct weir_reactor *reactor,
                    struct weir__store_topic *handle,
                    const struct weir_new_job *job,
                    const struct weir_old_job *old, weir_added_fn fn,
                    void *arg);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_KEEPER_H
#define WEIR_STORE_KEEPER_H

/* The keeper: a thread that renews the leases of a store while a handler holds
 * the loop, up to the run's timeout, and then settles that run as timed out, or
 * lets its lease end where the kind has no such verdict. It has connections of
 * its own (store/probes.h), made when they are first needed, blocks all signals
 * and calls no code of plugins, and none of the host but `blocked_log`.
 *
 * It reads the store's leases and the run only while the loop thread is inside
 * a handler, and only behind the gate:
 *
 *   OUT --(enter)--> IN --(leave)--> OUT         the loop thread
 *                     ^\--> BUSY --/             the keeper, while it reads
 *
 * Leaving waits while the keeper reads (microseconds), never while it waits
 * for the server. What a handler changes by calling into the store from inside
 * is done between weir__keeper_shut and weir__keeper_reopen. */

#include "adapters/redis/store/lease.h"

struct weir__keeper;
struct weir__overdue;

/* A topic is listened to: the store's leases have to be kept from now on. Where
 * no thread can be made a warning says so. */
void weir__keeper_begin(const struct weir__store_topic *topic);

/* Waits for the thread, which may be asking the server: 1 s at most, and 300 ms
 * for each sentinel. NULL is fine. */
void weir__keeper_close(struct weir__keeper *keeper);

/* Look often enough for a lease or a timeout of so long. NULL is fine. */
void weir__keeper_note(struct weir__keeper *keeper, int64_t ms);

void weir__keeper_enter(struct weir__keeper *keeper,
                        struct weir__store_topic *topic, struct weir__run *run,
                        int64_t deadline_ns);

/* Does the keeper know that the run is settled as timed out? */
bool weir__keeper_has_taken(const struct weir__keeper *keeper);

/* True: the run was settled as timed out. */
bool weir__keeper_leave(struct weir__keeper *keeper);

/* True if a handler is on the stack: reopen then. */
bool weir__keeper_shut(struct weir__keeper *keeper);
void weir__keeper_reopen(struct weir__keeper *keeper, bool was_in);

/* --- delay/overdue.c: the verdict on an overdue run of a delay topic ------ */

void weir__overdue_free(struct weir__overdue *overdue);

/* Write the calls that settle `run` as timed out, all of its topic; the last
 * one is the settle script's. Behind the gate. False: not possible. */
bool weir__overdue_write(struct weir__overdue *overdue,
                         struct weir__store_topic *topic,
                         const struct weir__run *run,
                         struct weir__renewals *calls);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_KEEPER_H
#define WEIR_STORE_KEEPER_H

/* The keeper: a thread that renews the leases of a store while something holds
 * the loop, whatever it is. A run is kept up to its timeout, and then settled
 * as timed out; if the kind has no such verdict its lease ends. For all else
 * that holds the loop leases are kept for 10 minutes, or the topic's timeout if
 * that is longer. The keeper has connections of its own (store/probes.h), made
 * when they are first needed. It blocks all signals and calls no code of
 * plugins, and none of the host but `blocked_log`, behind no gate and no lock.
 *
 * It reads what renewals consist of - topics, leases, servers - and a run that
 * holds the loop, only behind the gate:
 *
 *   OPEN --(shut)--> SHUT --(reopen)--> OPEN      the loop thread
 *    ^\--> BUSY --/                               the keeper, while it reads
 *
 * The gate is open but for the moments in which the loop thread changes any of
 * that: it shuts the gate before and reopens it after. Shutting waits while the
 * keeper reads (microseconds), never while it waits for the server. */

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

/* A call begins or returns (core/call.h). True: its run was settled as timed
 * out. Without a call nothing is lost but the name in the log, the verdict on
 * an overdue run, and a sixth of a lease until the keeper begins. */
void weir__keeper_enter(struct weir__keeper *keeper, struct weir__call *call);
bool weir__keeper_leave(struct weir__keeper *keeper, struct weir__call *call);

/* Does the keeper know that the run is settled as timed out? */
bool weir__keeper_has_taken(const struct weir__keeper *keeper);

/* A turn of the loop ends. NULL is fine. */
void weir__keeper_turn(struct weir__keeper *keeper);

/* Around each change of what the keeper reads; may be nested. Nothing in
 * between may block. NULL is fine. */
void weir__keeper_shut(struct weir__keeper *keeper);
void weir__keeper_reopen(struct weir__keeper *keeper);

/* Store with all leases how the process ends. By the handler of a fatal signal:
 * any thread may call, and waits for about 1 s at most. `how` is borrowed until
 * the process has ended. NULL is fine. */
void weir__keeper_note_crash(struct weir__keeper *keeper, const char *how);

/* Is a call on the stack? NULL is fine. */
bool weir__keeper_has_call(const struct weir__keeper *keeper);

/* --- delay/overdue.c: the verdict on an overdue run of a delay topic ------ */

void weir__overdue_free(struct weir__overdue *overdue);

/* Write the calls that settle `run` as timed out, all of its topic; the last
 * one is the settle script's. Behind the gate. False: not possible. */
bool weir__overdue_write(struct weir__overdue *overdue,
                         struct weir__store_topic *topic,
                         const struct weir__run *run,
                         struct weir__renewals *calls);

#endif

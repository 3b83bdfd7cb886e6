/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_KEEPER_H
#define WEIR_STORE_KEEPER_H

/* The keeper: a thread that renews the leases of a store while a handler holds
 * the loop, up to the run's timeout, and then settles that run as timed out, or
 * lets its lease end where the kind has no such verdict. It has a connection of
 * its own, made when it is first needed, blocks all signals and never calls
 * code of plugins or of the host.
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

#include "adapters/redis/store/base.h"

struct weir__keeper;
struct weir__overdue;

/* How the leases of a kind are kept; weir__base_kind has one. */
struct weir__kept {
    const struct weir__script *renew; /* answers with a list of what is gone */
    /* Append the calls that renew what the topic holds, a NUL behind each and
     * none in them. Behind the gate. */
    void (*write_renewals)(struct weir__buf *buf,
                           const struct weir__base_topic *topic);
    /* NULL: an overdue run is not settled, but its leases are renewed no
     * longer. */
    struct weir__overdue *(*overdue_new)(struct weir__base *base);
};

/* WEIR_ENOMEM, WEIR_ESYSTEM (no thread). */
int weir__keeper_open(struct weir__base *base, const struct weir__kept *kept,
                      struct weir__keeper **ret_keeper);

/* Waits for the thread, which may be asking the server: 1 s at most. NULL is
 * fine. */
void weir__keeper_close(struct weir__keeper *keeper);

/* Look often enough for a lease or a timeout of so long. */
void weir__keeper_note(struct weir__keeper *keeper, int64_t ms);

void weir__keeper_enter(struct weir__keeper *keeper,
                        struct weir__store_topic *topic, struct weir__run *run,
                        int64_t deadline_ns);

/* Does the keeper know that the run is settled as timed out? */
bool weir__keeper_has_taken(const struct weir__keeper *keeper);

/* True: the run was settled as timed out. */
bool weir__keeper_leave(struct weir__keeper *keeper);

/* When it last renewed all leases; 0: never. */
int64_t weir__keeper_kept_ns(const struct weir__keeper *keeper);

/* True if a handler is on the stack: reopen then. */
bool weir__keeper_shut(struct weir__keeper *keeper);
void weir__keeper_reopen(struct weir__keeper *keeper, bool was_in);

/* --- keeper/ops.c: the ops of every kind that has a keeper ---------------- */

/* A topic is listened to: its leases have to be kept from now on. */
void weir__keep_begin(struct weir__base *base);

void weir__keep_enter(struct weir__store_topic *topic, struct weir__run *run,
                      int64_t deadline_ns);
bool weir__keep_leave(struct weir__store_topic *topic, struct weir__run *run);
int64_t weir__keep_kept_ns(const struct weir__store_topic *topic);

/* --- keeper/overdue.c: the verdict on an overdue run of a delay topic ----- */

struct weir__overdue *weir__overdue_new(struct weir__base *base);
void weir__overdue_free(struct weir__overdue *overdue);

/* Write the commands that settle `run` as timed out, one behind the other; the
 * last one is the settle script's. Behind the gate. False: not possible. */
bool weir__overdue_write(struct weir__overdue *overdue,
                         struct weir__store_topic *topic,
                         const struct weir__run *run);

/* How many commands, and each of them. */
size_t weir__overdue_count(const struct weir__overdue *overdue);
struct weir_slice weir__overdue_command(const struct weir__overdue *overdue,
                                        size_t index);

#endif

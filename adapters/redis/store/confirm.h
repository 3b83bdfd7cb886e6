/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_CONFIRM_H
#define WEIR_STORE_CONFIRM_H

/* Adds that the server acknowledged, until replicas or disks have them, too.
 *
 * WAIT holds up what comes behind it. So it has a connection of its own, one
 * at a time: what was acknowledged meanwhile goes with the next one. It counts
 * who has the last write of its own connection, and of one that wrote nothing
 * that is everybody. So each round begins with a write that changes nothing;
 * since the adds were acknowledged before, whoever has that write has them:
 *
 *   HINCRBY PREFIX:{topic}:meta added 0
 *   WAIT N 2000, or WAITAOF 1 N 2000
 *
 * That proves something of adds only which this very server acknowledged. Where
 * another one takes over, or it starts anew, they are sent again, and confirmed
 * there. Not confirmed within 10 s: WEIR_EWEAK. */

#include "adapters/redis/store/store.h"

/* Embedded in the call of an add. Where its durability is 0 there is nothing to
 * be confirmed. Zeroed but for what the call fills in, the first six. */
struct weir__confirm {
    struct weir__store_topic *topic;
    void *call;
    uint32_t durability; /* WEIR__DURABILITY_...; 0: there is no need */
    size_t bytes;        /* that the call keeps in memory, about */
    /* Confirmed (WEIR_OK) or not (WEIR_EWEAK), never inside an op but close. */
    void (*done)(struct weir__confirm *confirm, int code);
    /* Another server answers: send the call again, by the connection of today
     * or not at all. Its answer comes to weir__confirm_answered, too. */
    void (*send_again)(struct weir__confirm *confirm);

    struct weir__confirm *next;
    int64_t until_ns; /* 0: never handed in */
    int64_t reached;  /* replicas, as was last heard; -1: nothing was */
    char identity[WEIR__IDENTITY_LEN + 1]; /* who acknowledged it last */
};

/* Can the server of this place confirm it? WEIR_OK; WEIR_EINVAL: no, which was
 * logged with the reason; other codes: it could not be asked.
 * WEIR__CONFIRM_ASKED: it is being asked, and its topics are flushed when it
 * has answered. */
enum { WEIR__CONFIRM_ASKED = 1 };
int weir__confirm_check(const struct weir__place *place, uint32_t durability);

/* The call was answered with `code`. Returns what its jobs are to be answered
 * with; or WEIR__CONFIRM_WAITS: `done` tells. Only inside the answer. */
enum { WEIR__CONFIRM_WAITS = 2 };
int weir__confirm_answered(struct weir__confirm *confirm, int code);

/* Ask for what is to be confirmed. At the end of a turn. */
void weir__confirms_flush(struct weir__server *server);

/* Another server may answer for a topic than before. */
void weir__confirms_moved(struct weir__redis *store);

/* Adds wait for the server to confirm them. */
bool weir__confirms_wait(const struct weir__server *server);

/* Nothing will be confirmed any more: done with WEIR_EWEAK, now. */
void weir__confirms_close(struct weir__server *server);

#endif

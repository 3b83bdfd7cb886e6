/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_BACKLOG_H
#define WEIR_DELAY_BACKLOG_H

/* Verdicts that the server does not take for a while: it is full, cannot save,
 * lacks replicas, took a right away, or is behind with what it was sent. Their
 * calls wait here and are repeated, one of them after 50 ms to 500 ms (where a
 * right is missing, 5 s to 10 s); as soon as it is taken the others follow.
 * Their leases are renewed meanwhile.
 *
 * Who claims before these and their renewals went through would take jobs whose
 * lease only looks as if it had ended. So a worker that was refused asks at
 * first whether writes are taken, and claims half a lease after the first that
 * was, a second at least. */

#include "adapters/redis/delay/private.h"

/* A pack of the call that is for another topic. */
struct weir__settle_out {
    char seq[WEIR__SEQ_LEN];
    uint32_t call_slot;       /* of the add there */
    bool is_open;             /* the call did not say yet what became of it */
    size_t pack_at, pack_len; /* in the copy of what stages it */
};

struct weir__settle_call;

/* One call of a settle script. */
struct weir__settle {
    struct weir__request request; /* first */
    const struct weir__script *script;
    struct weir__delay_topic *topic;
    struct weir__settle *next; /* in the backlog */
    size_t verdicts;
    size_t backs;              /* runs that go back; answered with the last */
    size_t told;               /* of these what was answered for good */
    struct weir__asker *asker; /* about its one verdict; NULL: nobody */
    bool is_second;            /* leaves out what is not staged */
    bool is_unsure;            /* it may have recorded what is open of `outs` */
    bool is_in_backlog;        /* or was */
    char *handle;    /* of its only run, for finish.lua, where that writes much;
                       NULL: there are several, or it writes little */
    size_t bytes;    /* that this one writes, about */
    size_t staging;  /* commands whose answers come here, ahead of its own */
    bool is_refused; /* one of these is larger than the server takes */
    bool is_taken;   /* one of its packs was there already */
    size_t first_key; /* the word of the call that is the key of the first */
    bool is_dropped;  /* its packs are gone, as far as this server can tell */
    char dropped[WEIR__SEQ_LEN]; /* the first of them */
    bool is_over; /* it is freed with the last of these answers */
    bool offers;  /* the worker: the first answer is that to a claim */
    size_t cost;  /* of holding it, in bytes */
    struct weir__delay_lease **leases; /* that it names; behind these */
    size_t lease_count;
    struct weir__settle_out *outs; /* of the last packs; behind the copies */
    size_t out_count;
    /* What may have to be sent once more: the commands that stage its packs,
     * then the call. */
    size_t packs;
    struct weir__buf copies[];
};

/* --- delay/verdicts.c ----------------------------------------------------- */

/* Send the call, with its packs. */
void weir__settle_send(struct weir__settle *settle);

/* From now on it leaves out what is not staged. */
void weir__settle_leave_out(struct weir__settle *settle);

void weir__settle_free(struct weir__settle *settle);

/* --- delay/taken.c -------------------------------------------------------- */

/* Its packs get other names, as another producer has one of these. */
void weir__settle_rename(struct weir__settle *settle);

/* --- delay/refused.c ------------------------------------------------------ */

/* If its only run writes so much that the server may refuse the call, keep what
 * tells of that run. */
void weir__refused_prepare(struct weir__settle *settle,
                           const struct weir__settle_call *call);

/* The server refused it: make it a call that lets the run's job die. False: it
 * is not known of one job. */
bool weir__refused_rewrite(struct weir__settle *settle);

/* Log that this job is dead now. */
void weir__refused_log(const struct weir__settle *settle);

/* --- delay/backlog.c ------------------------------------------------------ */

void weir__backlog_init(struct weir__delay_topic *topic);
void weir__backlog_fini(struct weir__delay_topic *topic);

/* Log an error, and draw conclusions for the next claims. */
void weir__backlog_note_error(struct weir__delay_topic *topic, const char *what,
                              int code, const struct redisReply *reply);

/* Take a call whose answer is `reply`: an error of the server, or that what it
 * writes back cannot be staged. False: this is for good, the caller keeps it.
 * Only in the callback of that answer. */
bool weir__backlog_push(struct weir__settle *settle,
                        const struct redisReply *reply);

/* So much waits for the server that a part of the next call might not be taken
 * any more. */
bool weir__backlog_is_crowded(const struct weir__delay_topic *topic);

/* Take a call in any case. */
void weir__backlog_add(struct weir__settle *settle);

/* A call of the backlog was answered for good: the others may go, too. */
void weir__backlog_release(struct weir__delay_topic *topic);

enum weir__backlog_claim {
    WEIR__CLAIM_GO,
    WEIR__CLAIM_PROBE,   /* ask first whether writes are taken */
    WEIR__CLAIM_CROWDED, /* the outbox is full: ask how it is */
    WEIR__CLAIM_PUT_OFF  /* not yet */
};
enum weir__backlog_claim
weir__backlog_claim(const struct weir__delay_topic *topic);

/* The server takes writes again. */
void weir__backlog_probed(struct weir__delay_topic *topic);

#endif

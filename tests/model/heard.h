/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_HEARD_H
#define WEIR_TEST_HEARD_H

/* What the files of the listener share: a call of a script, and where jobs
 * are. */

#include <hiredis/hiredis.h>
#include <msgpack.h>
#include <stdio.h>

#include "tests/model/topic.h"
#include "tests/sim/server/server.h"
#include "tests/sim/server/store.h"

enum { SLOTS = 256, SEQ_LEN = 12, NODE_LEN = 16, MADE_ID_LEN = 15 };

/* A pack, as the listener met it first. */
struct pack {
    char seq[SEQ_LEN + 1];
    unsigned count;
    unsigned live;           /* for a walk */
    struct job *jobs[SLOTS]; /* NULL: refused, or not known */
};

/* A new pack of a call, before that. */
struct draft {
    enum { MISSING, STAGED, IN_USE } place;
    char seq[SEQ_LEN + 1];
    unsigned count;
    char *ids[SLOTS];
};

struct heard_topic {
    struct topic *model;
    char prefix[64]; /* of its keys */
    void *packs;     /* a tree */
    struct heard_topic *next;
};

struct call_heard {
    struct server *server;
    struct heard_topic *topic;
    const struct slice *keys, *args;
    size_t key_count, arg_count;
    int64_t now_ms;
    const redisReply *reply; /* NULL before the call */
    char named[SEQ_LEN + 1]; /* pack in a wake-up; "": none was */
    char handed[256];        /* what hands a job over; "": nothing did */
    char handed_to[64];
    struct draft *drafts;
    size_t draft_count;
};

/* --- calls --------------------------------------------------------------- */

long long heard_int(struct slice text);
bool heard_is(struct slice text, const char *word);
/* A number of up to eight bytes, little endian. */
uint64_t heard_little(const char *bytes, size_t count);
/* The caller's to be freed. */
char *heard_text(struct slice text);
/* An argument that is a msgpack array, or ''. To be destroyed. */
void heard_list(struct slice text, msgpack_unpacked *ret_list);
/* An element of a reply that is an array; INT64_MIN: it is none. */
long long heard_reply(const struct call_heard *call, size_t i);
/* Keeps the pack of this key, or these bytes, as it is before the call. */
void heard_draft(struct call_heard *call, struct slice key,
                 const struct slice *bytes);
/* Notes a fact of the time before the call, as a draft without jobs. */
void heard_note(struct call_heard *call, bool is_there);
/* Due times of the jobs of a pack (scripts/lib/due.lua), and their lane, which
 * is the caller's to be freed. */
void heard_when(const struct call_heard *call, struct slice when,
                unsigned count, int64_t *ret_due, char **ret_lane);

/* A text that grows. */
struct line {
    FILE *out;
    char *ptr;
    size_t len;
};
struct line line_new(void);
void line_add(struct line *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *line_text(struct line *answer);
void line_free(struct line *answer);

/* --- where jobs are ------------------------------------------------------ */

/* The object behind "prefix:name"; NULL: there is none. */
struct object *heard_object(const struct call_heard *call, const char *name);
/* A field of `meta`; NULL: it is not there. */
const struct entry *heard_meta(const struct call_heard *call, const char *name);
/* Limits may hold jobs back. */
bool heard_has_limits(const struct call_heard *call);
/* Is this what gave out jobs last (scripts/lib/server.lua)? */
bool heard_is_server(const struct call_heard *call, struct slice own);
/* False: the member is not there. */
bool heard_score(const struct call_heard *call, const char *name,
                 const char *member, double *ret_score);
/* NULL: it is not known and not on the server. */
struct pack *heard_pack(const struct call_heard *call, const char *seq);
struct pack *heard_pack_new(const struct call_heard *call, const char *seq,
                            unsigned count);
/* The job of a slot; NULL: it is not known. */
struct job *heard_job(const struct call_heard *call, const char *seq,
                      unsigned slot);
/* False: the name is none of a node. */
bool heard_node(const char *name, size_t len, unsigned *ret_lo,
                unsigned *ret_hi);

/* --- scripts, after they ran --------------------------------------------- */

void heard_add(struct call_heard *call);
void heard_add_one(struct call_heard *call);
void heard_add_keyed(struct call_heard *call);
void heard_claim(struct call_heard *call);
void heard_settle(struct call_heard *call);
void heard_settle_one(struct call_heard *call);
void heard_renew(struct call_heard *call);
void heard_start(struct call_heard *call);
void heard_slot(struct call_heard *call);
void heard_requeue(struct call_heard *call);
void heard_forget(struct call_heard *call);
void heard_purge(struct call_heard *call);
void heard_undeliverable(struct call_heard *call);
void heard_stats(struct call_heard *call);
void heard_pause(struct call_heard *call);

/* --- the walk ------------------------------------------------------------ */

/* Is each job of the topic where it belongs, and nothing else? */
void heard_walk(const struct call_heard *call);

/* --- scripts, before they run -------------------------------------------- */

/* Notes what the call finds. */
void drafts_of_add(struct call_heard *call);
void drafts_of_add_one(struct call_heard *call);
void drafts_of_add_keyed(struct call_heard *call);
void drafts_of_settle(struct call_heard *call);
void drafts_of_requeue(struct call_heard *call);
void drafts_of_purge(struct call_heard *call);
void drafts_of_undeliverable(struct call_heard *call);

#endif

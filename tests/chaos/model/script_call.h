/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SCRIPT_CALL_H
#define WEIR_TEST_SCRIPT_CALL_H

/* Calls of the scripts, on a server in this process. They may carry a planted
 * fault.
 *
 * A call is written piece by piece; calls and commands queue up until
 * call_answer reads the replies. Replies become text: integers in decimal,
 * strings as they are ('' when empty), arrays as "(one two)".
 *
 * What goes wrong with the server ends the test with a sentence. */

#include <stdint.h>

#include "core/buf.h"
#include "tests/chaos/model/text.h"
#include "tests/sim/server/local.h"
#include "tests/sim/server/server.h"

struct listener;
struct redisReply;

enum script {
    SCRIPT_ADD,
    SCRIPT_ADD_ONE,
    SCRIPT_ADD_KEYED,
    SCRIPT_CLAIM,
    SCRIPT_SETTLE,
    SCRIPT_SETTLE_ONE,
    SCRIPT_RENEW,
    SCRIPT_SLOT,
    SCRIPT_STATS,
    SCRIPT_LATENESS,
    SCRIPT_REQUEUE,
    SCRIPT_FORGET,
    SCRIPT_PURGE,
    SCRIPT_PAUSE,
    SCRIPT_SET,
    SCRIPT_START,
    SCRIPT_RECALL,
    SCRIPT_UNDELIVERABLE,
    SCRIPT_CRON,
    SCRIPT_RARE, /* these and others behind are loaded when they are called */
    SCRIPT_PULL = SCRIPT_RARE,
    SCRIPT_PUSH,
    SCRIPT_LIST_CLAIM,
    SCRIPT_LIST_SETTLE,
    SCRIPT_LIST_STATS,
    SCRIPT_BOUNDED_ADD,
    SCRIPT_BOUNDED_CLAIM,
    SCRIPT_BOUNDED_SETTLE,
    SCRIPT_BOUNDED_STATS,
    SCRIPTS
};

/* In the text of `script`, `find` (it is there exactly once) is replaced. */
struct fault {
    const char *name;
    enum script script;
    const char *find, *replace;
};

struct caller {
    struct server *server;
    struct local *link;
    struct weir__buf bytes; /* of the command being written */
    size_t pending;         /* replies to come */
    char sha[SCRIPTS][41];  /* "": not loaded yet */
    const struct fault *fault;
    struct listener *listener; /* that judges, too */
};

/* An empty server with the scripts. NULL fault: none; else it is borrowed. */
void caller_open(struct caller *caller, const struct fault *fault);
void caller_close(struct caller *caller);

/* --- writing ------------------------------------------------------------ */

/* Replies that are still to come are lost where the script has to be loaded. */
void call_script(struct caller *caller, enum script script, size_t keys,
                 size_t args);
void call_command(struct caller *caller, const char *name, size_t args);

/* The topic's keys, "wait run lease". */
void call_keys(struct caller *caller, const char *names);
void call_pack_key(struct caller *caller, uint32_t pack);

/* Time does not end what is staged: that is an operation of its own. */
#define STAGED_MS INT64_C(1000000000000)

/* The key of the pack with this name; then its bytes, staged. */
void call_seq_key(struct caller *caller, const char *seq);
void call_stage(struct caller *caller, const char *seq,
                const struct weir__buf *bytes);

/* Claim with a lease that does not end by itself. */
void call_claim(struct caller *caller, unsigned room, unsigned most_nodes,
                const char *worker);

/* Of a pack in its outbox. */
void call_out_key(struct caller *caller, uint32_t pack);

/* Of the topic with this name. */
void call_topic_keys(struct caller *caller, char topic, const char *names);
void call_topic_pack_key(struct caller *caller, char topic, uint32_t pack);

void call_str(struct caller *caller, const char *str);
void call_int(struct caller *caller, int64_t value);
void call_bytes(struct caller *caller, const struct weir__buf *buf);

/* The command is complete. */
void call_queue(struct caller *caller);

/* --- reading ------------------------------------------------------------ */

/* Read all replies; the last one is the caller's, to be freed. */
struct redisReply *call_reply(struct caller *caller);

/* The same, as text. */
void call_answer(struct caller *caller, struct text *ret_text);

void reply_text(const struct redisReply *reply, struct text *ret_text);

#endif

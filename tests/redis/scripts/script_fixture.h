/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SCRIPT_FIXTURE_H
#define WEIR_TEST_SCRIPT_FIXTURE_H

/* One script at a time against a server that each test has, for a topic "t".
 * Packs are named by one letter, repeated twelve times; their jobs have records
 * of one byte. A node is written as letter, lo and hi: "a0003". */

#include <hiredis/hiredis.h>

#include <weir/base.h>

#include "adapters/redis/script.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

extern struct redis_proc *script_proc;
/* Starts it; a program may have one of its own in place of this. */
struct redis_proc *script_start(void);
extern redisReply *script_reply; /* of the last call */
extern char script_token[24];    /* of the last claim */
extern char script_header[8];    /* header length of the last staged pack */
extern char script_total[8];     /* and its jobs */

/* A reply of the server as one line. */
const char *script_text(const char *command);

/* Begin a call; `names` are keys separated by blanks. Then more keys, then
 * arguments, then the call, which returns its reply as one line. */
void script_begin(const struct weir__script *script, const char *names);
void script_key(const char *name);
void script_pack_key(char letter);
void script_arg(const char *text);
void script_arg_bytes(const void *bytes, size_t len);
const char *script_call(void);

/* All of it; `words` end with NULL. */
const char *script_run(const struct weir__script *script, const char *names,
                       const char *const *words);

/* Stage a pack: ids separated by blanks, or a number of jobs without ids. */
void script_stage(char letter, const char *ids);
/* The same with these bytes as its id block. */
void script_stage_block(char letter, size_t count, struct weir_slice block);
extern const char *script_server; /* as a lone job's producer knows it; "" */
extern long long script_number;

/* Digits behind the point of the number; "": no point either. */
extern const char *script_nonce; /* of the next add; then it grows */
const char *script_add_staged(char letter, const char *when, size_t when_len);
const char *script_add(char letter, const char *ids, const char *when);
/* A job that comes alone; id "": weir made it. */
const char *script_add_one(char letter, const char *id, const char *when);
/* As script_add_staged, by an outbox. */
const char *script_send_on(char letter);

/* Begins a claim of worker w1: all of its keys and arguments. */
void script_begin_claim(const char *room, const char *lease_ms);

/* Nodes and ended leases that came: "a0003+0 b0000+1". */
const char *script_claim(const char *room, const char *lease_ms);

/* A claim whose lease is over when this returns. */
const char *script_crash(const char *room);

/* Verdicts on nodes of one pack. `slots`: those that are settled; none: all. */
void script_settle_begin(void);
void script_settle_node(const char *node, const void *slots, size_t slot_count);
/* The same, of a mixed pack. */
void script_settle_mixed(const char *node, const void *slots,
                         size_t slot_count);
void script_settle_back(const char *node, const void *slots, size_t slot_count,
                        int64_t due_ms);
void script_settle_close(void);
/* What is not staged is left out. */
void script_settle_leave_out(void);
/* Who waits for others to end is woken. */
void script_settle_wakes(void);
/* Some jobs are of lanes. */
void script_settle_lanes(void);
/* A source whose job did not start; of the node that goes back its slot and
 * SCRIPT_BACK. */
enum { SCRIPT_BACK = 1 << 20 };
void script_settle_unstarted(uint64_t source);
/* One job of the first node goes into the staged pack. */
void script_settle_move(size_t slot, size_t header_len);
/* The same of one whose record comes with the call. */
void script_settle_record(size_t slot, const char *id, const char *when,
                          const char *record);
/* The staged pack is for another topic, and comes with that job. */
void script_settle_send(size_t slot, size_t header_len);
void script_settle_end(size_t slot, const char *id, const char *record);
/* `moved`: the staged pack's letter or 0. */
const char *script_settle(char letter, char moved, const char *most_dead);
/* Jobs that are new come with verdicts on these slots of the first node, in the
 * pack that is `key`-th of the new ones, from 0. */
void script_settle_follow(size_t key, const char *slots, size_t count,
                          size_t header_len);
/* The same as script_settle with several packs, a letter each. */
const char *script_settle_packs(char letter, const char *moved,
                                const char *most_dead);
const char *script_settle_all(const char *node);
/* A run of one slot is done alone, and its claim ends if nothing is left. */
const char *script_settle_one(const char *node, const char *id,
                              const char *slots);

/* The state that the slot script answers; `number`: the slot, or "". */
const char *script_slot(const char *op, const char *id, const char *place,
                        const char *number);

/* A number that the stats script answers by this name. */
long long script_stat(const char *name);

/* Make a key a string. */
void script_poison(const char *key);

/* For each of these keys: `prepare` makes the topic, the key becomes a string,
 * and `call` ends with an error that leaves everything as it is. */
void script_expect_untouched(const char *key_names, void (*prepare)(void),
                             const char *(*call)(void));

#endif

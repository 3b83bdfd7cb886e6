/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_ONCE_RUN_H
#define WEIR_TEST_ONCE_RUN_H

/* What the files of a run share: the server's side of each operation, which
 * changes the model as well. */

#include "adapters/redis/node.h"
#include "tests/chaos/once/once.h"

/* A call as it was sent, and what was answered behind the number of added. */
struct sent {
    struct text bytes, told;
};

struct once_run {
    const struct once_options *options;
    struct once once;
    struct caller caller;
    uint64_t random;
    struct weir__seq_maker names;
    struct once_pack **packs; /* their numbers are in their names */
    size_t pack_count, pack_cap;
    struct sent last[PRODUCERS], before[PRODUCERS]; /* of each producer */
    long long numbers;
    long adds;
    struct once_job *jobs; /* all that were added, ever */
    struct text wanted, got;
    const char *operation;
    long long repeats;
};

/* 0 to count - 1. */
unsigned once_pick(struct once_run *run, unsigned count);
bool once_chance(struct once_run *run, unsigned percent);
#define ONCE_PICK(run, list) \
    ((list)[once_pick(run, (unsigned)(sizeof(list) / sizeof((list)[0])))])

/* Prints where the run is, and ends it. */
_Noreturn void once_differs(struct once_run *run, const char *what,
                            const char *wanted, const char *got);

/* What was queued must answer run->wanted. */
void once_check(struct once_run *run);

/* Each operation has a millisecond of its own: so have names. */
void once_pass(struct once_run *run, int64_t ms);

struct once_pack *once_pack_new(struct once_run *run);
struct once_pack *once_pack_named(struct once_run *run, const char *seq);
void once_put(struct once_pack *pack, struct once_job *job);

/* Its bytes; a job that moves says when it was added. */
void once_write_pack(struct once_pack *pack, bool moves,
                     struct weir__buf *ret_buf);
void once_stage(struct once_run *run, struct once_pack *pack, bool moves);

/* Some job in this state; NULL: none was found soon. */
struct once_job *once_job_in(struct once_run *run, enum once_state state);

void once_op_add(struct once_run *run);
void once_op_repeat(struct once_run *run);
void once_op_add_plain(struct once_run *run);
void once_op_claim(struct once_run *run);
void once_op_finish(struct once_run *run);
void once_op_requeue(struct once_run *run);
void once_op_slot(struct once_run *run);
void once_op_max_pending(struct once_run *run);

#endif

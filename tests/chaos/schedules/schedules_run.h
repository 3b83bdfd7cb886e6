/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SCHEDULES_RUN_H
#define WEIR_TEST_SCHEDULES_RUN_H

/* What the files of a run share. */

#include "tests/chaos/schedules/schedules.h"

/* A run as its worker knows it, which perhaps is not the worker's any more. */
struct sched_held {
    char id[ID_CAP], node[WEIR__NODE_LEN + 1];
    unsigned slot;
    uint64_t token;
    int64_t due_ms, claimed_ms;
    size_t header_len;
    bool is_mixed;
    bool is_tick;
    struct weir__schedule plan; /* of a tick, as its record says */
};

enum { MOST_HELD = 4096, STAGED = 2, BODY = 0x01 };

/* A call that settles as it was sent: what is staged first, the call, and the
 * answer to a repeat. */
struct sched_sent {
    struct text staged[STAGED], call, refused;
};

struct sched_run {
    const struct sched_options *options;
    struct sched_model model;
    struct caller caller;
    uint64_t random;
    struct weir__seq_maker names;
    struct sched_held held[MOST_HELD];
    size_t held_count;
    struct sched_sent last, before; /* empty: none */
    struct text wanted, got;
    const char *operation;
    long step;
    long long adds, refused, repeats, duplicates;
};

/* 0 to count - 1. */
unsigned sched_pick(struct sched_run *run, unsigned count);
bool sched_chance(struct sched_run *run, unsigned percent);

/* Prints where the run is, and ends it. */
_Noreturn void sched_differs(const struct sched_run *run, const char *what,
                             const char *wanted, const char *got);

/* What was queued must answer run->wanted. */
void sched_check(struct sched_run *run, const char *what);

void sched_pass(struct sched_run *run, int64_t ms);

/* The record of a tick with this schedule; returns where that is in it. */
size_t sched_write_record(const struct weir__schedule *schedule,
                          struct weir__buf *ret_buf);

/* Where the index says that the id is; "": nowhere. */
void sched_place(struct sched_run *run, const char *id,
                 char ret_place[WEIR__SEQ_LEN + 1]);

/* All that is on the server is as the model says. */
void sched_check_state(struct sched_run *run);

/* Some job in this state; NULL: there is none. */
struct sched_job *sched_job_in(struct sched_run *run, enum sched_state state);

/* Whether the run is its worker's still. */
bool sched_is_held(struct sched_run *run, const struct sched_held *held);

/* schedules_cron.c */
void sched_op_change(struct sched_run *run);
void sched_op_stale(struct sched_run *run);
void sched_op_list(struct sched_run *run);
void sched_change_one(struct sched_run *run, size_t name, enum sched_verb verb,
                      size_t what);

/* schedules_work.c */
void sched_op_add(struct sched_run *run);
void sched_op_full(struct sched_run *run);
void sched_op_claim(struct sched_run *run);
void sched_op_expire(struct sched_run *run);
void sched_op_slot(struct sched_run *run);
void sched_op_lose(struct sched_run *run);
void sched_delete_job(struct sched_run *run, struct sched_job *job);

/* schedules_settle.c */
void sched_op_settle(struct sched_run *run);
void sched_op_again(struct sched_run *run);
void sched_op_back(struct sched_run *run);

#endif

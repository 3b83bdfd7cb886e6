/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_RUN_H
#define WEIR_TEST_RUN_H

/* One run of the walker: random operations against the scripts and against the
 * model, every answer compared, and from time to time all keys of the server.
 * The first difference is printed and ends the test. */

#include "tests/chaos/model/model.h"
#include "tests/chaos/model/script_call.h"

struct run_options {
    uint64_t seed;
    long operations;
    long walk_every;
    bool clock_goes_back;      /* now and then; `ready` is then not compared */
    const struct fault *fault; /* NULL: none */
};

/* A node as a worker remembers it; perhaps it is not the worker's any more. */
struct held {
    struct node node;
    uint64_t token;
};

struct run {
    const struct run_options *options;
    uint64_t random;
    struct caller caller;
    struct local *listener; /* subscribed to wake-ups */
    struct model model;
    struct held *held; /* oldest first */
    size_t held_count, held_cap;
    uint32_t bodies;                      /* records made so far */
    struct add_call adds[ADD_CALL_SLOTS]; /* the last of each; count 0: none */
    struct add_call late_add; /* one before the last of its call slot */
    long long adds_made, offers;
    struct settle_call *settle, *last_settle; /* entries 0: none */
    struct settle_call *follow; /* its packs may be in the outbox */
    struct text wanted, got;
    const char *operation;
    long step;
    size_t most_live; /* beyond, nothing is added; changes now and then */
    long long walks, jobs_seen, nodes_seen, refused_seen, woken_seen;
    long long handed_seen;
};

/* Runs all operations and then empties the topic. */
void run_all(const struct run_options *options);

/* --- for the files of operations ---------------------------------------- */

/* 0 to count - 1. */
unsigned pick(struct run *run, unsigned count);
bool chance(struct run *run, unsigned percent);
#define PICK(run, list) \
    ((list)[pick(run, (unsigned)(sizeof(list) / sizeof((list)[0])))])

/* What was queued must answer run->wanted, which is then cleared. */
void run_check(struct run *run);

/* Both models look at all keys of the server. */
void run_walk(struct run *run);

/* The second half of that: run->got was read already. */
void run_compare(struct run *run);

/* Print where the run is and what differs; ends the test. */
_Noreturn void run_differs(const struct run *run, const char *what,
                           const char *wanted, const char *got);

/* Who was woken on the server since the last look, and in the model. */
void run_check_woken(struct run *run);

void run_set_clock(struct run *run);
void run_pass(struct run *run, int64_t us);

/* A new pack's bytes go to the server, unless it is in use there. */
void run_stage(struct run *run, struct pack *pack);
/* As an argument of the call. */
void run_bring(struct run *run, struct pack *pack);
void run_stage_out(struct run *run, struct pack *pack);
void run_stage_in(struct run *run, char topic, struct pack *pack);

/* Times in rising order, as mixed packs have them: delays up to `span_ms`, or
 * times of the server; the first may be past. */
void run_set_rising(struct run *run, struct pack *pack, unsigned span_ms);

/* What the server is to be sent for `when` of a pack. */
void run_when(const struct pack *pack, struct weir__buf *ret_buf);

/* Give all jobs of a pack records of their own. */
void run_fill(struct run *run, struct pack *pack);

/* The record that has this number. */
void body_text(uint32_t body, char ret_text[64]);

/* Make the call on both sides and compare. */
void run_add(struct run *run, struct add_call *call); /* in its call slot */
void run_claim(struct run *run, const struct claim_call *call);
void run_start(struct run *run, const struct start_call *call);
void run_recall(struct run *run, int worker);
void run_say_limits(struct run *run, struct claim_call *call);
void run_lift_limits(struct run *run);
void run_release(struct run *run, uint64_t token);
void run_slot(struct run *run, const struct slot_call *call);
void run_settle(struct run *run, struct settle_call *call);

/* Write how the worker of a settle call offers itself. */
void run_offer(struct run *run, const struct claim_call *call);

/* Send on what is in the outbox. */
void run_send_all(struct run *run);

void run_hold(struct run *run, struct node node, uint64_t token);
void run_forget(struct run *run, size_t index);

/* --- operations --------------------------------------------------------- */

void op_add(struct run *run);
void op_add_again(struct run *run);
void op_add_other_kind(struct run *run);
void op_hand_over(struct run *run);
void op_stage_only(struct run *run);
void op_claim(struct run *run);
void op_start(struct run *run);
void op_recall(struct run *run);
void op_start_twice(struct run *run);
void op_settle(struct run *run);
void op_finish(struct run *run);
void op_settle_again(struct run *run);
void op_follow(struct run *run);
void op_slot(struct run *run);
void op_slot_late(struct run *run);
void op_requeue(struct run *run);
void op_forget(struct run *run);
void op_purge(struct run *run);
void op_add_dead(struct run *run);
void op_duplicates(struct run *run);
void op_large_lease(struct run *run);
void op_many_crashes(struct run *run);
void op_back_at_mark(struct run *run);
void op_many_split(struct run *run);
void op_renew(struct run *run);
void op_release(struct run *run);
void op_stats(struct run *run);
void op_lateness(struct run *run);
void op_pause(struct run *run);
void op_max_pending(struct run *run);
void op_limits(struct run *run);
void op_subscribe(struct run *run);
void op_time(struct run *run);

/* Take and settle whatever is left. */
void run_drain(struct run *run);

/* Compare all keys of the server with the model. */
void walk(struct run *run);
void walk_tables(struct run *run); /* its second half */

#endif

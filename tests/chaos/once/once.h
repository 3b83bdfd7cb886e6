/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_ONCE_H
#define WEIR_TEST_ONCE_H

/* Unique keys against a plain model of them: eight producers add jobs, call by
 * call, and repeat their calls at random; workers claim, finish, retry and kill
 * jobs, and people delete, reschedule and requeue them. Every answer is
 * compared. The model knows which job has a key because it remembers the job,
 * not what is stored of it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/chaos/model/script_call.h"

enum {
    PRODUCERS = 8,
    CALL_JOBS = 16, /* most of one call that adds */
    ID_CAP = 24,
    USERS = 300,   /* ids that callers choose */
    PACK_JOBS = 3, /* most of a pack */
    SEQ_CAP = 13
};

enum once_state { GONE, WAITS, RUNS, DEAD };

struct once_job {
    char id[ID_CAP];
    unsigned user; /* of an id that a caller chose: its number + 1; else 0 */
    struct once_pack *pack;
    unsigned slot;
    enum once_state state;
    bool has_moved; /* into another pack */
    int64_t added_ms, due_ms, died_ms;
    char node[20]; /* RUNS: what was claimed */
    uint64_t token;
    size_t at; /* place in the list of all that are not GONE */
    struct once_job *next;
};

struct once_pack {
    char seq[SEQ_CAP];
    unsigned count;
    size_t header_len;
    struct once_job *jobs[PACK_JOBS];
};

enum once_mode { REJECT, REPLACE, DEBOUNCE, THROTTLE, MODES };
enum once_form { UNTIL_DONE, UNTIL_START, FOR };

struct once_rule {
    enum once_mode mode;
    enum once_form form;
    int64_t ms;   /* FOR */
    int64_t most; /* DEBOUNCE; -1: none */
};

/* Who took a key last. */
struct once_key {
    struct once_job *holder; /* NULL: nobody ever */
    enum once_form form;
    int64_t till, first, due;
};

struct once_add {
    struct once_job *job;
    int key;
    struct once_rule rule;
    int64_t when_ms;
    bool is_absolute;
};

struct once_call {
    size_t count;
    struct once_add adds[CALL_JOBS];
    bool is_added[CALL_JOBS]; /* written by once_add */
};

struct once {
    int64_t now_ms;
    long long max_pending; /* 0: no bound */
    struct once_key *keys;
    int key_count;
    struct once_job *users[USERS]; /* who has the id, dead or alive */
    struct once_job **list;        /* of all that are not GONE */
    size_t count, cap;
    long long waiting, added, started;
};

/* The job leaves for good. */
void once_drop(struct once *once, struct once_job *job);
void once_enter(struct once *once, struct once_job *job, int64_t due_ms);

/* All of it. Writes what is told of those that were refused, as " 0 512 ID" for
 * each; returns how many were added. */
long long once_add(struct once *once, struct once_call *call,
                   struct text *ret_told);

/* Faults that somebody could make. */
extern const struct fault once_faults[];
extern const size_t once_fault_count;

struct once_options {
    uint64_t seed;
    long adds;
    int keys;
    const struct fault *fault; /* NULL: none */
};

/* Ends the process with 1 at the first difference, which it prints. */
void once_run(const struct once_options *options);

#endif

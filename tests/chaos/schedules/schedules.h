/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SCHEDULES_H
#define WEIR_TEST_SCHEDULES_H

/* Schedules against a plain model of them: people set, pause and delete
 * schedules, workers claim ticks and jobs, plan with the functions of core and
 * settle, late, twice or not at all. After each operation all that is on the
 * server is compared. The model knows when a schedule made its last job, so
 * that no time has two, and computes by itself which times are to have one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/redis/node.h"
#include "core/schedule.h"
#include "tests/chaos/model/script_call.h"

enum {
    NAMES = 5, /* of schedules: s0 to s4 */
    ID_CAP = WEIR__OCCURRENCE_CAP,
    MOST_JOBS = 3000,
    CALL_RUNS = 4 /* that are settled together */
};

enum sched_state { GONE, WAITS, RUNS, DEAD };

/* What has an id: a tick, a job that a tick made, or one of somebody else. */
struct sched_job {
    char id[ID_CAP];
    enum sched_state state;
    int64_t due_ms;
    uint64_t token;             /* RUNS */
    bool is_tick;               /* then it has: */
    struct weir__schedule plan; /* as its record says */
};

struct sched_schedule {
    char state; /* A, P; 0: it is not set */
    size_t what;
    int64_t from_ms;
    struct sched_job *tick; /* NULL: it is lost, or there is none */
    int64_t made_ms;        /* the last time that ever had a job */
};

struct sched_model {
    int64_t now_ms;
    struct sched_schedule schedules[NAMES];
    struct sched_job jobs[MOST_JOBS];
    size_t top;   /* behind the last that is not GONE */
    bool is_full; /* whatever waits is as much as may */
    long long added, made;
};

/* What schedules are set to. */
enum { WHATS = 7 };
extern const struct weir__schedule sched_whats[WHATS];

enum sched_verb { SET, PAUSE, RESUME, DELETE };

void sched_tick_id(size_t name, char ret_id[ID_CAP]);

/* NULL: there is none. */
struct sched_job *sched_find(struct sched_model *model, const char *id);
struct sched_job *sched_enter(struct sched_model *model, const char *id,
                              int64_t due_ms);
void sched_drop(struct sched_model *model, struct sched_job *job);

/* What the script answers; `what` is set. */
const char *sched_change(struct sched_model *model, size_t name,
                         enum sched_verb verb, size_t what);

/* Returns how many ticks were lost. */
long long sched_mend(struct sched_model *model);

/* NULL: the plan is what such a schedule has to do; else what is wrong. */
const char *sched_plan_fault(const struct weir__schedule *schedule,
                             const struct weir__tick_plan *plan,
                             int64_t now_ms);

extern const struct fault sched_faults[];
extern const size_t sched_fault_count;

struct sched_options {
    uint64_t seed;
    long operations;
    const struct fault *fault; /* NULL: none */
};

/* Ends the process with 1 at the first difference, which it prints. */
void sched_run(const struct sched_options *options);

#endif

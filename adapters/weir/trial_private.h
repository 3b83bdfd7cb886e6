/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TRIAL_PRIVATE_H
#define WEIR_TRIAL_PRIVATE_H

/* The inside of a trial: core under a clock that only weir_trial_advance and
 * weir_trial_wait move. trial.c has its life, its time and the timers of the
 * plugin, trial_store.c the jobs, trial_note.c what happened. */

#include <weir/test.h>

#include "adapters/ev/loop.h"
#include "adapters/ev/plugin_loop.h"
#include "adapters/weir/facade.h"
#include "core/heap.h"

/* A job as it is now. Strings end in a NUL. */
struct weir__trial_job {
    struct weir__heap_node node; /* first: what the heap hands back */
    struct weir__trial_job *next;
    char *bytes; /* owned: what the slices point into */
    struct weir_slice id, group;
    struct weir__record record;
    int64_t due_ms;
    enum weir_trial_state state;
    struct weir__run *run; /* core's, while it runs */
    int64_t entered_ns;    /* real time, while its handler holds the loop */
    int64_t held_ms;       /* for which it did the last time */
};

struct weir__store_topic {
    struct weir_trial *trial;
    void *user; /* the lane; NULL: nobody listens */
};

/* A store in memory for one topic and one reactor. It keeps every job it ever
 * had. Leases are not kept: there is nobody else who could take a job. It
 * answers when it is told to, so that events never come inside an op. */
struct weir__trial_store {
    struct weir__store port;
    struct weir__store_topic topic;
    struct weir__trial_job *jobs; /* all, the newest first */
    struct weir__heap waiting;    /* by due time */
    size_t job_count;
    size_t out_count; /* of jobs: claimed, and no verdict has come */
    uint64_t token;
    bool is_claimed; /* a claim waits for its answer */
    struct weir__claim claim;
    struct weir__run *settled; /* verdicts that wait for theirs, in order */
    struct weir__run **settled_end;
    size_t settled_count;
};

/* An instance's loop: timers are kept here, `watches` has the descriptors. */
struct weir__trial_loop {
    struct weir_loop port; /* first: what the plugin holds */
    const struct weir_trial *trial;
    struct weir_loop *watches; /* NULL: the handler is a function */
    struct weir__heap due;
    struct weir__trial_timer *timers;
    size_t timer_count;
};

/* What happened, in order: structs of one type, each with its texts behind
 * it. */
struct weir__notes {
    void **list; /* owned, as is each */
    size_t count;
};

struct weir_trial {
    struct weir__trial_store store; /* first: its port is what core holds */
    char topic[WEIR_MAX_TOPIC + 1];
    int64_t start_ms;
    int64_t now_ns;
    bool is_running; /* inside weir_trial_advance */
    struct weir__log log;
    weir_log_fn on_line;
    void *on_line_arg;
    struct ev_loop *loop; /* for what other threads and descriptors bring */
    int depth;            /* callbacks of it on the stack */
    struct weir__trial_loop timers;
    struct weir__ev_mailbox *mailbox;
    struct weir__reactor *core;
    struct weir__plugin_file file;
    struct weir__instance instance;
    uint64_t made_ids;
    struct weir__notes runs, lines, follows;
};

/* --- trial.c -------------------------------------------------------------- */

/* The server's clock. */
int64_t weir__trial_now_ms(const struct weir_trial *trial);

/* --- trial_store.c -------------------------------------------------------- */

void weir__trial_store_init(struct weir_trial *trial);
void weir__trial_store_fini(struct weir_trial *trial);

/* Add a job with the counters in its record; checked before. WEIR_EEXISTS,
 * WEIR_ENOMEM. */
int weir__trial_store_add(struct weir_trial *trial,
                          const struct weir__new_job *job);

/* Answer what was asked. False: nothing was. */
bool weir__trial_store_answer(struct weir_trial *trial);

/* NULL: there is none of this id. */
const struct weir__trial_job *
weir__trial_store_find(const struct weir_trial *trial, struct weir_slice id);

/* --- trial_note.c --------------------------------------------------------- */

/* Copy `from` to `*to` with a NUL, and move on. */
struct weir_slice weir__trial_copy(char **to, struct weir_slice from);

/* A line that is logged; `arg` is the trial. */
void weir__trial_log(enum weir_level level, const char *text, void *arg);

/* A verdict, once it was applied to `job`. */
void weir__trial_verdict(struct weir_trial *trial,
                         const struct weir__trial_job *job,
                         const struct weir__run *run);

/* Forget what happened. */
void weir__trial_free_notes(struct weir_trial *trial);

#endif

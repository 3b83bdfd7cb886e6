/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TRIAL_PRIVATE_H
#define WEIR_TRIAL_PRIVATE_H

/* The inside of a trial: trial.c has its life and time, trial_note.c what
 * happened. */

#include <weir/test.h>

#include "adapters/ev/loop.h"
#include "adapters/ev/plugin_loop.h"
#include "adapters/trial/loop.h"
#include "adapters/trial/store.h"
#include "adapters/weir/facade.h"

struct noted_run;
struct noted_line;
struct noted_follow;

struct weir_trial {
    char topic[WEIR_MAX_TOPIC + 1];
    int64_t start_ms;
    int64_t now_ns;
    bool is_running; /* inside weir_trial_advance */
    struct weir__log log;
    weir_log_fn on_line;
    void *on_line_arg;
    struct ev_loop *loop; /* for what other threads and descriptors bring */
    int depth;            /* callbacks of it on the stack */
    struct weir_loop *watches;
    struct weir__trial_loop *timers;
    struct weir__ev_mailbox *mailbox;
    struct weir__reactor *core;
    struct weir__trial_store *store;
    struct weir__plugin_file file;
    struct weir__instance instance;
    uint64_t made_ids;
    struct noted_run **runs;
    size_t run_count;
    struct noted_line **lines;
    size_t line_count;
    struct noted_follow **follows;
    size_t follow_count;
};

/* trial_note.c: a line that is logged, a verdict; `arg` is the trial. */
void weir__trial_log(enum weir_level level, const char *text, void *arg);
void weir__trial_verdict(const struct weir__trial_job *job,
                         const struct weir__run *run, void *arg);

/* Forget what happened. */
void weir__trial_free_notes(struct weir_trial *trial);

#endif

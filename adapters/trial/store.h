/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TRIAL_STORE_H
#define WEIR_TRIAL_STORE_H

/* A store in memory for one topic and one reactor, under a clock that its owner
 * reads. It keeps every job it ever had, and what each run came to. Leases are
 * not kept: there is nobody else who could take a job. It answers when it is
 * told to, so that events never come inside an op. */

#include <weir/test.h>

#include "core/heap.h"
#include "core/store.h"

struct weir__trial_store;

/* A job as it is now. Strings end in a NUL. */
struct weir__trial_job {
    struct weir__heap_node node; /* first: what the heap hands back */
    struct weir__trial_job *next;
    char *bytes; /* owned: what the slices point into */
    struct weir_slice id;
    struct weir__record record;
    int64_t due_ms;
    enum weir_trial_state state;
    struct weir__run *run; /* core's, while it runs */
};

/* Told of each verdict once it was applied to `job`. `run` is freed after. */
typedef void (*weir__trial_verdict_fn)(const struct weir__trial_job *job,
                                       const struct weir__run *run, void *arg);

struct weir__trial_store_options {
    int64_t (*now_ms)(void *arg); /* the server's clock */
    int64_t (*now_ns)(void *arg); /* monotonic */
    weir__trial_verdict_fn verdict;
    void *arg;
};

/* WEIR_ENOMEM. `options` is copied. The port's `close` frees it. */
int weir__trial_store_open(const struct weir__trial_store_options *options,
                           struct weir__trial_store **ret_store);
struct weir__store *weir__trial_store_port(struct weir__trial_store *store);

/* Add a job with the counters in its record; checked before. WEIR_EEXISTS,
 * WEIR_ENOMEM. */
int weir__trial_store_add(struct weir__trial_store *store,
                          const struct weir__new_job *job);

/* Answer what was asked. False: nothing was. */
bool weir__trial_store_answer(struct weir__trial_store *store);

/* How many jobs are out: claimed, and no verdict has come. */
size_t weir__trial_store_out(const struct weir__trial_store *store);

/* NULL: there is none of this id. */
const struct weir__trial_job *
weir__trial_store_find(const struct weir__trial_store *store,
                       struct weir_slice id);

#endif

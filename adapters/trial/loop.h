/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TRIAL_LOOP_H
#define WEIR_TRIAL_LOOP_H

/* An instance's loop under a clock that its owner reads: timers are kept here,
 * descriptors are watched by another loop. */

#include <weir/loop.h>

#include "core/error.h"

struct weir__trial_loop;

struct weir__trial_loop_options {
    int64_t (*now_ns)(void *arg);
    void *arg;
    struct weir_loop *watches; /* of the same instance; kept */
    const char *plugin;        /* these two for sentences; borrowed */
    const char *topic;
    const struct weir__log *log;
};

/* WEIR_ENOMEM. */
int weir__trial_loop_open(const struct weir__trial_loop_options *options,
                          struct weir__trial_loop **ret_loop);

/* After the instance was closed; what it left is freed, and logged. NULL is
 * fine. */
void weir__trial_loop_close(struct weir__trial_loop *loop);

struct weir_loop *weir__trial_loop_port(struct weir__trial_loop *loop);

/* Call the timers that are due. False: there were none. */
bool weir__trial_loop_run(struct weir__trial_loop *loop);

/* When the next one is due, or -1. */
int64_t weir__trial_loop_next_ns(const struct weir__trial_loop *loop);

#endif

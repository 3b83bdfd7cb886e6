/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_PLUGIN_LOOP_H
#define WEIR_EV_PLUGIN_LOOP_H

/* A plugin instance's share of a libev loop: fills <weir/loop.h>. */

#include <weir/loop.h>

#include "core/error.h"

struct ev_loop;
struct weir__store;
struct weir_current;

struct weir__ev_loop_options {
    struct ev_loop *loop;        /* kept */
    const char *plugin;          /* for logs; kept */
    const char *topic;           /* copied, at most WEIR_MAX_TOPIC bytes */
    const struct weir__log *log; /* kept */
    int *depth;                  /* callbacks on the stack; kept, counted */
    /* Hears of each call of the instance's timers and descriptors; kept; NULL,
     * or a pointer to NULL: no store does. */
    struct weir__store *const *store;
    /* Set while the instance's timers and descriptors call; kept; NULL: nobody
     * looks. */
    const struct weir_loop *volatile *calling;
};

/* WEIR_ENOMEM. */
int weir__ev_loop_open(const struct weir__ev_loop_options *options,
                       struct weir_loop **ret_loop);

/* Whose it is; for handlers of signals, too. */
void weir__ev_loop_current(const struct weir_loop *loop,
                           struct weir_current *ret_current);

/* Stop and free what is left of timers and watches, and say so. After the
 * instance was closed; not inside a callback. NULL is fine. */
void weir__ev_loop_close(struct weir_loop *loop);

#endif

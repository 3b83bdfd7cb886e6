/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_LOOP_H
#define WEIR_EV_LOOP_H

/* A loop of its owner's own, for owners that do not know libev. */

#include <stdint.h>

struct ev_loop;

/* NULL: out of memory or descriptors. */
struct ev_loop *weir__loop_new(void);

/* NULL is fine; its watchers are stopped before. */
void weir__loop_free(struct ev_loop *loop);

/* Run what happens, waiting up to `ms` for the first of it. BLOCKS. */
void weir__loop_turn(struct ev_loop *loop, int64_t ms);

#endif

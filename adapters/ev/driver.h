/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_DRIVER_H
#define WEIR_EV_DRIVER_H

/* Ticks a reactor from a libev loop: a prepare watcher at the end of each loop
 * turn, a timer for the next deadline, an idle watcher that keeps the loop from
 * sleeping while there is more to do. Knows nothing of what a tick does. */

#include <stdint.h>

struct ev_loop;
struct weir__driver;

/* Monotonic ns; the clock of reactor and stores. `arg` is not used. */
int64_t weir__driver_clock(void *arg);

/* Returns ns until it wants to be called again, 0: at once, -1: no plans;
 * WEIR__TICK_ENDS: the loop ends before it waits or touches a descriptor. */
#define WEIR__TICK_ENDS INT64_MIN
typedef int64_t (*weir__tick_fn)(void *arg);

/* Call `tick` on every turn of `loop` (both kept) until close. WEIR_ENOMEM. */
int weir__driver_open(struct ev_loop *loop, weir__tick_fn tick, void *arg,
                      struct weir__driver **ret_driver);

/* Run `fn` once, after every callback now on the stack has returned, in the
 * same loop turn, even if the loop is told to end. One at a time. */
void weir__driver_defer(struct weir__driver *driver, void (*fn)(void *arg));

/* Not from within tick; NULL is fine. */
void weir__driver_close(struct weir__driver *driver);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FIBRE_H
#define WEIR_TEST_FIBRE_H

/* Threads of the world, for the files that replace system calls. */

#include "tests/sim/sim.h"

/* A world is open and a fibre runs: the call is one of the world. */
bool sim_is_inside(void);
bool sim_is_open(void);

/* The fibre sleeps until `ready` holds or `until_ns` is over. Returns whether
 * it held; NULL never does. `ready` runs often, outside of all fibres. */
bool sim_block(bool (*ready)(void *arg), void *arg, int64_t until_ns);

/* The fibre sleeps until sim_wake names the same object, or `until_ns` is over.
 * Returns whether it was woken. */
bool sim_wait(const void *object, int64_t until_ns);

/* Wakes one of those that wait for the object, by chance, or all. */
void sim_wake(const void *object, bool all);

/* A thread of the process that runs; returns its number. */
uintptr_t sim_spawn(void (*fn)(void *arg), void *arg);
uintptr_t sim_self(void);
bool sim_has_ended(uintptr_t thread);

/* The fibre took a mutex, or gave one back. */
void sim_locked(int change);

/* As sim_at, but the event also comes at the end of the world. */
void sim_event(int64_t at_ns, void (*fn)(void *arg), void *arg);
void sim_events_end(void);

/* The process that runs; pid 1 outside of all. */
int sim_pid(void);
const char *sim_host(void);
void sim_turn(void);

/* Frees what must not survive its process; see file.h. */
void sim_files_close(int pid);
void sim_files_end(void);
void sim_sockets_end(void);
void sim_names_end(void);

#endif

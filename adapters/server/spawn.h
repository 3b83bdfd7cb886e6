/* SPDX-License-Identifier: MIT */
#ifndef WEIR_SERVER_SPAWN_H
#define WEIR_SERVER_SPAWN_H

/* Start a program in a session of its own, with nothing of ours: no open
 * descriptors, no blocked signals, standard streams on /dev/null. */

#include <weir/base.h>

#include <sys/types.h>

/* Start argv[0], looked up in PATH. `*ret_pid` is no child of ours and need not
 * be waited for. The new process writes it to the pipe `guard` before it is
 * that program, also where we are killed meanwhile; -1: nobody is told.
 * WEIR_ENOTFOUND (no such program), WEIR_ESYSTEM. BLOCKS until the program was
 * loaded. */
int weir__spawn(const char *const *argv, int guard, pid_t *ret_pid,
                struct weir_error *err);

/* Whether a process still runs; a zombie does not. */
bool weir__process_is_alive(pid_t pid);

#endif

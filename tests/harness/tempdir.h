/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_TEMPDIR_H
#define WEIR_TEST_TEMPDIR_H

/* A directory of its own for a test, short enough for unix sockets. A guard
 * process outside the test's group removes it when the test is gone, however
 * it ended, and kills one process by its pid before. */

#include <stdbool.h>
#include <sys/types.h>

struct tempdir {
    char path[96];
    int guard;       /* write end of the guard's pipe */
    pid_t guard_pid; /* the guard */
};

/* Make it, with its guard. False when the system refuses. */
bool tempdir_make(struct tempdir *dir);

/* From now on the guard kills `pid`, too; 0: nothing. */
void tempdir_guard(struct tempdir *dir, pid_t pid);

/* Remove it now, and wait for its guard to end. */
void tempdir_remove(struct tempdir *dir);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_FORK_H
#define WEIR_EV_FORK_H

/* How many forks are between the first process and this one, from the first
 * call on. Connections, threads and names belong to the process that made them:
 * an owner keeps the count of its opening and compares it. Any thread may call
 * it. */
unsigned weir__forks(void);

#endif

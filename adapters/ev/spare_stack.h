/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_SPARE_STACK_H
#define WEIR_EV_SPARE_STACK_H

/* A stack for signal handlers that ask for one (SA_ONSTACK), for the calling
 * thread. A handler of jobs that recurses without an end leaves no room on the
 * thread's own stack to report the crash. */

/* Returns what weir__spare_stack_free takes at the end of the thread. NULL: the
 * thread has one already, or there is no memory, and crashes go unreported. */
void *weir__spare_stack_new(void);

/* NULL is fine. */
void weir__spare_stack_free(void *stack);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_THREAD_H
#define WEIR_EV_THREAD_H

/* A loop with a thread of its own, which blocks all signals but those of
 * faults. */

struct ev_loop;
struct weir__ev_thread;

/* The loop is there at once and the caller's until the thread is started.
 * WEIR_ENOMEM (also: no descriptors). */
int weir__ev_thread_open(struct weir__ev_thread **ret_thread);

struct ev_loop *weir__ev_thread_loop(struct weir__ev_thread *thread);

/* Run `begun`, the loop until its end, then `ended`, on a new thread; returns
 * when `begun` has. `ended` may free the thread after it was let go.
 * WEIR_ESYSTEM. */
int weir__ev_thread_start(struct weir__ev_thread *thread,
                          void (*begun)(void *arg), void (*ended)(void *arg),
                          void *arg);

/* From any thread: end the loop, after the callbacks of its turn. */
void weir__ev_thread_end(struct weir__ev_thread *thread);

/* BLOCKS until the thread has ended. */
void weir__ev_thread_join(struct weir__ev_thread *thread);

/* On such a thread: nobody will join this thread. */
void weir__ev_thread_let_go(void);

/* Of a thread that was never started, was joined or let go. NULL is fine. */
void weir__ev_thread_free(struct weir__ev_thread *thread);

#endif

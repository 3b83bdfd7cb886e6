/* SPDX-License-Identifier: MIT */
#ifndef WEIR_THREAD_H
#define WEIR_THREAD_H

/* A reactor on a thread of its own, for programs whose loop is not libev's, or
 * that have none: this header needs no other library.
 *
 * Two threads are meant here. The reactor's thread runs its loop, all handlers
 * (but those that block) and every callback that is given to the reactor. The
 * host's thread is the one that calls weir_thread_dispatch: what is given to
 * weir_thread_submit, weir_thread_tell and weir_thread_stop runs in there, so
 * that a host needs no lock for it. weir_thread_fd tells its loop when.
 *
 *     open, serve -> start -> submit, dispatch ... -> stop -> free
 *
 * Until it is started the reactor is used as <weir/weir.h> says, on the thread
 * that opened it: topics are served there, and errors seen at once. From then
 * on other threads use weir_reactor_call, weir_reactor_submit, weir_complete
 * and the functions below; what else they ask of it is WEIR_ETHREAD.
 *
 * The reactor's thread blocks all signals but those of faults (SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL). Nothing here prints or exits. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_thread;

/* Make a loop and open a reactor on it, as weir_reactor_open does; no thread
 * runs yet. `options->loop` must be NULL. The log and connection callbacks run
 * on the reactor's thread once that runs. Errors: those of weir_reactor_open,
 * WEIR_ESYSTEM (no descriptor to be had). */
WEIR_API WEIR_MUST_CHECK int
weir_thread_open(const struct weir_options *options,
                 struct weir_thread **ret_thread, struct weir_error *err);

/* Its reactor, which is not to be freed. The same each time. */
WEIR_API struct weir_reactor *
weir_thread_reactor(const struct weir_thread *thread);

/* Run the loop from now on: its thread runs when this returns. WEIR_ESYSTEM: no
 * thread can be started. WEIR_EINVAL: it runs already. */
WEIR_API WEIR_MUST_CHECK int weir_thread_start(struct weir_thread *thread,
                                               struct weir_error *err);

/* End the loop, free the reactor as weir_reactor_free does, and wait for the
 * thread: BLOCKS until the handler on its stack has returned. What the host
 * still has to hear runs in here, adds without an answer with WEIR_ECANCELED.
 * Also inside a callback: in one of weir_thread_dispatch the thread is gone
 * when that returns; in one on the reactor's thread, when that callback and
 * what is left of its turn are over, and what the host had to hear runs there.
 * No other thread may use it any more; to callbacks that run in here it says
 * WEIR_ECANCELED. NULL is fine. */
WEIR_API void weir_thread_free(struct weir_thread *thread);

/* --- to the reactor's thread ------------------------------------------ */

/* Before the start these return WEIR_EINVAL. */

/* As weir_reactor_submit, but `fn` runs on the host's thread. Until it did its
 * jobs count against a bound of 64 MiB, for each call 1 KiB at least:
 * WEIR_EFULL. */
WEIR_API WEIR_MUST_CHECK int
weir_thread_submit(struct weir_thread *thread, const struct weir_new_jobs *jobs,
                   struct weir_error *err);

/* As weir_reactor_stop, from any thread: `fn` runs on the host's thread, or
 * never when the thread is freed before; it may be NULL. A second call replaces
 * it. WEIR_ENOMEM, WEIR_EFULL. */
WEIR_API WEIR_MUST_CHECK int weir_thread_stop(struct weir_thread *thread,
                                              weir_stopped_fn fn, void *arg);

/* As weir_reactor_give_back, from any thread, soon. WEIR_ENOMEM, WEIR_EFULL. */
WEIR_API WEIR_MUST_CHECK int weir_thread_give_back(struct weir_thread *thread);

/* --- to the host's thread ---------------------------------------------- */

/* Have `fn` called on the host's thread, from any thread: a handler gives work
 * to the host so, returns WEIR_PENDING, and the host calls weir_complete. Calls
 * run in their order, once each, at the latest in weir_thread_free. Without
 * room (65,536 calls wait): WEIR_EFULL. WEIR_ENOMEM. */
typedef void (*weir_told_fn)(void *arg);
WEIR_API WEIR_MUST_CHECK int weir_thread_tell(struct weir_thread *thread,
                                              weir_told_fn fn, void *arg);

/* A descriptor that is readable while weir_thread_dispatch has something to
 * do; to be polled only. It stays until the thread is freed. */
WEIR_API int weir_thread_fd(const struct weir_thread *thread);

/* Run what waits for the host, on its thread, which is the calling one; not
 * inside one of these callbacks. Never blocks. */
WEIR_API void weir_thread_dispatch(struct weir_thread *thread);

/* For hosts without a loop: the same once there is something to run. BLOCKS up
 * to `ms`, or for ever when it is negative. WEIR_ETIMEDOUT: there was nothing
 * (or a signal came). */
WEIR_API int weir_thread_wait(struct weir_thread *thread, int64_t ms);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_THREAD_H
#define WEIR_REDIS_THREAD_H

/* Threads beside the loop's: signals are for others, and who waits for one of
 * them waits by weir__monotonic_ns. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Start a thread that takes no signals. Returns what pthread_create does. */
int weir__redis_thread_start(pthread_t *ret_thread, void *(*run)(void *),
                             void *arg);

/* Make a lock and the condition that goes with it; false: neither. */
bool weir__redis_lock_init(pthread_mutex_t *lock, pthread_cond_t *changed);

/* Of both, when nobody has the lock. */
void weir__redis_lock_fini(pthread_mutex_t *lock, pthread_cond_t *changed);

/* pthread_cond_wait, until then at most. False: that time has come. */
bool weir__redis_lock_wait(pthread_mutex_t *lock, pthread_cond_t *changed,
                           int64_t until_ns);

#endif

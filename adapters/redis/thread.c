/* SPDX-License-Identifier: MIT */
#include "adapters/redis/thread.h"

#include <signal.h>
#include <time.h>

int weir__redis_thread_start(pthread_t *ret_thread, void *(*run)(void *),
                             void *arg)
{
    sigset_t all, before;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* is inherited */
    rc = pthread_create(ret_thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

bool weir__redis_lock_init(pthread_mutex_t *lock, pthread_cond_t *changed)
{
    pthread_condattr_t attr;
    bool is_made;

    if (pthread_condattr_init(&attr) != 0)
        return false;
    is_made = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(changed, &attr) == 0;
    (void)pthread_condattr_destroy(&attr);
    if (is_made && pthread_mutex_init(lock, NULL) != 0) {
        (void)pthread_cond_destroy(changed);
        is_made = false;
    }
    return is_made;
}

void weir__redis_lock_fini(pthread_mutex_t *lock, pthread_cond_t *changed)
{
    (void)pthread_cond_destroy(changed);
    (void)pthread_mutex_destroy(lock);
}

bool weir__redis_lock_wait(pthread_mutex_t *lock, pthread_cond_t *changed,
                           int64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};

    return pthread_cond_timedwait(changed, lock, &until) == 0;
}

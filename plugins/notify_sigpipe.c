/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <time.h>

#include "notify.h"

static bool pipe_signal_pends(void)
{
    sigset_t pending;

    (void)sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

static sigset_t pipe_signal(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    return set;
}

void hush(struct quiet *quiet)
{
    sigset_t set = pipe_signal();

    (void)pthread_sigmask(SIG_BLOCK, &set, &quiet->before);
    quiet->was_pending = pipe_signal_pends();
}

void unhush(const struct quiet *quiet)
{
    const struct timespec now = {0, 0};
    sigset_t set = pipe_signal();

    if (!quiet->was_pending && pipe_signal_pends())
        (void)sigtimedwait(&set, NULL, &now);
    (void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

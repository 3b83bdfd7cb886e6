/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_SIGNALS_H
#define WEIR_EV_SIGNALS_H

/* What threads of the library do about signals. */

#include <pthread.h>
#include <signal.h>

/* Block all signals, for a thread about to be started to inherit. Not those
 * that a fault of its own raises: blocked, they would end the process past the
 * handlers that a host has for them. */
static inline void weir__ev_signals_block(sigset_t *ret_before)
{
    sigset_t most;

    (void)sigfillset(&most);
    (void)sigdelset(&most, SIGSEGV);
    (void)sigdelset(&most, SIGBUS);
    (void)sigdelset(&most, SIGFPE);
    (void)sigdelset(&most, SIGILL);
    (void)pthread_sigmask(SIG_SETMASK, &most, ret_before);
}

#endif

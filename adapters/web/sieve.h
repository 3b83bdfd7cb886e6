/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_SIEVE_H
#define WEIR_WEB_SIEVE_H

/* A reader's jq program, run over jobs in a process of its own
 * (adapters/cli/jq_process.h), on the loop. */

#include "core/buf.h"

struct ev_loop;
struct weir__sieve;

enum { WEIR__SIEVES_MAX = 4 }; /* that run at once */

/* Runs once. WEIR_OK: of each job `taken` has 'y' where the program takes it,
 * 'n', or 'f' where it failed on it. WEIR_EINVAL: the program is refused, or
 * did not end in time; `text` is the sentence. WEIR_ECANCELED. */
typedef void (*weir__sieve_fn)(int code, const char *taken, const char *text,
                               void *arg);

/* Those that run; zeroed: none. */
struct weir__sieves {
    struct ev_loop *loop;
    size_t held; /* places */
    struct weir__sieve *running[WEIR__SIEVES_MAX];
};

/* Whoever has jobs looked at holds a place from the first to the last of them,
 * so that nobody is refused in the middle. False: all are held. */
bool weir__sieves_hold(struct weir__sieves *sieves);
void weir__sieves_release(struct weir__sieves *sieves);

/* With a place that is held and where none of the holder's runs: have `program`
 * look at `count` jobs; `lines` has their JSON, each with a NUL
 * behind it. Both are borrowed for the call. `fn` runs later. WEIR_ENOMEM;
 * WEIR_ESYSTEM: no process could be made. */
int weir__sieve_start(struct weir__sieves *sieves, const char *program,
                      const struct weir__buf *lines, size_t count,
                      weir__sieve_fn fn, void *arg);

/* End those that run; each is told WEIR_ECANCELED. */
void weir__sieves_close(struct weir__sieves *sieves);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_FLEET_H
#define WEIR_CLI_FLEET_H

/* weir run --workers N: a parent that forks N workers, starts those again that
 * end unexpectedly, and passes signals on. It has no connection, no loop and no
 * plugin; it ends by the worst exit code of theirs, and they end with it.
 *
 * The first worker starts alone: what is wrong with plugins, options or the
 * server is said once, and ends the fleet. Likewise it reads the file first at
 * SIGHUP, and the others only when it was good. */

#include "adapters/cli/cli.h"
#include "core/error.h"

#include <sys/types.h>

enum { WEIR__FLEET_MAX = 256 };

struct weir__fleet {
    uint32_t count; /* of workers, 2 to WEIR__FLEET_MAX */
    bool may_end;   /* one that ends by itself is not started again */
    const struct weir__log *log; /* of the parent */
};

/* What a worker is told of its fleet; zeroed: there is none. */
struct weir__berth {
    uint32_t number;   /* from 1; the same after a restart */
    int parent;        /* descriptor of the parent's end, see notify.h */
    double watchdog_s; /* between two signs of life; 0: not wanted */
};

/* In the parent: what to exit with, when all have ended. In a worker, a child
 * of that: WEIR__EXIT_NONE and `ret_berth`; SIGHUP waits there until
 * weir__signals_open. For a process of one thread that ignores SIGPIPE, before
 * it has anything that a child must not share. BLOCKS. */
enum weir__exit weir__fleet_run(const struct weir__fleet *fleet,
                                struct weir__berth *ret_berth);

#endif

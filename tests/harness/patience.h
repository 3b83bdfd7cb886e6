/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HARNESS_PATIENCE_H
#define WEIR_HARNESS_PATIENCE_H

/* A clock for giving up. The clock runs at wall speed minus the time in which
 * tasks waited for a CPU, and at a tenth of wall speed at least. So a busy
 * machine fails no test, and each wait has an end.
 *
 *     struct patience patience = patience_start(30.);
 *
 *     while (!is_done() && !patience_ended(&patience))
 *         turn();
 *
 * A wait that is a verdict ("within 300 ms") does not belong here. */

#include <stdbool.h>
#include <sys/types.h>

/* Seconds, each from some start of its own. */
struct patience_reading {
    double wall;
    double pressure; /* of the machine, PSI "some"; negative: not available */
    double stolen;   /* by the hypervisor, on average of the cores */
    double queued;   /* waits of a process group, read without `pressure` */
};

struct patience {
    double limit_s;
    pid_t group; /* the process group whose waits count without PSI */
    struct patience_reading from;
};

struct patience patience_start(double limit_s); /* of the own group */
struct patience patience_start_for(pid_t group, double limit_s);
bool patience_ended(const struct patience *patience);

/* The rule: seconds of the clock between two readings. */
double patience_elapsed(const struct patience_reading *from,
                        const struct patience_reading *to);

#endif

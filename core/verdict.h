/* SPDX-License-Identifier: MIT */
#ifndef WEIR_VERDICT_H
#define WEIR_VERDICT_H

/* The life cycle's arithmetic: from a handler's verdict to what becomes of the
 * job. Pure but for the run it writes to. */

#include <weir/past.h>

#include "core/ladder.h"
#include "core/run.h"

/* Decide the outcome of a run whose verdict is known: new counters, delay,
 * reason. `ladder` and `jitter_percent` are the topic's; the job's own ladder
 * beats it. `random` is any 64 random bits.
 */
void weir__run_decide(struct weir__run *run, const struct weir__ladder *ladder,
                      uint32_t jitter_percent, uint64_t random);

/* What the run is in the job's history, but for the time and the worker. False:
 * nothing, since it was done or put off, or no handler saw it. */
bool weir__run_attempt(const struct weir__run *run,
                       struct weir_attempt *ret_attempt);

/* The ladder that the run's job brings, read into `own`; else `ladder`, also
 * where something else than weir wrote the record and it cannot be read. */
const struct weir__ladder *weir__run_ladder(const struct weir__run *run,
                                            const struct weir__ladder *ladder,
                                            struct weir__ladder *own);

/* Retries used so far: attempts, since each finished run but a snooze is one
 * and only failing runs leave a job behind, without those spent in another
 * topic. */
uint32_t weir__run_retries(const struct weir__run *run);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_OUTCOME_LOG_H
#define WEIR_OUTCOME_LOG_H

/* Log lines about what became of jobs: each retry, timeout, death, expiry,
 * crash, drop from a group and eviction of the dead is one, up to ten of a kind
 * in a second and topic; then the number of jobs that none told of follows.
 * Jobs that are done cost nothing here. */

#include "core/lane.h"

/* The run's outcome is decided; a line where it is a retry or the end. */
void weir__lane_log_outcome(struct weir__lane *lane,
                            const struct weir__run *run);

/* The run is back although a worker was blamed for it. */
void weir__lane_log_crash(struct weir__lane *lane, const struct weir__run *run);

/* Events of a group were dropped; not for those that expired here. */
void weir__lane_log_drop(struct weir__lane *lane,
                         const struct weir__dropped *dropped);

/* So many dead jobs went for max_dead. */
void weir__lane_log_evicted(struct weir__lane *lane, size_t count);

/* Log the number of lines that were left out, if any: when the second is over,
 * and before the lane is freed. */
void weir__lane_log_rest(struct weir__lane *lane);

#endif

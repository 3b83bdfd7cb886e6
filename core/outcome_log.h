/* SPDX-License-Identifier: MIT */
#ifndef WEIR_OUTCOME_LOG_H
#define WEIR_OUTCOME_LOG_H

/* Log lines about what became of jobs: each retry, timeout, death, expiry and
 * crash is one, up to ten of a kind in a second and topic; then their number
 * follows. Jobs that are done cost nothing here. */

#include "core/lane.h"

/* The run's outcome is decided; a line where it is a retry or the end. */
void weir__lane_log_outcome(struct weir__lane *lane,
                            const struct weir__run *run);

/* The run is back although a worker was blamed for it. */
void weir__lane_log_crash(struct weir__lane *lane, const struct weir__run *run);

/* Log the number of lines that were left out, if any: when the second is over,
 * and before the lane is freed. */
void weir__lane_log_rest(struct weir__lane *lane);

#endif

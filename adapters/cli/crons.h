/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_CRONS_H
#define WEIR_CLI_CRONS_H

/* Schedules of the configuration file: a worker sets them when it starts, and
 * when the file is read again. Several workers with one file set one schedule.
 * What left the file stays on the server: weir cron delete. */

#include "adapters/cli/services.h"

/* Is what the file says of each a schedule? What is wrong has been printed,
 * with its line. */
bool weir__crons_check(const struct weir__services *services);

/* Set them; what changed is logged, and what could not be set. */
void weir__crons_set(struct weir_reactor *reactor,
                     const struct weir__services *services,
                     const struct weir__log *log);

#endif

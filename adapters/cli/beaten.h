/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_BEATEN_H
#define WEIR_CLI_BEATEN_H

/* What the configuration file says of a topic and what is stored with it says
 * otherwise, which counts. */

#include "adapters/cli/serving.h"

/* Ask what is stored with the topic of a service, and log what differs from the
 * file: "order: concurrency is 4 by what is stored, not 8 as in w.conf:7".
 * `services` may be filled anew before the answer is there; both live until the
 * reactor is freed. */
void weir__beaten_look(const struct weir__serving *serving,
                       const struct weir__services *services,
                       const struct weir__service *service);

#endif

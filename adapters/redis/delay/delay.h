/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_H
#define WEIR_DELAY_H

/* The store of `delay` topics on a Redis server. One connection is for commands
 * and one is subscribed to this worker's wake-up channel; serving a topic takes
 * another for the keeper's thread, and large fetches a few of their own. The
 * data model is in docs/packs.md. */

#include "adapters/redis/store.h"

/* WEIR_ENOMEM. */
int weir__delay_open(const struct weir__redis_options *options,
                     struct weir__store **ret_store);

#endif

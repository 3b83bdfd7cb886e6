/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BOUNDED_H
#define WEIR_BOUNDED_H

/* The store of bounded topics: events in groups of a bounded length, given out
 * in batches of one group (docs/kinds.md). */

#include "adapters/redis/store.h"

/* As weir__store_open_fn. */
int weir__bounded_open(const struct weir__redis_options *options,
                       struct weir__store **ret_store);

#endif

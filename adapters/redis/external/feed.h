/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EXTERNAL_FEED_H
#define WEIR_EXTERNAL_FEED_H

/* The stores of topics whose entries come from somebody else's key: `list`, a
 * plain list that any program pushes to, and `stream`, a stream read through a
 * consumer group. docs/kinds.md has the data model and the guarantees. */

#include "adapters/redis/store.h"

/* WEIR_ENOMEM. */
int weir__list_open(const struct weir__redis_options *options,
                    struct weir__store **ret_store);
int weir__stream_open(const struct weir__redis_options *options,
                      struct weir__store **ret_store);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLASSIC_FIFO_H
#define WEIR_CLASSIC_FIFO_H

/* The stores of sync and concurrent topics (docs/kinds.md). */

#include "adapters/redis/store.h"

int weir__sync_open(const struct weir__redis_options *options,
                    struct weir__store **ret_store);
int weir__concurrent_open(const struct weir__redis_options *options,
                          struct weir__store **ret_store);

#endif

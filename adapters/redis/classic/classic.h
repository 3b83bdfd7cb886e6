/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLASSIC_CLASSIC_H
#define WEIR_CLASSIC_CLASSIC_H

/* The rules of sync and concurrent topics (docs/kinds.md). */

#include "adapters/redis/store/kind.h"

extern const struct weir__kind weir__sync_kind;
extern const struct weir__kind weir__concurrent_kind;

#endif

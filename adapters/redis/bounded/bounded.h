/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BOUNDED_BOUNDED_H
#define WEIR_BOUNDED_BOUNDED_H

/* The rules of bounded topics: events in groups of a bounded length, given out
 * in batches of one group (docs/kinds.md). */

#include "adapters/redis/store/kind.h"

extern const struct weir__kind weir__bounded_kind;

#endif

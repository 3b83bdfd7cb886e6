/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EXTERNAL_EXTERNAL_H
#define WEIR_EXTERNAL_EXTERNAL_H

/* The rules of topics whose entries come from somebody else's key: `list`, a
 * plain list that any program pushes to, and `stream`, a stream read through a
 * consumer group. docs/kinds.md has the data model and the guarantees. */

#include "adapters/redis/store/kind.h"

extern const struct weir__kind weir__list_kind;
extern const struct weir__kind weir__stream_kind;

#endif

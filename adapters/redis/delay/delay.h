/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_DELAY_H
#define WEIR_DELAY_DELAY_H

/* The rules of `delay` topics; the data model is in docs/packs.md. */

#include "adapters/redis/store/kind.h"

extern const struct weir__kind weir__delay_kind;

#endif

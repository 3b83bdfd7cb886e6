/* SPDX-License-Identifier: MIT */

/* Claims declarations that are too small. */

#define NAME        "option_small"
#define OPTION      .name = "rate", .type = WEIR_OPTION_INT, .fallback = "1"
#define OPTION_SIZE 8
#include "table.h"

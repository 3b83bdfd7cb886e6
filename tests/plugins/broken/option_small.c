/* SPDX-License-Identifier: MIT */

/* Says that each of its option declarations has 8 bytes, fewer than any host
 * knows. */

#define NAME        "option_small"
#define OPTION      .name = "rate", .type = WEIR_OPTION_INT, .fallback = "1"
#define OPTION_SIZE 8
#include "table.h"

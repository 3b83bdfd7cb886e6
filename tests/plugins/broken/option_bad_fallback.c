/* SPDX-License-Identifier: MIT */

/* Declares a fallback out of its own bounds. */

#define NAME "option_bad_fallback"
#define OPTION \
    .name = "rate", .type = WEIR_OPTION_INT, .fallback = "0", .min = 1, .max = 9
#include "table.h"

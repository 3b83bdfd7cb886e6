/* SPDX-License-Identifier: MIT */

/* Declares bounds the wrong way round. */

#define NAME   "option_bad_bounds"
#define OPTION .name = "rate", .type = WEIR_OPTION_INT, .min = 9, .max = 1
#include "table.h"

/* SPDX-License-Identifier: MIT */

/* Declares an option with a flag of the future. */

#define NAME   "option_bad_flag"
#define OPTION .name = "rate", .type = WEIR_OPTION_INT, .flags = 64
#include "table.h"

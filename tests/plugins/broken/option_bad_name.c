/* SPDX-License-Identifier: MIT */

/* Declares an option with a capital letter. */

#define NAME   "option_bad_name"
#define OPTION .name = "Rate", .type = WEIR_OPTION_INT, .fallback = "1"
#include "table.h"

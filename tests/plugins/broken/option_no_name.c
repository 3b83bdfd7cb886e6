/* SPDX-License-Identifier: MIT */

/* Declares an option without a name. */

#define NAME   "option_no_name"
#define OPTION .type = WEIR_OPTION_INT, .fallback = "1"
#include "table.h"

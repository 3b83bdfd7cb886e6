/* SPDX-License-Identifier: MIT */

/* Declares a choice between nothing. */

#define NAME   "option_no_choices"
#define OPTION .name = "mode", .type = WEIR_OPTION_CHOICE, .fallback = ""
#include "table.h"

/* SPDX-License-Identifier: MIT */

/* Declares choices of a number. */

#define NAME   "option_stray_choices"
#define OPTION .name = "rate", .type = WEIR_OPTION_INT, .choices = "1|2"
#include "table.h"

/* SPDX-License-Identifier: MIT */

/* Declares an empty choice. */

#define NAME   "option_empty_choice"
#define OPTION .name = "mode", .type = WEIR_OPTION_CHOICE, .choices = "a||b"
#include "table.h"

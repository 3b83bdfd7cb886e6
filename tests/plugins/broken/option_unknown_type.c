/* SPDX-License-Identifier: MIT */

/* Declares an option of a type of the future. */

#define NAME "option_unknown_type"
#define OPTION \
    .name = "rate", .type = (enum weir_option_type)99, .fallback = "1"
#include "table.h"

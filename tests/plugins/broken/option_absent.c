/* SPDX-License-Identifier: MIT */

/* Announces options that are not there. */

#define NAME         "option_absent"
#define OPTION_COUNT 3
#include "table.h"

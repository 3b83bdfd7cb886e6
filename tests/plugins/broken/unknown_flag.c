/* SPDX-License-Identifier: MIT */

/* Has a flag of the future. */

#define NAME  "unknown_flag"
#define FLAGS 64
#include "table.h"

/* SPDX-License-Identifier: MIT */

/* Has a name with a blank. */

#define NAME "bad name"
#include "table.h"

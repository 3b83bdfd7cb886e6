/* SPDX-License-Identifier: MIT */

/* Has no name. */

#define NAME NULL
#include "table.h"

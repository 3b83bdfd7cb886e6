/* SPDX-License-Identifier: MIT */

/* Claims a table of a gigabyte. */

#define SIZE (1u << 30)
#define NAME "size_huge"
#include "table.h"

/* SPDX-License-Identifier: MIT */

/* Claims a table that ends before its run function. */

#define SIZE offsetof(struct weir_plugin, run)
#define NAME "size_small"
#include "table.h"

/* SPDX-License-Identifier: MIT */

/* Claims a table that ends inside a pointer. */

#define SIZE (sizeof(struct weir_plugin) - 4)
#define NAME "size_odd"
#include "table.h"

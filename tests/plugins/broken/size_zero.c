/* SPDX-License-Identifier: MIT */

/* Forgot its size. */

#define SIZE 0
#define NAME "size_zero"
#include "table.h"

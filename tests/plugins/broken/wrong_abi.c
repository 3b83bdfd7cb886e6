/* SPDX-License-Identifier: MIT */

/* Built for an ABI of the future. */

#define ABI  7
#define NAME "wrong_abi"
#include "table.h"

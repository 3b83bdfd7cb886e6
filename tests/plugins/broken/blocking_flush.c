/* SPDX-License-Identifier: MIT */

/* Blocks, and wants to flush. */

static int flush(void *self)
{
    (void)self;
    return 0;
}

#define NAME  "blocking_flush"
#define FLAGS WEIR_PLUGIN_BLOCKING
#define FLUSH flush
#include "table.h"

/* SPDX-License-Identifier: MIT */

/* Claims a table of a gigabyte. */

#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = 1u << 30,
    .name = "size_huge",
    .run = run,
};

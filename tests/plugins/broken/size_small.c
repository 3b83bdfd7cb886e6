/* SPDX-License-Identifier: MIT */

/* Claims a table that ends before its run function. */

#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = offsetof(struct weir_plugin, run),
    .name = "size_small",
    .run = run,
};

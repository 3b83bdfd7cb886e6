/* SPDX-License-Identifier: MIT */

/* Has a flag of the future. */

#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "unknown_flag",
    .run = run,
    .flags = 64,
};

/* SPDX-License-Identifier: MIT */

/* Blocks, and wants to flush. */

#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

static int flush(void *self)
{
    (void)self;
    return 0;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "blocking_flush",
    .run = run,
    .flush = flush,
    .flags = WEIR_PLUGIN_BLOCKING,
};

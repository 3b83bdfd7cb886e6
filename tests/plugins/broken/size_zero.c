/* SPDX-License-Identifier: MIT */

/* Forgot its size. */

#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = 0,
    .name = "size_zero",
    .run = run,
};

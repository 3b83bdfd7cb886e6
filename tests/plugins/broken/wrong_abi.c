/* SPDX-License-Identifier: MIT */

/* Built for an ABI of the future. */

#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = 7,
    .size = sizeof(struct weir_plugin),
    .name = "wrong_abi",
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* Announces options that are not there. */

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
    .name = "option_absent",
    .option_count = 3,
    .option_size = sizeof(struct weir_option),
    .run = run,
};

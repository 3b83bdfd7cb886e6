/* SPDX-License-Identifier: MIT */

/* Declares an option with a flag of the future. */

#include <weir/plugin.h>

static const struct weir_option options[] = {
    {.name = "rate", .type = WEIR_OPTION_INT, .flags = 64},
};

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "option_bad_flag",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .run = run,
};

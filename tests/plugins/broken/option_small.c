/* SPDX-License-Identifier: MIT */

/* Claims declarations that are too small. */

#include <weir/plugin.h>

static const struct weir_option options[] = {
    {.name = "rate", .type = WEIR_OPTION_INT, .fallback = "1"},
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
    .name = "option_small",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = 8,
    .run = run,
};

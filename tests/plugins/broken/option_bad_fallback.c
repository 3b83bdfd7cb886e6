/* SPDX-License-Identifier: MIT */

/* Declares a fallback out of its own bounds. */

#include <weir/plugin.h>

static const struct weir_option options[] = {
    {.name = "rate",
     .type = WEIR_OPTION_INT,
     .fallback = "0",
     .min = 1,
     .max = 9},
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
    .name = "option_bad_fallback",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* Declares an option of a type of the future. */

#include <weir/plugin.h>

static const struct weir_option options[] = {
    {.name = "rate", .type = (enum weir_option_type)99, .fallback = "1"},
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
    .name = "option_unknown_type",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* For tests: blocks for a while, or not at all, and is done. */

#include <stdlib.h>
#include <time.h>
#include <weir/plugin.h>

static const struct weir_option options[] = {
    {.name = "for",
     .type = WEIR_OPTION_DURATION,
     .fallback = "0ms",
     .help = "How long it blocks."},
};

static int open_blocking(const struct weir_open *open_args, void **ret_self)
{
    int64_t *ms = malloc(sizeof(*ms));

    if (ms == NULL)
        return WEIR_ENOMEM;
    *ms = open_args->values[0].number;
    *ret_self = ms;
    return 0;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    const int64_t *ms = self;
    struct timespec pause = {*ms / 1000, *ms % 1000 * 1000000};

    (void)job;
    if (*ms > 0)
        (void)nanosleep(&pause, NULL);
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "blocking",
    .summary = "Blocks, for tests.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_blocking,
    .run = run,
    .close = free,
    .flags = WEIR_PLUGIN_BLOCKING,
};

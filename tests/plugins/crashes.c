/* SPDX-License-Identifier: MIT */

/* Ends the process from its open or its handler, as an option says. */

#include <signal.h>
#include <string.h>
#include <weir/plugin.h>

static const struct weir_option options[] = {
    {
        .name = "where",
        .type = WEIR_OPTION_CHOICE,
        .fallback = "run",
        .choices = "open|run",
    },
};

static int open_crash(const struct weir_open *open, void **ret_self)
{
    (void)ret_self;
    if (strcmp(open->values[0].text, "open") == 0)
        (void)raise(SIGKILL);
    return 0;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    (void)raise(SIGKILL);
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "crashes",
    .options = options,
    .option_count = 1,
    .option_size = sizeof(struct weir_option),
    .open = open_crash,
    .run = run,
};

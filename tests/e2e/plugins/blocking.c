/* SPDX-License-Identifier: MIT */

/* For tests: blocks for a while, until a file exists, or not at all; counts,
 * and is done. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <weir/plugin.h>

static const struct weir_option options[] = {
    {.name = "for",
     .type = WEIR_OPTION_DURATION,
     .fallback = "0ms",
     .help = "How long it blocks."},
    {.name = "counters",
     .type = WEIR_OPTION_INT,
     .fallback = "0",
     .min = 0,
     .max = 100,
     .help = "How many counters it has, each of them 1 a run."},
    {.name = "until",
     .type = WEIR_OPTION_TEXT,
     .fallback = "",
     .help = "File for which it waits as well."},
};

struct blocking {
    int64_t ms;
    int64_t counters;
    char until[200]; /* "": none */
};

static int open_blocking(const struct weir_open *open_args, void **ret_self)
{
    struct blocking *blocking = malloc(sizeof(*blocking));

    if (blocking == NULL)
        return WEIR_ENOMEM;
    blocking->ms = open_args->values[0].number;
    blocking->counters = open_args->values[1].number;
    (void)snprintf(blocking->until, sizeof(blocking->until), "%s",
                   open_args->values[2].text);
    *ret_self = blocking;
    return 0;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    const struct blocking *blocking = self;
    int64_t ms = blocking->ms;
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    char name[40];

    if (ms > 0)
        (void)nanosleep(&pause, NULL);
    while (blocking->until[0] != '\0' && access(blocking->until, F_OK) != 0)
        (void)nanosleep(&(struct timespec){0, 10000000}, NULL);
    for (int64_t i = 0; i < blocking->counters; i++) {
        (void)snprintf(name, sizeof(name), "counter_with_a_long_name_%02d",
                       (int)i); /* fits */
        weir_job_count(job, name, 1);
    }
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

/* SPDX-License-Identifier: MIT */

/* A plugin with an option of each type that tells what it was told. */

#include "good.h"

#include <stdio.h>
#include <weir/plugin.h>

static const struct weir_option options[GOOD_OPTIONS] = {
    {.name = "text", .type = WEIR_OPTION_TEXT},
    {.name = "number",
     .type = WEIR_OPTION_INT,
     .fallback = "3",
     .min = -5,
     .max = 5},
    {.name = "flag", .type = WEIR_OPTION_BOOL, .fallback = "no"},
    {.name = "wait",
     .type = WEIR_OPTION_DURATION,
     .fallback = "15s",
     .min = 1,
     .max = 3600000},
    {.name = "room", .type = WEIR_OPTION_SIZE, .fallback = "64KiB"},
    {.name = "mode",
     .type = WEIR_OPTION_CHOICE,
     .fallback = "slow",
     .choices = "fast|slow"},
};

static int open_good(const struct weir_open *open, void **ret_self)
{
    static struct good good;

    good.opens++;
    good.host = open->host;
    (void)snprintf(good.topic, sizeof(good.topic), "%s", open->topic);
    for (int i = 0; i < GOOD_OPTIONS; i++) {
        (void)snprintf(good.texts[i], sizeof(good.texts[i]), "%s",
                       open->values[i].text);
        good.numbers[i] = open->values[i].number;
    }
    weir_open_limit(open, GOOD_LIMIT);
    *ret_self = &good;
    return 0;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

static void close_good(void *self)
{
    struct good *good = self;

    good->closes++;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "good",
    .options = options,
    .option_count = GOOD_OPTIONS,
    .option_size = sizeof(struct weir_option),
    .open = open_good,
    .run = run,
    .close = close_good,
};

/* SPDX-License-Identifier: MIT */

/* Refuses to open: with a sentence, without one, with one that fills all of
 * the space, or with a code that is no error. */

#include <string.h>
#include <weir/plugin.h>

static const struct weir_option options[] = {
    {
        .name = "how",
        .type = WEIR_OPTION_CHOICE,
        .choices = "sentence|silently|at_length|positive",
    },
};

static int refuse(const struct weir_open *open, void **ret_self)
{
    static const char sentence[] = "the moon is not full";
    const char *how = open->values[0].text;

    *ret_self = open->error;
    if (strcmp(how, "silently") == 0)
        return WEIR_ESYSTEM;
    if (strcmp(how, "positive") == 0)
        return 3;
    if (strcmp(how, "at_length") == 0)
        memset(open->error, 'x', open->error_cap);
    else
        memcpy(open->error, sentence, sizeof(sentence));
    return WEIR_ECONN;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "open_fails",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = refuse,
    .run = run,
};

/* SPDX-License-Identifier: MIT */

/* A plugin of the future: its tables have fields that this weir does not
 * know. It must work all the same. */

#include <weir/plugin.h>

struct grown_option {
    struct weir_option known;
    const char *unknown;
};

struct grown {
    struct weir_plugin known;
    const char *unknown[3];
};

extern WEIR_API const struct grown weir_plugin_1;

static const struct grown_option options[] = {
    {{.name = "one", .type = WEIR_OPTION_INT, .fallback = "1"}, "?"},
    {{.name = "two", .type = WEIR_OPTION_INT, .fallback = "2"}, "?"},
};

static int open_grown(const struct weir_open *open, void **ret_self)
{
    *ret_self = NULL;
    return open->values[1].number == 2 ? 0 : WEIR_EINVAL;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

const struct grown weir_plugin_1 = {
    .known =
        {
            .abi = WEIR_PLUGIN_ABI,
            .size = sizeof(struct grown),
            .name = "grown",
            .options = (const void *)options,
            .option_count = 2,
            .option_size = sizeof(struct grown_option),
            .open = open_grown,
            .run = run,
        },
    .unknown = {"?", "?", "?"},
};

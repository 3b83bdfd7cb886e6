/* SPDX-License-Identifier: MIT */

/* Calls a function that nobody has; with lazy binding it would load and die at
 * its first job. */

#include <weir/plugin.h>

int nobody_has_this(void);

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return nobody_has_this() == 0 ? WEIR_DONE : WEIR_FAIL;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "undefined_symbol",
    .run = run,
};

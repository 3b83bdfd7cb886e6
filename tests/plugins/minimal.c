/* SPDX-License-Identifier: MIT */

/* A plugin with what is required and nothing else, as if built when the table
 * ended behind `run`: what lies there must not be taken for more fields. */

#include <stdlib.h>
#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)job;
    return self == NULL ? WEIR_DONE : WEIR_FAIL;
}

static void beyond(void *self)
{
    (void)self;
    abort();
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = offsetof(struct weir_plugin, run) + sizeof(weir_run_fn),
    .name = "minimal",
    .run = run,
    .close = beyond,
};

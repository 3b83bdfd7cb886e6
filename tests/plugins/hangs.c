/* SPDX-License-Identifier: MIT */

/* A handler that never returns. */

#include <poll.h>
#include <weir/plugin.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    while (poll(NULL, 0, -1) != 0)
        ;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "hangs",
    .run = run,
};

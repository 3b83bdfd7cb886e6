/* SPDX-License-Identifier: MIT */

/* Has nothing to run. */

#include <weir/plugin.h>

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "no_run",
};

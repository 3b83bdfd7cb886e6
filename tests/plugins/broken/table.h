/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_TABLE_H
#define WEIR_TEST_TABLE_H

/* A plugin that is as it should be, but for what the file that includes this
 * has defined before. */

#include <weir/plugin.h>

#ifndef ABI
#    define ABI WEIR_PLUGIN_ABI
#endif
#ifndef SIZE
#    define SIZE sizeof(struct weir_plugin)
#endif
#ifndef NAME
#    define NAME "broken"
#endif
#ifndef FLAGS
#    define FLAGS 0
#endif
#ifndef FLUSH
#    define FLUSH NULL
#endif
#ifndef OPTION_SIZE
#    define OPTION_SIZE sizeof(struct weir_option)
#endif
#ifdef OPTION
static const struct weir_option options[] = {{OPTION}};
#    define OPTION_LIST  options
#    define OPTION_COUNT sizeof(options) / sizeof(options[0])
#else
#    define OPTION_LIST NULL
#endif
#ifndef OPTION_COUNT
#    define OPTION_COUNT 0
#endif

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    (void)job;
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = ABI,
    .size = SIZE,
    .name = NAME,
    .options = OPTION_LIST,
    .option_count = OPTION_COUNT,
    .option_size = OPTION_SIZE,
    .run = run,
    .flush = FLUSH,
    .flags = FLAGS,
};

#endif

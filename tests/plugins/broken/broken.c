/* SPDX-License-Identifier: MIT */

/* A plugin that is as it should be, but for one thing: which it is the build
 * says with a macro. */

#include <weir/plugin.h>

#if defined(IS_BAD_NAME) /* has a name with a blank */
#    define NAME "bad name"
#elif defined(IS_BLOCKING_FLUSH) /* blocks, and wants to flush */
#    define FLAGS WEIR_PLUGIN_BLOCKING
#    define FLUSH flush
#elif defined(IS_NO_NAME) /* has no name */
#    define NAME NULL
#elif defined(IS_OPTION_ABSENT) /* announces options that are not there */
#    define OPTION_COUNT 3
#elif defined(IS_OPTION_BAD_BOUNDS) /* declares bounds the wrong way round */
#    define OPTION .name = "rate", .type = WEIR_OPTION_INT, .min = 9, .max = 1
#elif defined(IS_OPTION_BAD_FALLBACK)
/* Declares a fallback out of its own bounds. */
#    define OPTION                                                          \
        .name = "rate", .type = WEIR_OPTION_INT, .fallback = "0", .min = 1, \
        .max = 9
#elif defined(IS_OPTION_BAD_FLAG)
/* Declares an option with a flag of the future. */
#    define OPTION .name = "rate", .type = WEIR_OPTION_INT, .flags = 64
#elif defined(IS_OPTION_BAD_NAME) /* declares an option with a capital letter */
#    define OPTION .name = "Rate", .type = WEIR_OPTION_INT, .fallback = "1"
#elif defined(IS_OPTION_EMPTY_CHOICE) /* declares an empty choice */
#    define OPTION .name = "mode", .type = WEIR_OPTION_CHOICE, .choices = "a||b"
#elif defined(IS_OPTION_NO_CHOICES) /* declares a choice between nothing */
#    define OPTION .name = "mode", .type = WEIR_OPTION_CHOICE, .fallback = ""
#elif defined(IS_OPTION_NO_NAME) /* declares an option without a name */
#    define OPTION .type = WEIR_OPTION_INT, .fallback = "1"
#elif defined(IS_OPTION_SMALL)
/* Says that each of its option declarations has 8 bytes, fewer than any host
 * knows. */
#    define OPTION      .name = "rate", .type = WEIR_OPTION_INT, .fallback = "1"
#    define OPTION_SIZE 8
#elif defined(IS_OPTION_STRAY_CHOICES) /* declares choices of a number */
#    define OPTION .name = "rate", .type = WEIR_OPTION_INT, .choices = "1|2"
#elif defined(IS_OPTION_TWICE) /* declares an option twice */
#    define OPTION .name = "rate", .type = WEIR_OPTION_INT, .fallback = "1"
#    define MORE                            \
        , {.name = "mode", .fallback = ""}, \
        {                                   \
            OPTION                          \
        }
#elif defined(IS_OPTION_UNKNOWN_TYPE)
/* Declares an option of a type of the future. */
#    define OPTION \
        .name = "rate", .type = (enum weir_option_type)99, .fallback = "1"
#elif defined(IS_SIZE_HUGE) /* claims a table of a gigabyte */
#    define SIZE (1u << 30)
#elif defined(IS_SIZE_ODD) /* claims a table that ends inside a pointer */
#    define SIZE (sizeof(struct weir_plugin) - 4)
#elif defined(IS_SIZE_SMALL)
/* Claims a table that ends before its run function. */
#    define SIZE offsetof(struct weir_plugin, run)
#elif defined(IS_SIZE_ZERO) /* forgot its size */
#    define SIZE 0
#elif defined(IS_UNKNOWN_FLAG) /* has a flag of the future */
#    define FLAGS 64
#elif defined(IS_WRONG_ABI) /* built for an ABI of the future */
#    define ABI 7
#endif

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
#ifndef OPTION_SIZE
#    define OPTION_SIZE sizeof(struct weir_option)
#endif
#ifndef MORE
#    define MORE
#endif
#ifdef OPTION
static const struct weir_option options[] = {{OPTION} MORE};
#    define OPTION_LIST  options
#    define OPTION_COUNT sizeof(options) / sizeof(options[0])
#else
#    define OPTION_LIST NULL
#endif
#ifndef OPTION_COUNT
#    define OPTION_COUNT 0
#endif

#ifdef FLUSH
static int flush(void *self)
{
    (void)self;
    return 0;
}
#else
#    define FLUSH NULL
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

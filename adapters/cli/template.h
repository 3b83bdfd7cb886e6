/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_TEMPLATE_H
#define WEIR_CLI_TEMPLATE_H

/* The files of adapters/cli/template/, embedded at build time. */

#include <stddef.h>

struct weir__template {
    const char *name; /* "plugin.c.in"; NULL ends the table */
    const char *text; /* @NAME@ and @PREFIX@ are to be replaced */
    size_t len;       /* without the NUL at the end of `text` */
};

extern const struct weir__template weir__templates[];

#endif

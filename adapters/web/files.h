/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_FILES_H
#define WEIR_WEB_FILES_H

/* The files of the page, embedded at build time. */

#include <stddef.h>

struct weir__web_file {
    const char *name;  /* "index.html"; NULL ends the table */
    const char *bytes; /* followed by a NUL */
    size_t len;
};

extern const struct weir__web_file weir__web_files[];

#endif

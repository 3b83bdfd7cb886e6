/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_PLACE_H
#define WEIR_CONFIG_PLACE_H

/* Where in a configuration file something stands, and the one form in which
 * an error says so. */

#include <weir/base.h>

struct weir__config_place {
    const char *path;       /* borrowed */
    int line;               /* from 1; 0: the file as a whole */
    struct weir_error *err; /* may be NULL */
};

/* Write "PATH:LINE: sentence", or "PATH: sentence", and return `code`. */
WEIR_PRINTF(3, 4)
int weir__config_fail(const struct weir__config_place *place, int code,
                      const char *format, ...);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONFIG_SOURCE_H
#define WEIR_CONFIG_SOURCE_H

/* The text of a configuration file, made safe for libConfuse. Its scanner
 * (3.3) miscounts lines at every comment, refuses comments inside of lists,
 * drops bytes that it does not know, puts environment variables into strings,
 * takes a missing } at the end for granted, and after a string without its
 * closing quote stays inside of that string in the next file that it reads.
 * So comments are blanked out here, and the rest is refused with its line. */

#include "adapters/config/place.h"
#include "core/buf.h"

enum { WEIR__CONFIG_SOURCE_MAX = 1024 * 1024 };

/* Read the file that `place` names into an empty `buf` and make it safe. What
 * is left are words of [A-Za-z0-9._:/%@~-], strings in single or double
 * quotes, the signs { } = , and blanks; it ends with a newline. Errors as
 * weir__config_read; `buf` is then to be freed all the same. */
int weir__config_source_read(const struct weir__config_place *place,
                             struct weir__buf *buf);

#endif

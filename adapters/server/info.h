/* SPDX-License-Identifier: MIT */
#ifndef WEIR_SERVER_INFO_H
#define WEIR_SERVER_INFO_H

/* Reading what a server answers to INFO: lines "name:value". */

#include <weir/base.h>

/* The value of a field, up to the end of its line; without bytes when there is
 * no such field. */
struct weir_slice weir__info_field(const char *info, const char *name);

/* The same as a number; 0 when there is none. */
uint64_t weir__info_number(const char *info, const char *name);

/* The field is there and says this. */
bool weir__info_is(const char *info, const char *name, const char *value);

#endif

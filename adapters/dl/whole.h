/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DL_WHOLE_H
#define WEIR_DL_WHOLE_H

/* What dlopen does not look for: files on which it would wait, and files that
 * end too early, whose missing pages end the process (SIGBUS) later. */

#include <weir/base.h>

/* WEIR_ENOTFOUND with a sentence that names the file. What cannot be opened or
 * is no shared object is left to dlopen, which says why. */
int weir__whole_check(const char *path, struct weir_error *err);

#endif

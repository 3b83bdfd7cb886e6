/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DL_TRUST_H
#define WEIR_DL_TRUST_H

/* Loading a file runs it, so it is refused where everybody could have put it
 * there: a file or a folder that all users may write to. In a folder as /tmp,
 * where each may only replace what is his (sticky), the file must be this
 * user's or root's. Whoever names a plugin trusts its owner and its group. */

#include <weir/base.h>

/* WEIR_EINVAL with a sentence that names the file. What is not there is left to
 * dlopen. Looks at the name as given and, where that is a link, at the file's
 * own place. */
int weir__trust_check(const char *path, struct weir_error *err);

/* False for a folder that everybody may write to and that is not sticky: no
 * file in it is loaded. */
bool weir__trust_folder(const char *folder);

#endif

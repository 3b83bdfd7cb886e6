/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_GROUPS_H
#define WEIR_WEB_GROUPS_H

/* Which dead jobs died alike: of the same reason, with an error that differs in
 * its numbers alone; and which events are of the same group. Pure functions. */

#include <weir/weir.h>

enum { WEIR__GROUP_TEXT_CAP = 161, WEIR__KEY_CAP = 40 };

/* The error without what tells jobs apart: each number as '#', cut at 160
 * bytes. Returns its length. */
size_t weir__group_text(struct weir_slice error,
                        char buf[WEIR__GROUP_TEXT_CAP]);

/* What all jobs of a group have in common, and those of others do not. */
void weir__group_key(const struct weir_job_info *job, char buf[WEIR__KEY_CAP]);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_TARGET_H
#define WEIR_HTTP_TARGET_H

/* The target of a request, "/api/topics/a%2Fb?limit=5", in decoded parts. Pure
 * but for its memory; fed with what anybody sends. */

#include <weir/base.h>

enum { WEIR__TARGET_PARTS = 12, WEIR__TARGET_FIELDS = 24 };

/* Strings are inside `bytes`. A zeroed struct is "/". */
struct weir__target {
    char *bytes; /* owned */
    const char *part[WEIR__TARGET_PARTS];
    size_t part_count; /* a "/" at the end makes no part of its own */
    struct {
        const char *name, *value;
    } field[WEIR__TARGET_FIELDS];
    size_t field_count;
};

/* WEIR_EINVAL: not beginning with "/", an escape that is none, an escaped NUL,
 * too many parts or fields; WEIR_ENOMEM. */
int weir__target_parse(const char *text, struct weir__target *ret_target);

void weir__target_fini(struct weir__target *target);

/* How many parts `path` ("/a/b", or "/a/" for all below as well) has when the
 * target fits; -1: not. */
int weir__target_fits(const struct weir__target *target, const char *path);

/* NULL: not given; "" for a name without a value. */
const char *weir__target_field(const struct weir__target *target,
                               const char *name);

#endif

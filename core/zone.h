/* SPDX-License-Identifier: MIT */
#ifndef WEIR_ZONE_H
#define WEIR_ZONE_H

/* A time zone as its file tells (TZif, RFC 8536): which offset from UTC holds
 * when. Pure functions of bytes that somebody else has read; the zone of the
 * process plays no part. Times are seconds since 1970, in UTC or, called local,
 * with the offset added. */

#include <weir/base.h>

struct weir__zone;

enum { WEIR__ZONE_MAX = 64 }; /* bytes of a name */

/* WEIR_EINVAL with a sentence: the bytes are no such file, one of the first
 * version, or one that counts leap seconds. WEIR_ENOMEM. `err` may be NULL. */
int weir__zone_read(struct weir_slice bytes, struct weir__zone **ret_zone,
                    struct weir_error *err);
void weir__zone_free(struct weir__zone *zone); /* or NULL */

/* A name such as Europe/Berlin, of which a path can be made: letters, digits
 * and _ - + / without an empty part. WEIR_EINVAL with a sentence. */
int weir__zone_check(struct weir_slice name, struct weir_error *err);

/* The offset at `utc`, and when the next one begins; INT64_MAX: never. Where
 * `zone` is NULL it is UTC, as below. */
int64_t weir__zone_offset(const struct weir__zone *zone, int64_t utc,
                          int64_t *ret_until);

/* When the clocks of the zone show `local`: of two moments the first one, and
 * where they jump over `local` the moment of the jump. */
int64_t weir__zone_moment(const struct weir__zone *zone, int64_t local);

#endif

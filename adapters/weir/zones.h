/* SPDX-License-Identifier: MIT */
#ifndef WEIR_ZONES_H
#define WEIR_ZONES_H

/* Time zones from the system's files: those below TZDIR, else below
 * /usr/share/zoneinfo. Each is read once. The zone of the process itself plays
 * no part. */

#include "core/error.h"
#include "core/reactor.h"
#include "core/zone.h"

struct weir__zones {
    struct weir__zone_source port; /* first */
    struct weir__known_zone *first;
};

/* Zeroed but for this there are none yet. */
void weir__zones_init(struct weir__zones *zones);
void weir__zones_fini(struct weir__zones *zones);

/* WEIR_EINVAL with a sentence: the name is none, or not known here.
 * WEIR_ENOMEM. BLOCKS on the file. */
int weir__zone_load(const char *name, struct weir__zone **ret_zone,
                    struct weir_error *err);

#endif

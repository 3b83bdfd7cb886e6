/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_AWAY_H
#define WEIR_DELAY_AWAY_H

/* What a call of the settle script says of jobs that runs add to other topics:
 * the draft's parcels behind those of burials, in the order of their topics. */

#include "adapters/redis/delay/draft.h"

/* The topics' keys that come behind all packs: how many, and writing them. */
size_t weir__away_key_count(const struct weir__draft *draft);
void weir__away_write_keys(struct weir__buf *buf,
                           const struct weir__draft *draft);

/* The script's last three arguments; `pack_key` is the key of the first parcel
 * of the draft. */
void weir__away_write(struct weir__buf *buf, const struct weir__draft *draft,
                      uint32_t pack_key);

#endif

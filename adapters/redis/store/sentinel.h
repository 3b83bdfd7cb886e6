/* SPDX-License-Identifier: MIT */
#ifndef WEIR_STORE_SENTINEL_H
#define WEIR_STORE_SENTINEL_H

/* Which server is the primary: asked of sentinels, and heard from them, for all
 * connections of a store.
 *
 * They are asked in turn, the one that answered last time first, whenever the
 * store's first connection connects, and every 5 s. The other connections are
 * told where to go once the first one stands there, so an outage costs no more
 * commands than one connection sends. All sentinels are listened to, those of
 * the address and those that these know: when one names a new primary, all
 * connections to the old one are left at once, for an old primary that lives on
 * takes writes for 10 s more, and every one of them is lost. */

#include "adapters/redis/conn/conn.h"

struct weir__sentinels;

/* Of `like` count the loop, the address, which is one of sentinels, the name,
 * seed, log and depth. Asks nobody yet. WEIR_ENOMEM. */
int weir__sentinels_open(const struct weir__conn_options *like,
                         struct weir__sentinels **ret_sentinels);

/* All connections that it found servers for are closed. NULL is fine. */
void weir__sentinels_close(struct weir__sentinels *sentinels);

/* For the options of connections; the first one of them is asked for first, see
 * above. Valid until weir__sentinels_close. NULL for NULL. */
const struct weir__locator *
weir__sentinels_locator(const struct weir__sentinels *sentinels);

/* The first connection stands. NULL is fine. */
void weir__sentinels_confirm(struct weir__sentinels *sentinels);

#endif

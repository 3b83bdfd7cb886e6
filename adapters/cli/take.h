/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_TAKE_H
#define WEIR_CLI_TAKE_H

/* The commands take, settle and renew share these. */

#include "adapters/cli/client.h"
#include "adapters/cli/options.h"

enum { WEIR__TAKE_LEASE_MS = 60000 }; /* unless --lease says another */

extern const struct weir__bounds weir__take_lease_bounds;

/* Connect, and see that the topic is of kind delay. WEIR__EXIT_NONE: the client
 * is open and its kind is known; else a sentence was printed, beginning with
 * `doing`, and it is closed. */
enum weir__exit weir__take_open(struct weir__client *client,
                                const struct weir__cli *cli, const char *topic,
                                const char *doing);

#endif

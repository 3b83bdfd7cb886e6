/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_GATE_H
#define WEIR_CLI_GATE_H

/* What weir run asks of a server before it serves. */

#include "adapters/cli/client.h"
#include "core/error.h"

/* Look at the server that `client` is connected to. One that evicts is refused,
 * said, unless `may_evict`, and so is one that lets us run no script. An old
 * one, a replica, one that does not keep what it has, one that does not tell,
 * and missing rights are named in the log.
 * WEIR__EXIT_NONE, or what to exit with. BLOCKS. */
enum weir__exit weir__gate(const struct weir__client *client, bool may_evict,
                           const struct weir__log *log);

#endif

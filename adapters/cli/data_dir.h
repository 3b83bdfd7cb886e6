/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_DATA_DIR_H
#define WEIR_CLI_DATA_DIR_H

/* Where the private server lives. */

#include "adapters/cli/cli.h"
#include "adapters/server/server.h"

/* The data directory: --data, else WEIR_DATA, else $XDG_STATE_HOME/weir, else
 * ~/.local/state/weir. As weir__server_locate, with the sentence printed. */
int weir__data_dir_make(const struct weir__cli *cli,
                        struct weir__server *ret_server);

/* The same for one that may be missing: then WEIR_ENOTFOUND, nothing printed,
 * and `ret_server` filled with the name as given and no socket. */
int weir__data_dir_find(const struct weir__cli *cli,
                        struct weir__server *ret_server);

#endif

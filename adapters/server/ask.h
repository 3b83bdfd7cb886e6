/* SPDX-License-Identifier: MIT */
#ifndef WEIR_SERVER_ASK_H
#define WEIR_SERVER_ASK_H

/* One synchronous question to the private server over its socket. */

#include "adapters/server/server.h"

enum weir__server_state {
    WEIR__SERVER_ABSENT,  /* nobody listens on the socket */
    WEIR__SERVER_FOREIGN, /* neither this user nor root listens on it */
    WEIR__SERVER_SILENT,  /* somebody does, but does not answer in time */
    WEIR__SERVER_LOADING, /* answers, but reads its data still */
    WEIR__SERVER_READY
};

/* `*ret_info` is filled when the server is loading or ready. BLOCKS for at most
 * 2 s. */
enum weir__server_state weir__server_ask(const char *socket,
                                         struct weir__server_info *ret_info);

/* Tell it to write its append-only file anew, which it does in the background;
 * false where it does not. BLOCKS for at most 2 s. */
bool weir__server_ask_rewrite(const char *socket);

/* Tell it to save and go. WEIR_ESERVER with what it answered when it refuses;
 * WEIR_ECONN when it cannot be reached. BLOCKS while it saves. */
int weir__server_ask_shutdown(const char *socket, struct weir_error *err);

#endif

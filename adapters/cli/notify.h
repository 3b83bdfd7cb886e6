/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_NOTIFY_H
#define WEIR_CLI_NOTIFY_H

/* Telling systemd how a service is: datagrams to the socket that NOTIFY_SOCKET
 * names. Where there is none, nothing is sent. */

#include "adapters/cli/cli.h"

#include <ev.h>

struct weir__notify {
    const char *socket;   /* NULL: nobody to tell */
    struct ev_loop *loop; /* kept */
    struct ev_timer watchdog;
};

/* It is up: say so, and that the loop turns, twice in each watchdog time
 * (WATCHDOG_USEC, where WATCHDOG_PID is this process or not set). */
void weir__notify_ready(struct weir__notify *notify, struct ev_loop *loop);

/* It begins to read its configuration again; weir__notify_reloaded follows. */
void weir__notify_reloading(const struct weir__notify *notify);
void weir__notify_reloaded(const struct weir__notify *notify);

/* It begins to end; the loop is watched further. A zeroed struct is fine. */
void weir__notify_stopping(const struct weir__notify *notify);

/* Before the loop goes; a zeroed struct is fine. */
void weir__notify_close(struct weir__notify *notify);

#endif

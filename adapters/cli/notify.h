/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_NOTIFY_H
#define WEIR_CLI_NOTIFY_H

/* Telling who started the worker how it is: systemd, by datagrams to the socket
 * that NOTIFY_SOCKET names, or the parent of a fleet, by a byte each. Where
 * neither is, nothing is sent. */

#include "adapters/cli/cli.h"

#include <ev.h>

/* What a parent reads. */
enum {
    WEIR__TOLD_READY = 'r',
    WEIR__TOLD_ALIVE = 'a',
    WEIR__TOLD_RELOADED = 'l', /* the file was read again and taken */
    WEIR__TOLD_REFUSED = 'n'   /* nothing was changed */
};

struct weir__notify {
    /* Filled by the owner of a fleet's worker. */
    int parent;    /* a pipe's end, which does not block; 0: none */
    double each_s; /* between two signs of life; 0: not wanted */

    /* Its own; zeroed at first. */
    struct ev_loop *loop; /* kept */
    struct ev_timer watchdog;
};

/* It is up: say so, and that the loop turns, twice in each watchdog time
 * (WATCHDOG_USEC, where WATCHDOG_PID is this process or not set). */
void weir__notify_ready(struct weir__notify *notify, struct ev_loop *loop);

/* It begins to read its configuration again; weir__notify_reloaded follows. */
void weir__notify_reloading(const struct weir__notify *notify);
void weir__notify_reloaded(const struct weir__notify *notify, bool is_changed);

/* It was told to, and will not. */
void weir__notify_not_reloading(const struct weir__notify *notify);

/* It begins to end; the loop is watched further. A zeroed struct is fine. */
void weir__notify_stopping(const struct weir__notify *notify);

/* Before the loop goes; a zeroed struct is fine. */
void weir__notify_close(struct weir__notify *notify);

/* What systemd alone is told; nothing without NOTIFY_SOCKET. */
void weir__notify_send(const char *text);
void weir__notify_send_reloading(void);

/* Seconds between two signs of life; 0: nobody asked this process for them. */
double weir__notify_watchdog_s(void);

#endif

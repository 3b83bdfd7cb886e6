/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_SIGNALS_H
#define WEIR_CLI_SIGNALS_H

/* The signals that stop a worker: SIGTERM and SIGINT. The loop hears of the
 * first two; the third ends the process from whatever it does, exit 1: a
 * handler without an end holds the loop, and the loop would hear of nothing.
 *
 * A signal within 100 ms of one that counted is the same one: timeout(1), npm
 * and init programs pass on what the process group got already. SIGUSR1 and
 * SIGUSR2 do nothing. SIGHUP is not counted: the loop hears of it, once of
 * several. It stays ignored where it was at the start: nohup(1). */

#include <ev.h>
#include <stdbool.h>

enum { WEIR__SIGNALS_SAME_MS = 100 };

/* `number` is the signal; called from the loop, once for each. */
typedef void (*weir__signal_fn)(int number, void *arg);

/* A process has one set, so there is no object. `fn` and `arg` are kept until
 * the close. Signals that come behind that change nothing, but for a third. */
void weir__signals_open(struct ev_loop *loop, weir__signal_fn fn, void *arg);
void weir__signals_close(void);

/* Whether there is a terminal now; a part of the open. */
void weir__signals_note_terminal(void);

/* There was a terminal then, and it is gone: a SIGHUP says so. */
bool weir__signals_lost_terminal(void);

/* "SIGTERM". */
const char *weir__signal_name(int number);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LISTEN_H
#define WEIR_TEST_LISTEN_H

/* Listens at the server of tests/sim/server, turns what the scripts are asked
 * into calls of the model (topic.h), and judges what they answer. It knows how
 * calls are written, and which job lies where; the model does not. */

#include <stdint.h>

#include "tests/sim/server/server.h"

struct listener;

/* Hears all commands from now on; the server has no other watch. `only` is the
 * name of the one topic that is judged, NULL: all are. It is kept. */
struct listener *listen_open(struct server *server, const char *only);
void listen_close(struct listener *listener);

/* A script is known by another SHA-1, too: its text was changed for a test. */
struct weir__script;
void listen_alias(struct listener *listener, const char *sha1,
                  const struct weir__script *script);

/* Looks whether each job of the model is where it belongs on the server, and
 * nothing else is. */
void listen_walk(struct listener *listener);

/* The first problem of all topics, "" if none was found. */
const char *listen_problem(const struct listener *listener);

/* Calls that were judged. */
uint64_t listen_calls(const struct listener *listener);

#endif

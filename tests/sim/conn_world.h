/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_CONN_WORLD_H
#define WEIR_TEST_CONN_WORLD_H

/* A world of one real connection (adapters/redis/conn, libev, hiredis) that
 * sends CONN_COMMANDS commands at random times to a scripted server, all bytes
 * in pieces. */

#include "tests/sim/sim.h"

enum { CONN_COMMANDS = 60 };

extern struct conn_world {
    int sent, readies, losses;
    int executed;               /* by the server */
    int answers[CONN_COMMANDS]; /* to each command */
    int falls;                  /* answers that were not above the last */
} conn_world;

/* Runs it to its end; returns the world's hash. With `cuts`, all connections
 * are cut and stalled again and again. `host` is an IPv4 address, 10.0.0.1, or
 * its name redis.example. */
uint64_t conn_world_run(uint64_t seed, bool cuts, const char *host);

#endif

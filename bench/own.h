/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_OWN_H
#define WEIR_BENCH_OWN_H

/* Servers of our own: redis-server processes with their data in one directory,
 * gone when we are, however we end. */

#include "bench/server.h"

/* Start as many as the options say and wait until each answers; fills in the
 * url, of several servers that of all. Those of a cluster know nothing of each
 * other yet. Errors as bench_server_start; bench_own_stop ends what was begun.
 * BLOCKS. */
int bench_own_start(struct bench_server *server,
                    const struct bench_server_options *options,
                    struct weir_error *err);

/* End them and remove the directory. */
void bench_own_stop(struct bench_server *server);

#endif

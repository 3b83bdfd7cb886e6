/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_FLOOR_H
#define WEIR_BENCH_FLOOR_H

/* What the server itself does in a second: plain commands through one
 * connection, a batch of them in each write, several batches in flight. */

#include "bench/server.h"

/* In this order: a pop finds what the push before it left. */
enum bench_floor_op {
    BENCH_FLOOR_PING,
    BENCH_FLOOR_LPUSH,
    BENCH_FLOOR_LPOP,
    BENCH_FLOOR_RPUSH_MANY, /* a batch in one command */
    BENCH_FLOOR_LPOP_MANY,
    BENCH_FLOOR_XADD,
    BENCH_FLOOR_EVALSHA,
    BENCH_FLOOR_OPS
};
extern const char *const bench_floor_names[BENCH_FLOOR_OPS];

struct bench_floor {
    enum bench_floor_op op;
    int64_t count, payload_bytes, batch; /* elements */
};

/* Elements a second, and us of server CPU for each. */
int bench_floor_run(struct bench_server *server,
                    const struct bench_floor *floor, double *ret_per_s,
                    double *ret_server_us, struct weir_error *err);

#endif

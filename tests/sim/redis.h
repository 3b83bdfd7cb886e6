/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_REDIS_H
#define WEIR_TEST_REDIS_H

/* The server of server/server.h, in the world's network and on its time. */

#include "tests/sim/server/server.h"
#include "tests/sim/sim.h"

struct sim_redis {
    struct server *server;
    struct sim_port *port;
    int64_t ahead_us; /* its clock, before that of the world; may change */
    bool is_waking;   /* a look at clients that wait is planned */
};

/* Listens at the address. Until the world ends; then sim_redis_close. */
void sim_redis_open(struct sim_redis *redis, const char *address);

/* Its clock, in us since 1970. */
int64_t sim_redis_now_us(const struct sim_redis *redis);

/* After sim_close. */
void sim_redis_close(struct sim_redis *redis);

#endif

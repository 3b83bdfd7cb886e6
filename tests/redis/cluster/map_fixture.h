/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_MAP_FIXTURE_H
#define WEIR_TEST_MAP_FIXTURE_H

/* Maps of a cluster, made of answers as they are on the wire. */

#include "adapters/redis/cluster/map.h"

#define ID_A   "$40\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
#define ID_B   "$40\r\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n"
#define A_7000 "*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n" ID_A
#define B_7001 "*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n" ID_B

extern const struct weir__redis_host map_asked; /* seed.example:7000 */

/* Released with freeReplyObject. */
struct redisReply *map_parse(const char *resp);

/* Read an answer; what came of it is checked. */
int map_read(const char *resp, struct weir__cluster_map *known,
             struct weir__cluster_map **ret_map, struct weir_error *err);

/* The same of one that is right. */
struct weir__cluster_map *map_of(const char *resp);

/* The slot has this node. */
void map_expect_at(const struct weir__cluster_map *map, uint16_t slot,
                   const char *host, int port);

/* An answer of `count` ranges of a slot each, of `nodes` nodes in turn: a:1 is
 * the first. Released with free. */
char *map_many_ranges(size_t count, size_t nodes);

#endif

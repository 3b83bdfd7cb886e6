/* SPDX-License-Identifier: MIT */
#include "tests/redis/cluster/map_fixture.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

const struct weir__redis_host map_asked = {"seed.example", 7000};

redisReply *map_parse(const char *resp)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    (void)redisReaderFeed(reader, resp, strlen(resp));
    (void)redisReaderGetReply(reader, &reply);
    redisReaderFree(reader);
    EXPECT_TRUE(reply != NULL); /* else the test is wrong */
    return reply;
}

int map_read(const char *resp, struct weir__cluster_map *known,
             struct weir__cluster_map **ret_map, struct weir_error *err)
{
    redisReply *reply = map_parse(resp);
    int rc = weir__cluster_map_read(reply, &map_asked, known, ret_map, err);

    freeReplyObject(reply);
    if (rc == WEIR_OK)
        weir__cluster_map_check(*ret_map);
    return rc;
}

struct weir__cluster_map *map_of(const char *resp)
{
    struct weir__cluster_map *map;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_OK, map_read(resp, NULL, &map, &err));
    return map;
}

void map_expect_at(const struct weir__cluster_map *map, uint16_t slot,
                   const char *host, int port)
{
    const struct weir__cluster_node *node = weir__cluster_map_find(map, slot);

    EXPECT_TRUE(node != NULL);
    EXPECT_STR(host, node->host.name);
    EXPECT_INT(port, node->host.port);
}

char *map_many_ranges(size_t count, size_t nodes)
{
    char *resp = malloc(count * 96 + 32);
    size_t used;

    EXPECT_TRUE(resp != NULL);
    used = (size_t)snprintf(resp, 32, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(resp + used, 96,
                                 "*3\r\n:%zu\r\n:%zu\r\n*2\r\n$1\r\na\r\n"
                                 ":%zu\r\n",
                                 i, i, 1 + i % nodes);
    return resp;
}

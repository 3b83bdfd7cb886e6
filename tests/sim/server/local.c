/* SPDX-License-Identifier: MIT */
#include "tests/sim/server/local.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "adapters/redis/resp.h"
#include "tests/sim/server/server.h"
#include "tests/sim/server/store.h"

struct local {
    struct server_client *client;
    redisReader *reader;
};

static void take_bytes(void *arg, const char *bytes, size_t len)
{
    struct local *local = arg;

    if (redisReaderFeed(local->reader, bytes, len) != REDIS_OK)
        server_fail("no memory for an answer of %zu bytes", len);
}

struct local *local_open(struct server *server)
{
    struct local *local = malloc(sizeof(*local));

    if (local == NULL)
        server_fail("no memory for a client");
    local->reader = redisReaderCreate();
    if (local->reader == NULL)
        server_fail("no memory for a client");
    local->client = server_connect(server, take_bytes, local);
    return local;
}

void local_close(struct local *local)
{
    server_disconnect(local->client);
    redisReaderFree(local->reader);
    free(local);
}

void local_give(struct local *local, const void *bytes, size_t len)
{
    if (!server_feed(local->client, bytes, len))
        server_fail("a command is broken");
}

void local_say(struct local *local, const char *const *words)
{
    struct weir__buf bytes = {0};

    weir__resp_words(&bytes, words);
    local_give(local, bytes.ptr, bytes.len);
    weir__buf_fini(&bytes);
}

struct redisReply *local_take(struct local *local)
{
    void *reply = NULL;

    if (redisReaderGetReply(local->reader, &reply) != REDIS_OK)
        server_fail("an answer is broken: %s", local->reader->errstr);
    return reply;
}
